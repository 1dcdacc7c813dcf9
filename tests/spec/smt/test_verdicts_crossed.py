"""Proof, bounded search, the search of all states and TLC never disagree on one model, good or faulty.

TLC takes part where `VSR_TLC` is set (docs/tla.md).
"""

from __future__ import annotations

from typing import Any

import pytest

from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.engines.tla import export, tlc
from viewproof.spec.lang import Spec
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import lemmas_of

CLASSES = tlc.class_path()
SMALL = {"replicas": 2, "views": 2, "ops": 1, "requests": 1}
PROVED = {
    "control": SMALL,
    "repair": {**SMALL, "rots": 1},
    "checkpoint": {**SMALL, "views": 1, "restarts": 1},
    "core_restart": {**SMALL, "restarts": 1},
    "ring": {**SMALL, "views": 1, "ops": 2, "requests": 2, "restarts": 0},
    "pipeline": {**SMALL, "clients": 2},
    "control_checkpoint": {**SMALL, "restarts": 0},
    "clients": {**SMALL, "ops": 2, "clients": 2, "incarnations": 1},
    "sessions": {**SMALL, "ops": 2, "clients": 1, "incarnations": 1},
    "iggy": {**SMALL, "ops": 2, "clients": 2},
}
"""Good models with a proof, and their sizes."""
NOT_PROVED = {
    "recovery": {**SMALL, "restarts": 1, "rots": 0},
    "superblock": {**SMALL, "restarts": 1, "rots": 0},
}
"""Good models whose lemmas are not inductive yet."""
FAULTY = {
    "control.applied_on_leader_only": ("control", {}),
    "view.acks_survive_view": ("repair", {}),
    "commit.checkpoint_at_commit_max": ("checkpoint", {}),
    "boot.replays_over_gap": ("checkpoint", {}),
    "boot.ring_evicts_live": ("ring", {}),
    "commit.out_of_order": ("pipeline", SMALL | {"ops": 2, "clients": 2}),
    "table.evict_by_commit_max": ("clients", {}),
    "table.gap_accepted": ("sessions", {}),
    "table.record_uncommitted": ("iggy", {}),
    "view.blind_start_view_head": ("repair", {}),
    "view.scalar_dvc_truncates_hole": ("repair", {}),
    "recover.any_primary": ("recovery", {}),
    "recover.empty_journal_is_new": ("recovery", {}),
    "recover.head_from_old_start_view": ("superblock", {}),
}
"""Fault → model, and sizes where they are not those of `fault_models`."""
FAST = ("control", "repair", "control.applied_on_leader_only")


def crossed(names: Any) -> Any:
    """A test per model; those that are not fast are long."""
    return pytest.mark.parametrize(
        "name", [n if n in FAST else pytest.param(n, marks=pytest.mark.long) for n in sorted(names)]
    )


def tlc_says(spec: Spec) -> str | None:
    """TLC's verdict; None where it is not there or did not end."""
    if CLASSES is None:
        return None
    verdict = tlc.run(export(spec), CLASSES, timeout_seconds=120).verdict
    return None if verdict == "inconclusive" else verdict


def verdicts(spec: Spec) -> tuple[str, str, str, str | None]:
    """Of the proof, the bounded search, the search of all states, and TLC."""
    found = chain.search(spec, 2, timeout_ms=120_000, minimise_ms=1_000)
    return (
        prove(spec, lemmas_of(spec.cfg), timeout_ms=60_000).verdict,
        "violated" if found.broken else "nothing found",
        explicit.explore(spec, notify=lambda _: None).verdict,
        tlc_says(spec),
    )


@crossed(PROVED)
def test_a_good_model_that_is_proved(name: str) -> None:
    proof, bounded, searched, judged = verdicts(model(name, **PROVED[name]))  # type: ignore[arg-type]
    assert (proof, bounded, searched) == ("proved", "nothing found", "holds")
    assert judged in (None, "holds")


@crossed(NOT_PROVED)
def test_a_good_model_that_is_not_proved(name: str) -> None:
    proof, bounded, searched, judged = verdicts(model(name, **NOT_PROVED[name]))  # type: ignore[arg-type]
    assert (proof != "proved", bounded, searched) == (True, "nothing found", "holds")
    assert judged in (None, "holds")


@crossed(FAULTY)
def test_a_faulty_model(name: str) -> None:
    kind, sizes = FAULTY[name]
    chosen = FAULT_MODELS[name]
    spec = model(kind, faults=[name], **sizes) if sizes else model(
        kind, replicas=chosen.replicas, faults=[name], bounds=chosen.bounds
    )  # fmt: skip
    proof, bounded, searched, judged = verdicts(spec)
    assert (proof, bounded, searched) == ("failed", "violated", "violated")
    assert judged in (None, "violated")
