"""Two consensus groups in the same simulated processes: each a run of its own, together in every crash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

from viewproof.impl.groups.group import BOTH_PLANES, parse_groups
from viewproof.impl.sim.groups import simulate_groups
from viewproof.impl.sim.profile import profile_draw
from viewproof.impl.trace.files import read_ndjson

SEEDS = range(6)


def test_both_planes_hold_under_shared_crashes_and_partitions() -> None:
    for seed in SEEDS:
        profile = replace(profile_draw(Random(seed)), features="upgrade")
        results = simulate_groups(seed, requests=80, profile=profile)
        assert list(results) == list(BOTH_PLANES)
        for group, result in results.items():
            assert result.ok, f"seed {seed} group {group.name}: {result.failures}"
            assert result.answered + result.abandoned == 80
        crashes = {result.statistics.get("crashes", 0) for result in results.values()}
        assert len(crashes) == 1, "a crash of a process takes all its groups"


def test_groups_of_one_partition_hold_together_and_take_no_other(tmp_path: Path) -> None:
    groups = parse_groups("metadata,partition:0/1/2,partition:0/1/3")
    appended: set[int | None] = set()
    for seed in range(3):
        for group, result in simulate_groups(seed, groups=groups, requests=40, out=tmp_path).items():
            assert result.ok, f"seed {seed} group {group.name}: {result.failures}"
            with (tmp_path / result.run / "replica-0.ndjson").open("rb") as file:
                seen = {event.m_namespace for event in read_ndjson(file)} - {None}
            assert seen <= {group.namespace, 0}
            appended |= seen
    assert appended >= {group.namespace for group in groups if group.namespace is not None}


def test_each_group_writes_its_own_run(tmp_path: Path) -> None:
    results = simulate_groups(3, requests=40, out=tmp_path)
    assert [result.run for result in results.values()] == ["seed-3.metadata", "seed-3.partitions"]
    digests = []
    for result in results.values():
        with (tmp_path / result.run / "replica-0.ndjson").open("rb") as file:
            events = read_ndjson(file)
        assert {event.run for event in events} == {result.run}
        digests.append({event.digest for event in events})
    assert len(digests[0] & digests[1]) < 10 < len(digests[0]), "each group has a state of its own"
