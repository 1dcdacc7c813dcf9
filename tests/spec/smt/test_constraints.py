"""Constraints of bounded search lose no violation, and partial order no state of a round."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings

from tests.spec.generated_models import models
from viewproof.spec.engines import interp
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.chain import Chain, round_blocks
from viewproof.spec.engines.smt.constraints import exchangeable
from viewproof.spec.engines.smt.induction import Problem
from viewproof.spec.engines.smt.solve import Session
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

OPTIONS = [{"partial_order": p, "symmetry": s} for p in (False, True) for s in (False, True)]
ASKED = 6
LOOKED_AT = {"states": 0, "left out": 0}


def states_of_rounds(spec: Spec, rounds: int) -> set[State]:
    """States that the interpreter reaches in so many rounds."""
    reached = {State.initial()}
    for action, args in chain.round_order(spec) * rounds:
        ir = spec.action(action)
        reached |= {s for s in [interp.step(spec, b, ir, args) for b in reached] if isinstance(s, State)}
    return reached


def check_states(spec: Spec, rounds: int, asked: int) -> None:
    """Is each of some states of the interpreter's rounds reached by the constrained chain?"""
    reached = sorted(states_of_rounds(spec, rounds), key=repr)
    problem = Problem(spec, ())
    free, bound = Chain(problem), Chain(problem, partial_order=True)
    for _ in range(rounds):
        free.round(round_blocks(problem))
        bound.round(round_blocks(problem))
    LOOKED_AT["left out"] += len(bound.facts) - len(free.facts)
    session = Session(bound.terms, range(len(bound.terms.cells)), bound.facts)
    t = bound.terms
    for state in random.Random(5).sample(reached, min(asked, len(reached))):
        values = problem.low.values_of(state)
        same = t.and_(t.eq(bound.now[n], t.const(v, problem.low.terms.cells[n].is_bool)) for n, v in values.items())
        assert session.refute(t.not_(same)).status == "sat", state
        LOOKED_AT["states"] += 1


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(models())
def check_random_models(spec: Spec) -> None:
    try:
        check_states(spec, 2, ASKED)
    except SpecError:
        return


def test_partial_order_loses_no_state_of_random_models() -> None:
    check_random_models()
    assert min(LOOKED_AT.values()) >= 40, LOOKED_AT


def test_partial_order_loses_no_state_of_the_core() -> None:
    check_states(model("core", replicas=2, views=2, ops=1, requests=1), 2, 12)


def test_clients_are_exchangeable_and_replicas_are_not() -> None:
    assert [sort.name for sort in exchangeable(model("clients"))] == ["Client"]
    assert exchangeable(model("core")) == []


FAULTS = ["commit.apply_at_replicate", "boot.view_from_last_prepare"]
MORE = [
    "table.gap_accepted",
    "view.even_quorum", "state.getstate_truncates", "table.evict_by_commit_max", "table.evict_forgets",
    "table.replayed_register", "table.record_uncommitted", "table.reply_from_current_view", "commit.out_of_order",
    "control.unsupported_member", "boot.replays_over_gap", "boot.ring_evicts_live",
]  # fmt: skip


@pytest.mark.parametrize("fault", [*FAULTS, *(pytest.param(f, marks=pytest.mark.long) for f in MORE)])
def test_a_fault_is_found_with_and_without(fault: str) -> None:
    chosen = FAULT_MODELS[fault]
    spec = model(chosen.model, replicas=chosen.replicas, faults=[fault], bounds=chosen.bounds)
    found = [chain.search(spec, 2, minimise_ms=1, **options) for options in OPTIONS]
    assert len({(f.broken is None, f.rounds) for f in found}) == 1
    assert found[0].broken is not None


@pytest.mark.parametrize("name", [pytest.param("clients", marks=pytest.mark.long), "pipeline"])
def test_nothing_is_found_in_good_models_with_and_without(name: str) -> None:
    spec = model(name, views=1, ops=2)
    for options in OPTIONS:
        found = chain.search(spec, 2, **options)
        assert (found.broken, found.unknown) == (None, False)
