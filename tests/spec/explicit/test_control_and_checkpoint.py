"""Control entries, checkpoints and the pipeline: pinned counts, coverage, witnesses, agreement with interp, faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.fault_models import FAULT_MODELS

Sizes = dict[str, Any]

TWO = {"replicas": 2, "views": 2, "ops": 2}
PINNED: list[tuple[str, Sizes]] = [
    ("control", {"replicas": 2, "views": 3, "ops": 2, "restarts": 1}),
    ("checkpoint", {"replicas": 2, "views": 3, "ops": 2, "requests": 2}),
    ("ring", {"replicas": 2, "views": 3, "ops": 2, "requests": 2}),
    ("ring", {"replicas": 3, "restarts": 0}),
    ("drain", {"replicas": 2, "views": 3}),
    ("pipeline", {"replicas": 2, "views": 3, "restarts": 1}),
    ("pipeline", {}),
    ("frontiers", {}),
    ("frontiers", {"replicas": 3, "views": 2, "ops": 1, "requests": 1}),
    ("frontiers", {"requests": 1, "restarts": 1}),
    ("withdrawal", {"replicas": 2}),
    ("withdrawal", {"replicas": 2, "ops": 2}),
    ("withdrawal", {"replicas": 2, "views": 3}),
]
PINNED_LONG: list[tuple[str, Sizes]] = [
    ("control", {}),
    ("checkpoint", {}),
    ("checkpoint", {"clients": 2, "requests": 1, "restarts": 0}),
    ("ring", {}),
    ("ring", {"ops": 3, "requests": 3, "restarts": 0}),
    ("drain", {}),
    ("combined", {}),
    ("combined", {"ops": 2, "restarts": 1}),
    ("control_checkpoint", {}),
    ("control_checkpoint", {"replicas": 2, "views": 3, "restarts": 1}),
    ("withdrawal", {}),
]
SMALL: list[Any] = [
    ("control", {"replicas": 2, "views": 1, "ops": 1}),
    ("control", {"replicas": 1, "views": 2, "ops": 1}),
    ("checkpoint", {"replicas": 2, "views": 1, "restarts": 0}),
    ("checkpoint", {"replicas": 2, "views": 1, "ops": 1, "requests": 1}),
    ("ring", {"replicas": 2, "views": 1, "restarts": 0}),
    ("control_checkpoint", {"replicas": 2, "views": 1, "ops": 1, "restarts": 1}),
    ("pipeline", {"replicas": 2, "views": 1}),
    ("pipeline", {"replicas": 2, "views": 2, "ops": 1, "clients": 1}),
    pytest.param("withdrawal", {"replicas": 2, "views": 1}, marks=pytest.mark.long),
    ("frontiers", {"views": 1}),
    pytest.param("frontiers", {"views": 3, "ops": 1, "clients": 1, "requests": 1}, marks=pytest.mark.long),
]


def title(sizes: Any) -> str:
    """Sizes in a test's name."""
    return "-".join(f"{k}{v}" for k, v in sizes.items()) if isinstance(sizes, dict) else str(sizes)


def explored(name: str, sizes: Sizes) -> explicit.Result:
    """A complete search that holds with the pinned counts, and takes every action."""
    found = explicit.explore(model(name, **sizes))
    require_counts(found, name, **sizes)
    assert [c.name for c in found.coverage if not c.generated] == []
    return found


@pytest.mark.parametrize("name", sorted({name for name, _ in PINNED}))
def test_models_hold_with_the_pinned_counts_all_actions_and_all_witnesses(name: str) -> None:
    found = [explored(*pinned) for pinned in PINNED if pinned[0] == name]
    missing = set.intersection(*(set(f.unwitnessed) for f in found))
    alone = {
        "control": {"I3", "I5"},
        "checkpoint": {"I3", "I5", "I5.race"},
        "drain": {"I3", "I5", "I5.race"},
        "withdrawal": {"I3", "I5", "I7", "I8"},
    }
    assert missing == alone.get(name, set())  # the sizes of PINNED_LONG reach these


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), PINNED_LONG, ids=title)
def test_the_models_own_sizes_hold_with_the_pinned_counts(name: str, sizes: Sizes) -> None:
    missing = {w for w in explored(name, sizes).unwitnessed if w.startswith(("I1", "I5"))}
    one_op = {"I10"} if name == "withdrawal" else set()
    assert missing <= ({"I12", "I5", "I5.race"} if sizes or name == "combined" else {"I12"} | one_op)


@pytest.mark.parametrize(("name", "sizes"), SMALL, ids=title)
def test_interp_agrees_on_counts_and_witnesses(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


@pytest.mark.parametrize(
    ("fault", "invariant"), [("boot.replays_over_gap", "I13"), ("boot.ring_evicts_live", "I5"), ("boot.all_zero", "I3")]
)
def test_the_invariant_that_the_catalogue_names_breaks_too(fault: str, invariant: str) -> None:
    found = explicit.explore(FAULT_MODELS[fault].spec(fault), invariants=[invariant])
    assert (found.verdict, found.broken) == ("violated", invariant)


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("control", {**TWO, "ops": 3}),
        ("checkpoint", TWO),
        ("ring", {**TWO, "views": 3}),
        ("drain", {**TWO, "views": 3}),
        ("control_checkpoint", {**TWO, "restarts": 1}),
        ("pipeline", TWO),
        ("frontiers", {**TWO, "ops": 3, "requests": 2}),
    ],
    ids=title,
)
def test_view_changes_can_end_requests_be_answered_and_replicas_catch_up(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    wanted = list(goals(spec))
    assert {a.goal.id: a.result.verdict for a in explicit.always_reaches(spec, wanted)} == {
        g.id: "holds" for g in wanted
    }
