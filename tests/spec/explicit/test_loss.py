"""Disks that are lost: pinned counts, agreement with interp, and weaker rules that are found (docs/recovery.md)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import Action, Spec, action, all_of, count, exists, not_, require, tagged
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import Config, build, model
from viewproof.spec.vsr.core.state import NORMAL, VIEW_CHANGE, Length, Replica, View, entry_of_view
from viewproof.spec.vsr.core.view_change import install_log, require_log, require_started
from viewproof.spec.vsr.models import MODELS
from viewproof.spec.vsr.parts.loss import begin_again, keep_view, lose, takes_part

SIZES: list[dict[str, int]] = [{}, {"restarts": 2}, {"replicas": 2, "ops": 2, "requests": 2}]


@pytest.mark.parametrize("sizes", SIZES, ids=["one", "two-losses", "two-replicas"])
def test_the_model_holds_with_the_pinned_counts_and_all_actions(sizes: dict[str, int]) -> None:
    found = explicit.explore(model("loss", **sizes))
    require_counts(found, "loss", **sizes)
    assert [c.name for c in found.coverage if not c.generated] == []
    assert not {"I3.lost_log", "I6.forgotten"} & found.unwitnessed.keys()


def test_a_replica_comes_back_with_an_older_snapshot_than_it_had() -> None:
    found = explicit.explore(model("loss", views=1, ops=2, requests=2))
    assert found.verdict == "holds"
    assert not {"I5.older_snapshot", "I5.drained", "I13"} & found.unwitnessed.keys()


@pytest.mark.parametrize("sizes", [{"views": 1, "ops": 2, "requests": 2}, pytest.param({}, marks=pytest.mark.long)])
def test_interp_agrees(sizes: dict[str, int]) -> None:
    spec = model("loss", replicas=2, **sizes)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


def test_one_that_loses_its_disk_again_while_it_waits_may_be_told_an_earlier_view() -> None:
    spec = model("loss", replicas=5, restarts=2)
    steps = [("start_view_change", {"r": 4, "v": 1}), ("lose_disk", {"r": 0, "m": 1}), ("lose_disk", {"r": 0, "m": 0})]
    states = [State.initial()]
    for name, args in steps:
        after = interp.step(spec, states[-1], spec.action(name), args)
        assert isinstance(after, State)
        states.append(after)
    wrong = [p.id for p in spec.invariants for pair in pairwise(states) if not interp.holds(spec, p, *pair)]
    assert wrong == []


def with_nacks() -> Spec:
    """Losses together with discards, as in traces; without checkpoints."""
    return build(Config(3, losses=True, discards=True), MODELS["loss"].instance(3), "loss")


def test_nacks_of_who_lost_its_disk_discard_nothing_that_counts() -> None:
    found = explicit.explore(with_nacks())
    require_counts(found, "loss_with_nacks")
    assert {c.name for c in found.coverage if not c.generated} == set()


@tagged("crash")
@action
def lose_disk_asking_too_few(state: Any, r: Replica, m: View) -> None:
    """One of the others less is asked for the views they know of."""
    others = count(Replica, lambda q: all_of(q != r, state.durable_view[q] <= m, state.lost_view[q] == 0))
    require(others >= state.cfg.replicas - state.cfg.quorum_view_change)
    begin_again(state, r, m)


@tagged("crash")
@action
def lose_disk_asking_the_lost(state: Any, r: Replica, m: View) -> None:
    """One that forgot its own view is asked, too: what it said in that view may still arrive."""
    others = count(Replica, lambda q: all_of(q != r, state.durable_view[q] <= m))
    require(others >= state.cfg.replicas - state.cfg.quorum_view_change + 1)
    require(exists(Replica, lambda q: all_of(q != r, state.durable_view[q] == m)))
    begin_again(state, r, m)


@action
def recover_log_from_any_answer(state: Any, r: Replica, v: View, n: Length) -> None:
    """A start_view that is older than what the replica acknowledged is taken: the nonce is not compared."""
    require(not_(takes_part(state, r)))
    require(v >= state.view[r])
    require_started(state, r, v)
    require_log(state, r, v, n)
    received = state.received(r)
    install_log(state, r, v, n, lambda o: entry_of_view(received, v, o))
    state.lost_op[r] = 0


@action
def recover_log_in_a_view_before(state: Any, r: Replica, v: View, n: Length) -> None:
    """The view that the superblock names is not a bound."""
    require(not_(takes_part(state, r)))
    require_started(state, r, v)
    require_log(state, r, v, n)
    received = state.received(r)
    install_log(state, r, v, n, lambda o: entry_of_view(received, v, o))
    state.lost_op[r] = 0


def lose_log_and_go_on(status: int) -> Action:
    """What is left of the log counts as all there ever was."""

    @tagged("crash")
    @action
    def lose_log(state: Any, r: Replica) -> None:
        """It boots with its snapshot as if there had been no log."""
        lose(state, r, True, status)
        keep_view(state, r)

    return lose_log


WRONG: list[tuple[str, str, Any, dict[str, int], str]] = [
    ("asks-too-few", "lose_disk", lose_disk_asking_too_few, {}, "I6"),
    ("asks-too-few-loses", "lose_disk", lose_disk_asking_too_few, {}, "I2"),
    ("asks-the-lost", "lose_disk", lose_disk_asking_the_lost, {"restarts": 2}, "I6"),
    ("asks-the-lost-loses", "lose_disk", lose_disk_asking_the_lost, {"restarts": 2}, "I2"),
    ("old-answer", "recover_log", recover_log_from_any_answer, {}, "I3"),
    ("view-before", "recover_log", recover_log_in_a_view_before, {}, "I6"),
    ("empty-is-new", "lose_log", lose_log_and_go_on(NORMAL), {}, "I3"),
    ("offers-the-rest", "lose_log", lose_log_and_go_on(VIEW_CHANGE), {}, "I2"),
]
"""Name, action that is replaced, by what, sizes → the invariant that breaks."""


@pytest.mark.parametrize(
    ("replaced", "wrong", "sizes", "breaks"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_a_weaker_rule_is_found(replaced: str, wrong: Action, sizes: dict[str, int], breaks: str) -> None:
    spec = model("loss", **sizes)
    found = explicit.explore(spec.with_actions({replaced: wrong}, ()), invariants=[breaks])
    assert (found.verdict, found.broken) == ("violated", breaks)
