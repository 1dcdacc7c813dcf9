"""Proof, bounded search and the search of all states never contradict each other: random models, and the core's."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from tests.spec.generated_models import models
from tests.spec.smt.comparison import about_steps
from viewproof.spec.engines import interp
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.induction import RANGES
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import LEMMAS

VERDICTS = {"proved": 0, "broken": 0, "found": 0}


def searched(spec: Spec) -> str | None:
    """What the search of all states by the interpreter finds broken."""
    try:
        found = interp.explore(replace(spec, witnesses=()), max_states=2_000)
    except SpecError:
        return RANGES
    return found.broken if found.broken or found.complete else "unfinished"


@settings(max_examples=30, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(models())
def check_random_models(spec: Spec) -> None:
    broken = searched(spec)
    if broken == "unfinished":
        return
    proof = prove(spec, [])
    found = chain.search(spec, 2)
    if proof.verdict == "proved":
        VERDICTS["proved"] += 1
        assert broken is None
        assert found.broken is None
    if broken is None:
        assert found.broken is None
    else:
        VERDICTS["broken"] += 1
        assert proof.verdict == "failed"
    VERDICTS["found"] += found.broken is not None


def test_random_models() -> None:
    check_random_models()
    assert min(VERDICTS.values()) >= 3, VERDICTS


TINY = {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}
MODELS = [
    {"replicas": 1, "views": 2, "ops": 2, "requests": 2, "restarts": 1},
    {**TINY, "restarts": 0},
    {**TINY, "fault": "commit.apply_at_replicate"},
    {**TINY, "fault": "view.even_quorum"},
    {**TINY, "fault": "boot.view_from_last_prepare"},
    *(
        pytest.param(sizes, marks=pytest.mark.long)
        for sizes in (
            TINY,
            {"replicas": 2, "views": 2, "ops": 2, "requests": 2, "restarts": 0},
            {"replicas": 3, "views": 1, "ops": 2, "requests": 2, "restarts": 0},
            {**TINY, "views": 3, "restarts": 0, "fault": "state.getstate_truncates"},
        )
    ),
]


@pytest.mark.parametrize("sizes", MODELS)
def test_core(sizes: dict[str, object]) -> None:
    chosen = dict(sizes)
    fault = chosen.pop("fault", None)
    spec = model("core_restart", faults=[str(fault)] if fault else [], **chosen)  # type: ignore[arg-type]
    broken = searched_all(spec)
    assert (prove(spec, LEMMAS).verdict == "proved") == (broken is None)
    assert (chain.search(spec, 2).broken is None) == (broken is None)


def searched_all(spec: Spec) -> str | None:
    """All states, however many."""
    return interp.explore(spec).broken


def test_a_random_walk_never_breaks_what_was_proved() -> None:
    spec = model("core_restart", views=4, ops=3, requests=3, restarts=2)
    choose = random.Random(7)
    transition = about_steps(spec, LEMMAS)
    state = interp.State.initial()
    for _ in range(60):
        options = [after for _, _, after in interp.successors(spec, state)]
        if not options:
            break
        before, state = state, choose.choice(options)
        for lemma in LEMMAS:
            assert interp.holds(spec, lemma, *((before, state) if lemma.id in transition else (state,))), lemma.id
