"""The client table is proved at any depth; each of its mistakes fails where it is, and is found by bounded search."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import require_chain
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import lemmas_of
from viewproof.spec.vsr.parts.clients import lemmas as table

PROVED: list[Any] = [
    ("clients", {}),
    pytest.param("clients", {"restarts": 1}, marks=pytest.mark.long),
    pytest.param("clients", {"ops": 3, "incarnations": 2}, marks=pytest.mark.long),
    pytest.param("sessions", {"replicas": 3, "ops": 3}, marks=pytest.mark.long),
    pytest.param("iggy", {"replicas": 3, "ops": 3}, marks=pytest.mark.long),
]


def proof_of(spec: Spec, **options: Any) -> Any:
    """The attempt at a proof with all lemmas that go with the configuration."""
    return prove(spec, lemmas_of(spec.cfg), workers=2, **options)


@pytest.mark.parametrize(("name", "sizes"), PROVED, ids=str)
def test_client_table_is_proved(name: str, sizes: dict[str, int]) -> None:
    proof = proof_of(model(name, **sizes))
    assert proof.verdict == "proved"
    assert {"I8", "I9", "L2", "table.one_unexecuted"} <= set(proof.lemmas)
    assert proof.actions["on_request"].solved > 100


CULPRITS = {
    "table.evict_by_commit_max": {"execute"},
    "table.evict_forgets": {"on_request"},
    "table.evict_hash_order": {"execute_evicting"},
    "table.gap_accepted": {"on_request"},
    "table.record_uncommitted": {"on_request"},
    "table.replayed_register": {"on_register"},
    "table.reply_from_current_view": {"execute", "execute_evicting", "resend_reply"},
}
"""Fault → actions at which the proof fails."""
QUICK = ("table.record_uncommitted",)
FAULTS = [pytest.param(f, marks=() if f in QUICK else pytest.mark.long) for f in CULPRITS]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_at_the_actions_it_changes(fault: str) -> None:
    proof = proof_of(FAULT_MODELS[fault].spec(fault))
    assert proof.verdict == "failed"
    assert {f.action for f in proof.failures} == CULPRITS[fault]


@pytest.mark.parametrize("fault", FAULTS)
def test_bounded_search_finds_a_fault(fault: str) -> None:
    found = chain.search(FAULT_MODELS[fault].spec(fault), 2)
    assert found.broken == FAULT_MODELS[fault].breaks
    require_chain(found, fault)


def test_one_slot_without_sessions_is_broken_for_all_three_engines() -> None:
    spec = model("iggy", ops=3, slots=1)
    assert explicit.explore(spec).broken == "I8"
    assert chain.search(spec, 1).broken == "I8"
    assert proof_of(spec, stop_early=True).verdict == "failed"


@pytest.mark.long
@pytest.mark.parametrize("left_out", ["table.one_unexecuted", "table.fresh_register", "table.no_gap"])
def test_without_a_needed_lemma_nothing_is_proved(left_out: str) -> None:
    spec = model("sessions", ops=3)
    lemmas = [p for p in lemmas_of(spec.cfg) if p.id != left_out]
    assert prove(spec, lemmas, workers=2, stop_early=True).verdict == "failed"


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("clients", {"replicas": 2, "ops": 3}),
        ("clients", {"replicas": 2, "restarts": 1}),
        ("sessions", {"views": 1, "ops": 4}),
        ("iggy", {"ops": 3}),
        pytest.param("clients", {}, marks=pytest.mark.long),
        pytest.param("sessions", {}, marks=pytest.mark.long),
    ],
    ids=str,
)
def test_every_lemma_holds_in_every_reachable_state(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)
    found = explicit.explore(replace(spec, invariants=lemmas_of(spec.cfg), witnesses=()), notify=lambda _: None)
    assert found.verdict == "holds"


def test_lemmas_follow_the_configuration() -> None:
    sessions, iggy, core = ({p.id for p in lemmas_of(model(n).cfg)} for n in ("sessions", "iggy", "core"))
    assert {"table.fresh_register", "table.no_gap", "table.slots"} <= sessions
    assert "table.answered_before" in iggy - sessions
    assert not {p.id for p in table.lemmas(model("iggy").cfg)} & core
