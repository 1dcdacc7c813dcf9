"""Rounds that cover an instance, by the compiled engine and by the interpreter."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.spec.generated_models import models
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.smt import chain
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model

TINY = [
    ("core", {"replicas": 2, "views": 2, "ops": 1, "requests": 1}),
    pytest.param(
        "core_restart", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}, marks=pytest.mark.long
    ),
    ("pipeline", {"replicas": 2, "views": 1, "ops": 2, "requests": 1, "clients": 2}),
]


def by_interp(spec: Spec) -> list[int]:
    """States reached in 0, 1, 2 … rounds, up to the number from which there are no more."""
    reached = {State.initial()}
    counts = [1]
    while True:
        for action, args in chain.round_order(spec):
            ir = spec.action(action)
            reached |= {s for s in [interp.step(spec, b, ir, args) for b in reached] if isinstance(s, State)}
        if len(reached) == counts[-1]:
            return counts
        counts.append(len(reached))


def all_states(spec: Spec) -> int:
    """How many states the interpreter reaches."""
    return interp.explore(replace(spec, invariants=(), witnesses=())).distinct


@pytest.mark.parametrize(("name", "sizes"), TINY)
def test_rounds_are_those_of_the_interpreter(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)  # type: ignore[arg-type]
    found = explicit.cover(spec, chain.round_order(spec))
    assert found.complete
    assert found.reached == by_interp(spec)
    assert found.states == all_states(spec)


PAGE = (Path(__file__).parents[3] / "docs/proofs.md").read_text(encoding="utf-8")
ROUNDS = re.findall(r"^\| `core.*<!-- ([\w -]+): steps --> \| ([\d, ·]+)<!--", PAGE, re.MULTILINE)
QUICK = 1


def test_the_page_has_four_instances() -> None:
    assert len(ROUNDS) == 4


@pytest.mark.parametrize(
    ("instance", "reached"), [*ROUNDS[:QUICK], *(pytest.param(*row, marks=pytest.mark.long) for row in ROUNDS[QUICK:])]
)
def test_rounds_reach_as_many_states_as_the_page_says(instance: str, reached: str) -> None:
    name, *options = instance.split(" --")
    spec = model(name, **{size: int(number) for size, number in map(str.split, options)})  # type: ignore[arg-type]
    found = explicit.cover(spec, chain.round_order(spec))
    assert [f"{number:,}" for number in found.reached[1:]] == reached.split(" · ")


LOOKED_AT = {"covered": 0, "more than one round": 0}


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(models())
def check_random_models(spec: Spec) -> None:
    try:
        counts = by_interp(spec)
    except SpecError:
        return
    found = explicit.cover(spec, chain.round_order(spec))
    assert (found.complete, found.reached) == (True, counts)
    LOOKED_AT["covered"] += 1
    LOOKED_AT["more than one round"] += found.rounds > 1


@pytest.mark.long
def test_rounds_of_random_models() -> None:
    check_random_models()
    assert min(LOOKED_AT.values()) >= 2, LOOKED_AT


def test_an_order_that_lacks_an_instance_covers_nothing() -> None:
    spec = model("core", replicas=2, views=2, ops=1, requests=1)
    order = [step for step in chain.round_order(spec) if step[0] != "on_request"]
    found = explicit.cover(spec, order)
    assert not found.complete
    assert "no place" in found.reason


def test_a_search_that_does_not_end_covers_nothing() -> None:
    spec = model("core", replicas=2, views=2, ops=1, requests=1)
    found = explicit.cover(spec, chain.round_order(spec), max_states=10)
    assert not found.complete
    assert found.reason
