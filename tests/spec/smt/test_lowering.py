"""Terms and the reference interpreter say the same: on reachable and on arbitrary states, of the core and of random
models; and z3 says the same as the terms.
"""

from __future__ import annotations

import random

import pytest
import z3
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.spec.core_faults import CORE_FAULTS
from tests.spec.generated_models import models
from tests.spec.smt.comparison import (
    by_interp,
    by_terms,
    lowered_predicates,
    lowered_steps,
    random_state,
    random_walk,
    same_predicates,
)
from viewproof.spec.engines.smt.encode import Encoder
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.terms import evaluate
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import LEMMAS
from viewproof.spec.vsr.parts.clients import faults as table

CORES = {
    "plain": lambda: model("core_restart", views=3, ops=2, restarts=1),
    "two clients": lambda: model("core_restart", replicas=2, views=2, ops=2, clients=2, restarts=1),
    **{
        fault: lambda fault=fault: model("core_restart", replicas=4, views=2, ops=2, restarts=1, faults=[fault])
        for fault in CORE_FAULTS
    },
    "sessions": lambda: model("sessions", views=2, ops=2, restarts=1),
    "slots": lambda: model("iggy", replicas=3, views=2, ops=3, slots=1, restarts=1),
    **{f.id: lambda fault=f.id: FAULT_MODELS[fault].spec(fault) for f in table.FAULTS},
}
NAMES = [pytest.param(n, marks=pytest.mark.long) if "." in n or n == "slots" else n for n in CORES]


def agree(spec: Spec, low: Lowering, states: list[State]) -> int:
    """Check everything on these states; the number of steps that were enabled."""
    steps = lowered_steps(low)
    predicates = lowered_predicates(low, (*spec.invariants, *spec.witnesses))
    enabled = 0
    for state in states:
        for step in steps:
            expected = by_interp(spec, state, step)
            assert by_terms(low, state, step) == expected, (step.label, state.tables)
            if isinstance(expected, State):
                enabled += 1
                assert not same_predicates(low, predicates, state, expected), (step.label, state.tables)
        assert not same_predicates(low, predicates, state, state)
    return enabled


@pytest.mark.parametrize("name", NAMES)
def test_core_on_reachable_states(name: str) -> None:
    spec = CORES[name]()
    spec = spec if "view.even" in name else with_lemmas(spec)
    states = random_walk(spec, random.Random(1), 40)
    assert agree(spec, Lowering(spec), states) > 40


@pytest.mark.parametrize("name", NAMES)
def test_core_on_arbitrary_states(name: str) -> None:
    spec = with_lemmas(CORES[name]())
    low, choose = Lowering(spec), random.Random(2)
    assert agree(spec, low, [random_state(low, choose) for _ in range(8)]) > 8


def with_lemmas(spec: Spec) -> Spec:
    """The spec with the lemmas among its invariants."""
    return Spec(
        spec.name, spec.schema, spec.cfg, spec.actions, (*spec.invariants, *LEMMAS), spec.witnesses, spec.instance
    )


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(), st.integers(0, 2**32))
def test_random_models_on_arbitrary_states(spec: Spec, seed: int) -> None:
    low, choose = Lowering(spec), random.Random(seed)
    agree(spec, low, [State.initial(), *(random_state(low, choose) for _ in range(4))])


def z3_agrees(spec: Spec, states: int, seed: int) -> None:
    """z3's value of every guard, update, obligation and predicate is that of the terms."""
    low, choose = Lowering(spec), random.Random(seed)
    terms = [term for _, _, term in lowered_predicates(low, (*spec.invariants, *spec.witnesses))]
    for step in lowered_steps(low):
        terms += [step.guard, *step.changed.values(), *(o.term for o in step.obligations)]
    encode = Encoder(low.terms)
    for _ in range(states):
        values = low.values_of(random_state(low, choose), random_state(low, choose))
        pairs = []
        for number, value in values.items():
            cell, lo = encode.cell(number), low.terms.cells[number].lo
            pairs.append((cell, z3.BoolVal(bool(value)) if z3.is_bool(cell) else z3.BitVecVal(value - lo, cell.size())))
        memo: dict[int, int] = {}
        for term in terms:
            found = z3.simplify(z3.substitute(encode(term), *pairs))
            number = int(z3.is_true(found)) if term.is_bool else found.as_signed_long()
            assert number == evaluate(term, values, memo), term


def test_z3_agrees_on_the_core() -> None:
    z3_agrees(with_lemmas(model("core_restart", views=2, ops=1, restarts=1)), 3, 3)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(models(), st.integers(0, 2**32))
def test_z3_agrees_on_random_models(spec: Spec, seed: int) -> None:
    z3_agrees(spec, 2, seed)
