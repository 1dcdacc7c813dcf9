"""Bounded search finds each mistake, confirmed by the interpreter; breadth-first search finds none shorter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.spec.counts import FAULTS as STEPS
from tests.spec.counts import pinned
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import chain
from viewproof.spec.lang import Spec
from viewproof.spec.oxia import model as oxia_model
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

QUICK = ("commit.apply_at_replicate", "view.even_quorum", "boot.view_from_last_prepare", "state.getstate_truncates")


def faulty(fault: str) -> Spec:
    """The model in which the mistake is found quickly."""
    chosen = FAULT_MODELS[fault]
    return model("core_restart", replicas=chosen.replicas, faults=[fault], bounds=chosen.bounds)


@pytest.mark.parametrize("fault", QUICK)
def test_a_fault_is_found_in_one_round(fault: str) -> None:
    found = chain.search(faulty(fault), 2)
    assert (found.broken, found.rounds) == (FAULT_MODELS[fault].breaks, 1)
    assert found.minimal
    assert len(found.steps) == pinned()[STEPS][fault]


@pytest.mark.long
@pytest.mark.parametrize("fault", QUICK)
def test_breadth_first_search_finds_nothing_shorter(fault: str) -> None:
    shortest = explicit.explore(faulty(fault), notify=lambda _: None)
    assert (shortest.broken, len(shortest.behaviour)) == (FAULT_MODELS[fault].breaks, pinned()[STEPS][fault])


def test_a_lost_op_is_found_where_search_needs_many_steps() -> None:
    spec = model("core", faults=["state.getstate_truncates"])
    found = chain.search(replace(spec, invariants=tuple(p for p in spec.invariants if p.id == "I2")), 1)
    assert (found.broken, len(found.steps)) == ("I2", 14)


def test_without_a_fault_nothing_is_found() -> None:
    found = chain.search(model("core_restart", views=2, ops=1, requests=1), 2)
    assert (found.broken, found.rounds, found.unknown) == (None, 2, False)


def test_epochs_are_views_and_order_is_that_of_the_specification() -> None:
    spec = model("core_restart")
    sort = chain.epoch_sort(spec)
    assert sort is not None
    assert sort.name == "View"
    assert [ir.name for ir in chain.action_order(spec.action_irs)] == [a.name for a in spec.actions]


def test_a_step_of_two_epochs_stands_in_the_last_of_them_and_none_is_left_out() -> None:
    spec = oxia_model("oxia_control", terms=1, offsets=1)
    sort = chain.epoch_sort(spec)
    assert sort is not None
    assert sort.name == "Replica"
    pairs = [args for action, args in chain.round_order(spec) if action == "add_follower"]
    assert sorted((args["r"], args["q"]) for args in pairs) == [(r, q) for r in range(3) for q in range(3) if r != q]
    assert [max(args.values()) for args in pairs] == [1, 1, 2, 2, 2, 2]


def test_of_sorts_that_index_as_many_messages_the_first_has_the_epochs() -> None:
    sort = chain.epoch_sort(oxia_model("oxia"))
    assert sort is not None
    assert sort.name == "Term"
