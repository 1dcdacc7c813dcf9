"""Iggy's replication: pinned counts, witnesses, agreement with interp, how the build and other mistakes break it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.replay import compile_spec
from viewproof.spec.lang import SpecError
from viewproof.spec.vsr import Config, build, model, unbounded
from viewproof.spec.vsr.bounds import Bounds
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.profiles import profile

Sizes = dict[str, int]

PINNED: list[tuple[str, Sizes]] = [
    ("iggy_views", {}),
    ("iggy_crash", {}),
    ("iggy_crash", {"replicas": 2, "ops": 2, "requests": 2}),
    ("iggy_crash", {"replicas": 2, "views": 3, "restarts": 2}),
    ("iggy_log", {"clients": 1, "requests": 2}),
    ("iggy_four", {}),
    ("iggy_clients", {"ops": 3}),
    ("iggy_clients", {"clients": 1, "requests": 2}),
    ("iggy_whole", {"clients": 1, "restarts": 1}),
]
"""Together they reach every witness."""
PINNED_LONG: list[tuple[str, Sizes]] = [
    ("iggy_log", {}),
    ("iggy_crash", {"restarts": 2}),
    ("iggy_clients", {}),
    ("iggy_whole", {}),
]
SMALL: list[Any] = [
    ("iggy_views", {"replicas": 2, "views": 2}),
    pytest.param("iggy_crash", {"replicas": 2}, marks=pytest.mark.long),
    pytest.param("iggy_clients", {"views": 1, "clients": 1, "ops": 3}, marks=pytest.mark.long),
    ("iggy_whole", {"clients": 1, "ops": 2, "views": 1}),
]

LOSSES: list[tuple[str, str, Sizes, int]] = [
    ("iggy.start_view_lowers_head", "iggy_views", {}, 10),
    ("iggy.headers_in_memory", "iggy_crash", {"views": 3, "restarts": 2}, 17),
    ("iggy.journal_in_memory", "iggy_crash", {}, 10),
    ("iggy.answers_without_headers", "iggy_views", {}, 23),
    ("iggy.compares_above_commit", "iggy_views", {}, 24),
    ("iggy.merges_one_offer", "iggy_views", {}, 8),
    ("iggy.log_view_at_merge", "iggy_views", {}, 14),
]
"""Fault, model, sizes → steps of a shortest behaviour after which a committed op is not in a later view's log (I2)."""


def title(case: Any) -> str | None:
    return "-".join(f"{name}{n}" for name, n in case.items()) if isinstance(case, dict) else None


def explored(name: str, sizes: Sizes) -> Any:
    found = explicit.explore(model(name, **sizes), notify=lambda _: None)
    require_counts(found, name, **sizes)
    idle = {c.name for c in found.coverage if not c.generated}
    assert idle <= {"execute_evicting"}  # one client, one slot
    return found


def test_the_models_hold_with_the_pinned_counts_and_reach_all_witnesses() -> None:
    assert set.intersection(*(set(explored(*case).unwitnessed) for case in PINNED)) == set()


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), PINNED_LONG, ids=title)
def test_the_larger_models_hold_with_the_pinned_counts(name: str, sizes: Sizes) -> None:
    explored(name, sizes)


@pytest.mark.parametrize(("name", "sizes"), SMALL, ids=title)
def test_interp_agrees_on_counts_and_witnesses(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    assert facts(explicit.explore(spec, notify=lambda _: None)) == facts(interp.explore(spec))


@pytest.mark.parametrize(("fault", "name", "sizes", "steps"), LOSSES, ids=title)
def test_what_was_committed_is_lost(fault: str, name: str, sizes: Sizes, steps: int) -> None:
    spec = model(name, faults=(fault,), **sizes)
    found = explicit.explore(spec, invariants=["I2"], notify=lambda _: None)
    assert (found.verdict, found.broken, len(found.behaviour)) == ("violated", "I2", steps)


@pytest.mark.parametrize(
    ("name", "sizes"), [("iggy_views", {"views": 2}), ("iggy_crash", {"replicas": 2, "views": 3}), ("iggy_four", {})]
)
def test_a_view_change_can_end_and_every_replica_catch_up(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    for answer in explicit.always_reaches(spec, list(goals(spec)), notify=lambda _: None):
        assert (answer.goal.id, answer.result.verdict) == (answer.goal.id, "holds")
        assert answer.premises > 0


def test_a_register_that_comes_twice_fences_a_live_session_as_built() -> None:
    found = explicit.explore(model("iggy_clients", faults=("table.replayed_register",)), invariants=["I8"])
    assert (found.verdict, found.broken) == ("violated", "I8")


def test_what_iggy_does_as_the_core_is_the_cores() -> None:
    standing = {act.name: act.fn for act in model("iggy_views").actions}
    own = (normal.commit, normal.on_commit, normal.execute, normal.resend_reply)
    assert all(standing[act.name] is act.fn for act in own)


@pytest.mark.parametrize(
    ("replicas", "quorums"),
    [(1, (1, 1, 1)), (2, (2, 2, 1)), (3, (2, 2, 2)), (4, (2, 3, 3)), (5, (3, 3, 3)), (6, (3, 4, 4)), (7, (3, 5, 5))],
)
def test_quorums_follow_the_number_of_replicas(replicas: int, quorums: tuple[int, int, int]) -> None:
    cfg = profile("iggy", replicas)
    assert (cfg.quorum_replication, cfg.quorum_view_change, quorum_nack(cfg)) == quorums


def test_a_cluster_of_one_restarts_alone() -> None:
    spec = model("alone", profile="iggy", rots=0, clients=1, restarts=1)
    of_others = {"on_prepare", "repair", "replay", "merge", "start_view_change", "start_view", "on_start_view", "rot"}
    assert not of_others & {act.name for act in spec.actions}
    assert explicit.explore(spec, notify=lambda _: None).verdict == "holds"


@pytest.mark.parametrize("replicas", [1, 3, 5])
def test_it_compiles_for_traces(replicas: int) -> None:
    cfg = profile("iggy", replicas)
    compile_spec(unbounded(replace(cfg, client_table=replace(cfg.client_table, in_flight=0))))


def test_what_it_does_not_go_with_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match="1 to 7 replicas, not 8"):
        profile("iggy", 8)
    with pytest.raises(SpecError, match="is a mistake of Iggy's replication; see the model iggy_views"):
        build(Config(3, faults=frozenset({"iggy.headers_in_memory"})), Bounds().instance(3))
    with pytest.raises(SpecError, match="has no repair of journals or segment files: rots 1"):
        model("iggy_views", rots=1)
