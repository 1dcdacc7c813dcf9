"""The simulator: right runs pass, the same seed gives the same bytes, and each checker catches a fault of its kind."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from random import Random

import pytest
from pyarrow import parquet

from viewproof.impl.faults import FAULTS, FaultError
from viewproof.impl.interface.durable import ConfigurationError, Quorums
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.sim import SimProfile, simulate
from viewproof.impl.sim.profile import CLIENT_PROFILES, profile_draw
from viewproof.impl.trace.events import TraceEvent, decode_line
from viewproof.impl.trace.parquet import PARQUET_SCHEMA

CALM = SimProfile().without_faults()


def read(directory: Path) -> dict[int, list[TraceEvent]]:
    return {
        int(path.stem.removeprefix("replica-")): [decode_line(line) for line in path.read_bytes().splitlines()]
        for path in sorted(directory.glob("*.ndjson"))
    }


def replay_command(seed: int, replicas: int) -> str:
    return f'python -c "from viewproof.impl.sim import simulate; simulate({seed}, replicas={replicas}, requests=120)"'


@pytest.mark.parametrize("replicas", [3, pytest.param(5, marks=pytest.mark.long)])
def test_runs_with_faults_pass_all_checkers(replicas: int) -> None:
    for seed in range(30):
        result = simulate(seed, replicas=replicas, requests=120)
        assert result.ok, (result.failures, replay_command(seed, replicas))
        assert result.answered + result.abandoned == 120


def test_runs_on_other_sizes_and_quorums_pass() -> None:
    for seed in range(5):
        assert simulate(seed, replicas=1, requests=40).ok
        assert simulate(seed, replicas=2, requests=40).ok
        assert simulate(seed, replicas=4, requests=60).ok
        assert simulate(seed, replicas=5, requests=60, quorums=Quorums(2, 4)).ok
        assert simulate(seed, replicas=3, clients=8, requests=160).ok


def test_runs_under_a_storm_of_faults_pass() -> None:
    storm = SimProfile(
        loss=0.1,
        repeat=0.1,
        delay_ticks_mean=2,
        crash_interval_ticks=45,
        restart_ticks_mean=25,
        crash_in_write=0.2,
        crash_all=0.1,
        partition_interval_ticks=150,
        partition_ticks_mean=80,
        slow_write=0.1,
    )
    for seed in range(8):
        result = simulate(seed, replicas=3, clients=10, requests=150, profile=storm)
        assert result.ok, result.failures
        assert result.statistics["crashes"] > 5


def test_the_faults_of_network_storage_and_processes_do_occur() -> None:
    seen: dict[str, int] = {}
    for seed in range(40):
        for name, count in simulate(seed, requests=100).statistics.items():
            seen[name] = seen.get(name, 0) + count
    for name in (
        "messages_lost",
        "messages_repeated",
        "messages_clogged",
        "messages_cut",
        "partitions",
        "partitions_one_way",
        "crashes",
        "crashes_between_effects",
        "crashes_in_write",
        "crashes_of_all",
        "crash_append_torn",
        "restart",
        "start_view",
        "on_start_view",
        "writes_slow",
    ):
        assert seen.get(name, 0) > 0, name


SITUATIONS = {
    "view_changes_superseded": 15,
    "acks_stale": 14,
    "acks_stale_at_primary": 2,
    "do_view_changes_stale": 12,
    "logs_replaced": 5,
    "restarts_in_view_change": 10,
    "crashes_in_install": 5,
    "outcome_duplicate": 25,
    "outcome_fenced": 10,
    "outcome_gap": 10,
    "outcome_in_progress": 25,
    "outcome_no_session": 10,
    "outcome_stale": 10,
    "registers_replayed": 6,
    "requests_sessionless": 10,
    "requests_skipped": 5,
    "sessions_evicted": 10,
    "sessions_fenced": 7,
}


def test_rare_situations_are_reached_by_the_default_draw() -> None:
    """In 60 seeds, each in at least so many of them (about half of what is seen)."""
    seeds: dict[str, int] = {}
    for seed in range(60):
        for name, count in simulate(seed, requests=120).statistics.items():
            seeds[name] = seeds.get(name, 0) + (count > 0)
    assert {name: seeds.get(name, 0) for name, least in SITUATIONS.items() if seeds.get(name, 0) < least} == {}


@pytest.mark.parametrize("name", CLIENT_PROFILES)
def test_runs_of_every_client_profile_pass(name: str) -> None:
    seen: dict[str, int] = {}
    for seed in range(12):
        result = simulate(seed, clients=4, requests=80, client_profile=name)
        assert result.ok, result.failures
        for key, count in result.statistics.items():
            seen[key] = seen.get(key, 0) + count
    assert bool(seen.get("registers")) == (name in ("sessions", "evictions"))
    assert bool(seen.get("sessions_evicted")) == (name == "evictions")
    assert bool(seen.get("requests_skipped")) == (name == "iggy-3023")


def test_an_unknown_client_profile_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="evictions"):
        simulate(1, client_profile="none")


def test_a_third_of_the_profiles_is_harsh() -> None:
    drawn = [profile_draw(Random(seed)) for seed in range(600)]
    short = sum(profile.view_change_timeout_ticks <= 30 for profile in drawn)
    many = sum(profile.clients_min >= 8 for profile in drawn)
    tiny = sum(profile.pipeline_max <= 3 for profile in drawn)
    assert 100 < short < 220
    assert 80 < many < 200
    assert tiny > 15
    assert sum(profile.crash_in_view_change > 0 for profile in drawn) > 50
    assert sum(profile.outage_long > 0 for profile in drawn) > 30


def test_a_profile_gives_the_replicas_their_timeouts() -> None:
    profile = SimProfile(pipeline_max=2, view_change_timeout_ticks=7, jitter_ticks=3)
    config = profile.replica_config("r")
    assert (config.run, config.pipeline_max, config.view_change_timeout_ticks) == ("r", 2, 7)
    assert config.jitter_ticks == 3
    small = SimProfile().segment_bytes  # segments that roll within a run
    assert SimProfile().replica_config("run") == ReplicaConfig(segment_bytes=small)
    assert profile.without_faults().replica_config("r") == config


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for seed in (3, 4):
        first = simulate(seed, requests=80, out=tmp_path / "a")
        second = simulate(seed, requests=80, out=tmp_path / "b")
        assert first.events == second.events > 0
        assert first.statistics == second.statistics
        for node in range(3):
            name = f"seed-{seed}/replica-{node}.ndjson"
            data = (tmp_path / "a" / name).read_bytes()
            assert data == (tmp_path / "b" / name).read_bytes()
            assert data.endswith(b"\n")


def test_recording_a_trace_does_not_change_the_run(tmp_path: Path) -> None:
    assert simulate(5, requests=60).statistics == simulate(5, requests=60, out=tmp_path).statistics


def test_traces_have_gapless_seqs_and_causal_clocks(tmp_path: Path) -> None:
    for seed in range(6):
        result = simulate(seed, requests=80, out=tmp_path)
        assert result.trace is not None
        nodes = read(result.trace)
        assert sum(len(events) for events in nodes.values()) == result.events
        for node, events in nodes.items():
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert all(a.clock < b.clock for a, b in pairwise(events))
            assert {(event.run, event.node) for event in events} == {(f"seed-{seed}", node)}
            for event in events:
                if event.m_seq is not None and event.m_from is not None:
                    source = nodes[event.m_from][event.m_seq - 1]
                    assert source.clock < event.clock
                    if event.event == "start_view_change":
                        assert source.event in ("start_view_change", "do_view_change")
                        assert source.m_view == event.m_view
                        continue
                    received = {
                        "on_" + source.event,
                        "on_features",
                        "on_prepare",
                        "drop_prepare",
                        "on_start_view",
                        "on_commit",
                        "recover",
                    }
                    assert event.event in received
                    assert (source.m_view, source.m_op) == (event.m_view, event.m_op)
                    if event.event != "drop_prepare":
                        assert source.m_checksum == event.m_checksum
                        assert source.m_commit == event.m_commit


def test_a_parquet_trace_has_the_rows_and_columns_of_the_ndjson(tmp_path: Path) -> None:
    result = simulate(2, requests=30, profile=CALM, out=tmp_path, parquet=True)
    assert result.trace is not None
    for node, events in read(result.trace).items():
        table = parquet.read_table(result.trace / f"replica-{node}.parquet")
        assert table.schema.names == PARQUET_SCHEMA.names
        assert table.column("seq").to_pylist() == [event.seq for event in events]
        assert table.column("head").to_pylist() == [event.head for event in events]


def test_without_faults_there_is_no_view_change() -> None:
    result = simulate(1, requests=60, profile=CALM)
    assert result.ok
    assert result.statistics.get("start_view_change", 0) == 0


def test_impossible_arguments_are_refused() -> None:
    with pytest.raises(FaultError, match=r"no\.such"):
        simulate(1, faults=frozenset({"no.such"}))
    with pytest.raises(ConfigurationError):
        simulate(1, replicas=0)
    with pytest.raises(ConfigurationError):
        simulate(1, replicas=4, quorums=Quorums(2, 2))


CAUGHT = {
    "table.evict_by_commit_max": "tables",
    "table.evict_forgets": "at_most_once",
    "table.evict_hash_order": "tables",
    "table.gap_accepted": "at_most_once",
    "table.record_uncommitted": "at_most_once",
    "table.replayed_register": "at_most_once",
    "table.reply_from_current_view": "replies",
    "commit.apply_at_replicate": "agreement",
    "commit.out_of_order": "agreement",
    "commit.false_ack_after_start_view": "views",
    "view.even_quorum": "agreement",
    "view.blind_start_view_head": "digests",
    "boot.view_from_last_prepare": "views",
    "boot.all_zero": "at_most_once",
    "boot.replays_uncommitted": "bounds",
}
LIVENESS = "commit.out_of_order"


@pytest.mark.parametrize("fault", sorted(CAUGHT))
def test_a_fault_is_caught_by_its_checker(fault: str) -> None:
    found: set[str] = set()
    rare = fault == "table.record_uncommitted"
    seeds, name = (300, "paper") if rare else (60, None)
    replicas = 4 if fault == "view.even_quorum" else 3
    for seed in range(seeds):
        result = simulate(seed, replicas=replicas, requests=100, client_profile=name, faults=frozenset({fault}))
        found |= {failure.checker for failure in result.failures}
        if CAUGHT[fault] in found:
            return
    pytest.fail(f"{fault}: only {sorted(found)} failed in {seeds} seeds")


def test_the_liveness_checker_catches_a_cluster_that_stays_silent() -> None:
    stuck = SimProfile(loss=1.0, safety_ticks_max=50, liveness_ticks_max=20)
    result = simulate(1, requests=10, profile=stuck)
    assert {failure.checker for failure in result.failures} == {"liveness"}


def test_every_fault_has_a_description() -> None:
    assert all(FAULTS.values())
    assert set(CAUGHT) < set(FAULTS)
