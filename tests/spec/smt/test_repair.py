"""Journals with gaps, dirty and faulty slots, and nacks: the proof, its lemmas in all states, and mistakes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import lemmas_of
from viewproof.spec.vsr.parts.repair.lemmas import WITH_SUPERBLOCK

SIZES = [
    {"views": 2, "ops": 1, "requests": 1},
    pytest.param({"views": 2, "ops": 2, "requests": 2}, marks=pytest.mark.long),
    pytest.param({"views": 2, "ops": 2, "clients": 2, "requests": 1}, marks=pytest.mark.long),
    pytest.param({"views": 2, "ops": 3, "requests": 3}, marks=pytest.mark.long),
    pytest.param({"views": 3, "ops": 1, "requests": 1}, marks=pytest.mark.long),
    pytest.param({"replicas": 5, "views": 3, "ops": 1, "requests": 1}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_repair_is_inductive(sizes: dict[str, int]) -> None:
    spec = model("repair", rots=1, **sizes)  # type: ignore[arg-type]
    assert prove(spec, lemmas_of(spec.cfg)).verdict == "proved"


RECOVERIES = [
    {},
    pytest.param({"replicas": 5}, marks=pytest.mark.long),
    pytest.param({"views": 3, "restarts": 2}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("sizes", RECOVERIES)
def test_recovery_by_nonce_is_inductive(sizes: dict[str, int]) -> None:
    spec = model("recovery", **sizes)
    assert prove(spec, lemmas_of(spec.cfg, crashes=True)).verdict == "proved"


@pytest.mark.long
def test_at_most_one_header_in_an_offer_is_inductive() -> None:
    spec = model("headers")
    assert prove(spec, lemmas_of(spec.cfg)).verdict == "proved"


IN_ALL_STATES = [
    ("repair", {"replicas": 2, "ops": 2, "requests": 2, "rots": 1}),
    ("recovery", {"replicas": 2, "restarts": 2, "rots": 0}),
    ("superblock", {"replicas": 2, "restarts": 2, "rots": 0}),
]


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), IN_ALL_STATES)
def test_lemmas_hold_in_all_states(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)
    lemmas = lemmas_of(spec.cfg, crashes=name == "recovery")
    found = explicit.explore(replace(spec, invariants=lemmas, witnesses=()), notify=lambda _: None)
    assert (found.verdict, found.broken) == ("holds", None)


LARGER = {"replicas": 2, "views": 3, "ops": 2, "requests": 2, "restarts": 2, "rots": 1}


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), [("recovery", LARGER), ("superblock", LARGER), ("diskless", {})])
def test_nothing_breaks_in_the_first_states_of_a_larger_instance(name: str, sizes: dict[str, int]) -> None:
    """Lemmas and invariants, as far as a search of seven million states goes; some were false there."""
    spec = model(name, **sizes)
    said = (*spec.invariants, *lemmas_of(spec.cfg, crashes=True))
    found = explicit.explore(replace(spec, invariants=said, witnesses=()), max_states=7_000_000, notify=lambda _: None)
    assert found.broken is None


def test_what_is_left_out_is_a_lemma_elsewhere() -> None:
    assert {p.id for p in lemmas_of(model("repair").cfg)} >= WITH_SUPERBLOCK
    assert not WITH_SUPERBLOCK & {p.id for p in lemmas_of(model("superblock").cfg, crashes=True)}


FAILS_AT = {
    "view.blind_start_view_head": {"on_start_view"},
    "view.scalar_dvc_truncates_hole": {"merge"},
}


@pytest.mark.long
@pytest.mark.parametrize("fault", FAILS_AT)
def test_a_fault_fails_where_it_is(fault: str) -> None:
    spec = FAULT_MODELS[fault].spec(fault)
    proof = prove(spec, lemmas_of(spec.cfg))
    assert proof.verdict == "failed"
    assert {failure.action for failure in proof.failures} == FAILS_AT[fault]
