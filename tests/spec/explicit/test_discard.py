"""Nacks and discards on the core: pinned counts, agreement with interp, and weaker rules that are found."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import action, all_of, between, count, require, some, tagged, value_of, within
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core.restart import start_again
from viewproof.spec.vsr.core.state import VIEW_CHANGE, Op, Replica, Restart, View


def test_the_model_holds_with_the_pinned_counts_and_all_actions() -> None:
    found = explicit.explore(model("discard"))
    require_counts(found, "discard")
    assert [c.name for c in found.coverage if not c.generated] == []
    assert "I11" not in found.unwitnessed


def test_interp_agrees() -> None:
    spec = model("discard", replicas=2)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


@action
def nack(state: Any, r: Replica, o: Op, w: View) -> None:
    """It leaves out that the replica must not have the prepare: as if a faulty slot were clear."""
    v = state.view[r]
    require(state.status[r] == VIEW_CHANGE)
    require(w < v)
    require(state.prepare[w, o].sent)
    require(state.nack[r, w, o] < v)
    state.nack[r, w, o] = v


@tagged("crash")
@action
def discard(state: Any, r: Replica, o: Op) -> None:
    """One nack less is enough: as if the own copy were not faulty."""
    require(within(Restart, state.restarts + 1))
    require(o <= state.op[r])
    entry = state.entry[r, o]
    received = state.received(r)
    others = count(Replica, lambda q: all_of(q != r, received.nack[q, value_of(entry), o] > state.durable_log_view[r]))
    require(others >= state.cfg.replicas - state.cfg.quorum_replication)
    lost = between(Op, o, state.op[r])
    state.gone.update((r, between(View, 0, state.view[r]), lost), lambda w, p: state.entry[r, p] == some(w))
    start_again(state, r, o - 1, state.durable_view[r], state.durable_log_view[r], 0, cut=True)


@pytest.mark.parametrize("wrong", [nack, discard], ids=["nacks what it has", "one nack too few"])
def test_a_weaker_rule_breaks_the_meaning_of_nacks(wrong: Any) -> None:
    found = explicit.explore(model("discard").with_actions({wrong.name: wrong}, ()), invariants=["I11"])
    assert (found.verdict, found.broken) == ("violated", "I11")


def test_one_nack_too_few_loses_what_was_answered() -> None:
    found = explicit.explore(model("discard").with_actions({"discard": discard}, ()), invariants=["I2"])
    assert (found.verdict, found.broken) == ("violated", "I2")
