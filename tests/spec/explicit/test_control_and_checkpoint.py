"""Control entries, checkpoints and the pipeline: pinned counts, coverage, witnesses, agreement with interp, faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.vsr import model
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.progress import goals

Sizes = dict[str, Any]
Counts = tuple[int, int, int]

TWO = {"replicas": 2, "views": 2, "ops": 2}
PINNED: list[tuple[str, Sizes, Counts]] = [
    ("control", {"replicas": 2, "views": 3, "ops": 2, "restarts": 1}, (1_385_496, 3_855_549, 34)),
    ("checkpoint", {"replicas": 2, "views": 3, "ops": 2, "requests": 2}, (766_976, 1_805_505, 35)),
    ("ring", {"replicas": 2, "views": 3, "ops": 2, "requests": 2}, (126_454, 269_438, 34)),
    ("ring", {"replicas": 3, "restarts": 0}, (832_477, 2_661_818, 35)),
    ("drain", {"replicas": 2, "views": 3}, (207_757, 487_877, 38)),
    ("pipeline", {"replicas": 2, "views": 3, "restarts": 1}, (458_529, 1_014_010, 31)),
    ("pipeline", {}, (1_481_686, 5_519_699, 30)),
]
"""Model, sizes → distinct, generated, depth."""
PINNED_LONG: list[tuple[str, Sizes, Counts]] = [
    ("control", {}, (7_863_500, 38_032_365, 35)),
    ("checkpoint", {}, (27_486_819, 117_793_415, 37)),
    ("checkpoint", {"clients": 2, "requests": 1, "restarts": 0}, (18_166_850, 72_121_167, 34)),
    ("ring", {}, (3_914_924, 14_730_056, 38)),
    ("ring", {"ops": 3, "requests": 3, "restarts": 0}, (12_357_997, 42_629_233, 48)),
    ("drain", {}, (7_629_209, 30_341_508, 44)),
    ("combined", {}, (10_272_862, 53_560_228, 34)),
    ("combined", {"ops": 2, "restarts": 1}, (1_254_357, 5_500_853, 28)),
    ("control_checkpoint", {}, (16_472_052, 65_119_905, 37)),
    ("control_checkpoint", {"replicas": 2, "views": 3, "restarts": 1}, (3_126_176, 7_587_364, 36)),
]
SMALL: list[tuple[str, Sizes]] = [
    ("control", {"replicas": 2, "views": 1, "ops": 1}),
    ("control", {"replicas": 1, "views": 2, "ops": 1}),
    ("checkpoint", {"replicas": 2, "views": 1, "restarts": 0}),
    ("checkpoint", {"replicas": 2, "views": 1, "ops": 1, "requests": 1}),
    ("ring", {"replicas": 2, "views": 1, "restarts": 0}),
    ("control_checkpoint", {"replicas": 2, "views": 1, "ops": 1, "restarts": 1}),
    ("pipeline", {"replicas": 2, "views": 1}),
    ("pipeline", {"replicas": 2, "views": 2, "ops": 1, "clients": 1}),
]
STEPS = {
    "commit.out_of_order": 5,
    "commit.fence_on_commit_max": 5,
    "commit.false_ack_after_start_view": 2,
    "commit.checkpoint_at_commit_max": 5,
    "commit.dvc_carries_commit_min_only": 7,
    "control.no_offset_advance": 6,
    "control.applied_on_leader_only": 3,
    "control.unsupported_member": 6,
    "boot.replays_uncommitted": 4,
    "boot.replays_over_gap": 11,
    "boot.all_zero": 2,
    "boot.view_file_unreadable_is_new": 2,
    "boot.ring_evicts_live": 4,
}
"""Fault → steps of a shortest counterexample in its own model."""


def title(sizes: Any) -> str:
    """Sizes in a test's name."""
    return "-".join(f"{k}{v}" for k, v in sizes.items()) if isinstance(sizes, dict) else str(sizes)


def explored(name: str, sizes: Sizes, counts: Counts) -> explicit.Result:
    """A complete search that holds, takes every action, and has those counts."""
    found = explicit.explore(model(name, **sizes))
    assert found.verdict == "holds"
    assert (found.distinct, found.generated, found.depth) == counts
    assert [c.name for c in found.coverage if not c.generated] == []
    return found


@pytest.mark.parametrize("name", sorted({name for name, _, _ in PINNED}))
def test_models_hold_with_the_pinned_counts_all_actions_and_all_witnesses(name: str) -> None:
    found = [explored(*pinned) for pinned in PINNED if pinned[0] == name]
    missing = set.intersection(*(set(f.unwitnessed) for f in found))
    alone = {"control": {"I3", "I5"}, "checkpoint": {"I3", "I5", "I5.race"}, "drain": {"I3", "I5", "I5.race"}}
    assert missing == alone.get(name, set())  # the sizes of PINNED_LONG reach these


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes", "counts"), PINNED_LONG, ids=title)
def test_the_models_own_sizes_hold_with_the_pinned_counts(name: str, sizes: Sizes, counts: Counts) -> None:
    missing = {w for w in explored(name, sizes, counts).unwitnessed if w.startswith(("I1", "I5"))}
    assert missing <= ({"I12", "I5", "I5.race"} if sizes or name == "combined" else {"I12"})


@pytest.mark.parametrize(("name", "sizes"), SMALL, ids=title)
def test_interp_agrees_on_counts_and_witnesses(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


@pytest.mark.parametrize("fault", sorted(STEPS))
def test_a_fault_is_found_in_so_many_steps(fault: str) -> None:
    chosen = FAULT_MODELS[fault]
    spec = chosen.spec(fault)
    if not chosen.breaks.startswith("L"):
        found = explicit.explore(spec)
        assert (found.broken, len(found.behaviour)) == (chosen.breaks, STEPS[fault])
        return
    wanted = [g for g in goals(spec.instance, spec.cfg) if g.id == chosen.breaks]
    (answer,) = explicit.always_reaches(spec, wanted)
    assert (answer.result.verdict, len(answer.result.behaviour)) == ("violated", STEPS[fault])


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
    ],
    ids=title,
)
def test_view_changes_can_end_requests_be_answered_and_replicas_catch_up(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    wanted = list(goals(spec.instance, spec.cfg))
    assert {a.goal.id: a.result.verdict for a in explicit.always_reaches(spec, wanted)} == {
        g.id: "holds" for g in wanted
    }
