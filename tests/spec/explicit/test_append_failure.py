"""Appends that fail, and the fence: pinned counts, agreement with interp, and rules left out that are found."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import NONE, Spec, action, between, require, within
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import Client, Op, Replica, Request
from viewproof.spec.vsr.models import build


def test_the_model_holds_with_the_pinned_counts_and_all_actions() -> None:
    found = explicit.explore(model("append_failure"))
    require_counts(found, "append_failure")
    assert [c.name for c in found.coverage if not c.generated] == []
    assert set(found.unwitnessed) <= {"I12"}


def test_interp_agrees() -> None:
    spec = model("append_failure", replicas=2, ops=1, requests=1)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


@action
def on_request(state: Any, r: Replica, c: Client, s: Request) -> None:
    """It leaves out that the op must not have been prepared in this view before."""
    normal.require_new(state, r, c, s)
    require(within(Op, state.op[r] + 1))
    normal.prepare_request(state, r, c, s)


@action
def append_failed(state: Any, r: Replica, o: Op) -> None:
    """It leaves out that what leaves the log must not be durable."""
    require(o <= state.op[r])
    require(o > state.commit_min[r])
    state.entry.update((r, between(Op, o, state.op[r])), lambda p: NONE)
    state.op[r] = o - 1


@pytest.mark.parametrize(
    ("wrong", "broken"), [(on_request, "I7"), (append_failed, "I3")], ids=["prepares again", "cuts"]
)
def test_a_rule_left_out_is_found(wrong: Any, broken: str) -> None:
    spec = model("append_failure", clients=2, requests=1).with_actions({wrong.name: wrong}, ())
    found = explicit.explore(spec)
    assert (found.verdict, found.broken) == ("violated", broken)


def fenced() -> Spec:
    """The core in which replicas say what they drop. (A wrong fence is a fault that the audit finds.)"""
    spec = model("core", replicas=2, views=2, ops=1, requests=1)
    return build(replace(spec.cfg, fence=True), spec.instance)


def test_the_fence_drops_prepares_and_changes_nothing() -> None:
    plain, found = explicit.explore(model("core", replicas=2, views=2, ops=1, requests=1)), explicit.explore(fenced())
    assert (found.verdict, found.distinct, found.depth) == ("holds", plain.distinct, plain.depth)
    dropped = next(c.generated for c in found.coverage if c.name == "drop_prepare")
    assert dropped == found.generated - plain.generated > 0
