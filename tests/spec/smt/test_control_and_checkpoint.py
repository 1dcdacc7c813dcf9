"""Control entries, checkpoints and the pipeline are proved at any depth; mistakes fail where they are, and are found by
bounded search; the lemmas hold in all reachable states of small models.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import require_chain
from tests.spec.smt.comparison import random_state, random_walk
from tests.spec.smt.test_lowering import agree
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import lemmas_of

NAMES = ("control", "checkpoint", "ring", "drain", "pipeline", "frontiers", "control_checkpoint", "combined")
LARGE: list[tuple[str, dict[str, Any]]] = [
    ("control", {"views": 3, "ops": 3, "requests": 3, "restarts": 1}),
    ("checkpoint", {"views": 3, "ops": 3, "requests": 3}),
    ("ring", {"views": 3, "ops": 3, "requests": 3}),
    ("pipeline", {"views": 3, "ops": 3, "requests": 2, "restarts": 1}),
    ("control_checkpoint", {"views": 3, "ops": 3, "requests": 2, "restarts": 1}),
    ("combined", {"replicas": 3, "views": 2, "ops": 3}),
]
SMALL: dict[str, dict[str, Any]] = {
    "control": {"views": 2, "ops": 1},
    "checkpoint": {"views": 2, "ops": 1},
    "ring": {"replicas": 2, "views": 2, "ops": 2},
    "drain": {"replicas": 2, "views": 2, "ops": 1},
    "pipeline": {"replicas": 2, "views": 2, "ops": 2},
    "frontiers": {"views": 2, "ops": 2, "requests": 1},
    "combined": {"replicas": 2, "views": 1, "ops": 2},
    "control_checkpoint": {"replicas": 2, "views": 2, "ops": 1, "restarts": 1},
}
CULPRITS = {
    "commit.out_of_order": {"commit"},
    "commit.false_ack_after_start_view": {"on_start_view"},
    "commit.checkpoint_at_commit_max": {"take_checkpoint"},
    "control.applied_on_leader_only": {"execute_control", "propose_feature"},
    "control.unsupported_member": {"propose_feature"},
    "boot.replays_uncommitted": {"restart"},
    "boot.replays_over_gap": {"restart"},
    "boot.all_zero": {"restart"},
    "boot.view_file_unreadable_is_new": {"restart"},
    "boot.ring_evicts_live": {"on_prepare", "on_request"},
}
"""Fault → actions at which the proof fails."""
QUICK = (
    "commit.out_of_order",
    "commit.checkpoint_at_commit_max",
    "control.unsupported_member",
    "boot.replays_uncommitted",
)
FAULTS = [pytest.param(f, marks=() if f in QUICK else pytest.mark.long) for f in CULPRITS]
PROGRESS_ONLY = ("commit.fence_on_commit_max", "commit.dvc_carries_commit_min_only")


def with_lemmas(spec: Spec) -> Spec:
    """The spec with its lemmas in place of the invariants."""
    return replace(spec, invariants=lemmas_of(spec.cfg), witnesses=())


@pytest.mark.parametrize("name", NAMES)
def test_the_invariants_are_inductive(name: str) -> None:
    spec = model(name, **SMALL[name])
    proof = prove(spec, lemmas_of(spec.cfg), workers=2)
    assert proof.verdict == "proved"
    assert {p.id for p in (*spec.invariants, *lemmas_of(spec.cfg))} <= set(proof.lemmas)


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), LARGE, ids=str)
def test_the_invariants_are_inductive_in_larger_instances(name: str, sizes: dict[str, Any]) -> None:
    spec = model(name, **sizes)
    assert prove(spec, lemmas_of(spec.cfg), workers=2).verdict == "proved"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_fails_at_the_actions_it_changes(fault: str) -> None:
    spec = FAULT_MODELS[fault].spec(fault)
    proof = prove(spec, lemmas_of(spec.cfg), workers=2)
    assert proof.verdict == "failed"
    assert {f.action for f in proof.failures} == CULPRITS[fault]


@pytest.mark.parametrize("fault", FAULTS)
def test_bounded_search_finds_a_fault(fault: str) -> None:
    found = chain.search(FAULT_MODELS[fault].spec(fault), FAULT_MODELS[fault].rounds)
    assert found.broken == FAULT_MODELS[fault].breaks
    require_chain(found, fault)


@pytest.mark.long
def test_a_control_entry_that_does_not_advance_breaks_the_features_of_the_prefix() -> None:
    spec = FAULT_MODELS["control.no_offset_advance"].spec("control.no_offset_advance")
    proof = prove(spec, lemmas_of(spec.cfg), workers=2)
    assert {(f.action, f.goal) for f in proof.failures} == {
        ("execute_control", "I14"),
        ("execute_control", "control.features"),
    }
    assert chain.search(spec, 2).broken == "I14"


@pytest.mark.long
@pytest.mark.parametrize("fault", PROGRESS_ONLY)
def test_a_fault_that_only_forbids_steps_is_safe(fault: str) -> None:
    spec = FAULT_MODELS[fault].spec(fault)
    assert prove(spec, lemmas_of(spec.cfg), workers=2).verdict == "proved"


@pytest.mark.parametrize("name", NAMES)
def test_lemmas_hold_in_all_reachable_states(name: str) -> None:
    found = explicit.explore(with_lemmas(model(name, **{**SMALL[name], "replicas": 2, "ops": 2})))
    assert found.verdict == "holds"
    assert found.distinct > 3_000


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("control", "control.supported"),
        ("checkpoint", "checkpoint.sent_prefix"),
        ("pipeline", "pipeline.carried"),
    ],
)
def test_without_a_needed_lemma_nothing_is_proved(name: str, left_out: str) -> None:
    spec = model(name, **SMALL[name])
    lemmas = [p for p in lemmas_of(spec.cfg) if p.id != left_out]
    assert len(lemmas) < len(lemmas_of(spec.cfg))
    assert prove(spec, lemmas, workers=2, stop_early=True).verdict == "failed"


@pytest.mark.parametrize("name", ["ring", "control_checkpoint"])
def test_terms_and_interpreter_agree(name: str) -> None:
    spec = replace(model(name, **SMALL[name]), invariants=lemmas_of(model(name).cfg))
    low, choose = Lowering(spec), random.Random(3)
    assert agree(spec, low, random_walk(spec, choose, 12)) > 12
    assert agree(spec, low, [random_state(low, choose) for _ in range(2)]) > 0
