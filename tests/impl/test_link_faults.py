"""Links cut one by one, slow disks, failed superblock writes, budgets: the simulator meets them, and runs pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import FAILING, NAMED_PROFILES
from viewproof.impl.sim.network import LINK_FAULTS, Network
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import budget_ticks


def test_link_faults_cut_some_links_of_replicas_and_clients() -> None:
    counts: Counter[str] = Counter()
    for seed in range(200):
        statistics: Counter[str] = Counter()
        network = Network(SimProfile(loss=0.0, late=0.0, repeat=0.0), Random(seed), statistics)
        network.cut_links(1, 3, 2)
        counts += statistics
        (kind,) = (name.partition(": ")[2] for name in statistics)
        assert network.cut
        assert {node for link in network.cut for node in link} <= {0, 1, 2, -1, -2}
        if kind == "deaf":
            assert network.cut == {(0, 1), (2, 1), (-1, 1), (-2, 1)}
        elif kind == "mute":
            assert network.cut == {(1, 0), (1, 2), (1, -1), (1, -2)}
        elif kind == "no clients":
            assert network.cut == {(1, -1), (-1, 1), (1, -2), (-2, 1)}
        elif kind == "clients apart":
            assert len(network.cut) == 4
        else:
            assert all(node >= 0 for link in network.cut for node in link)
    assert {name.partition(": ")[2] for name in counts} == set(LINK_FAULTS)


def test_what_a_client_says_and_hears_is_cut_on_its_own_link() -> None:
    network = Network(SimProfile(loss=0.0, repeat=0.0), Random(0), Counter())
    network.cut = {(-1, 0)}
    assert network.arrivals_of_client(5, 1, 0) == ()
    assert len(network.arrivals_at_client(5, 0, 1)) == len(network.arrivals_of_client(5, 2, 0)) == 1


def test_a_replica_alone_has_no_link_to_another() -> None:
    network = Network(SimProfile(), Random(0), Counter())
    for _ in range(50):
        network.cut_links(0, 1, 2)
    assert network.statistics["link faults: one link"]
    assert all(a < 0 or b < 0 for a, b in network.cut)


@pytest.mark.parametrize("name", ["links", "slow-disks", "clients", "late-views"])
def test_runs_under_new_conditions_pass(name: str) -> None:
    met: Counter[str] = Counter()
    for seed in range(4):
        result = simulate(seed, replicas=3 + 2 * (seed % 2), requests=60, profile=NAMED_PROFILES[name])
        assert result.ok, (seed, result.failures)
        met.update(result.statistics)
    shows = {"links": "client_messages_cut", "slow-disks": "disks_slow", "clients": "registers_too_late"}
    assert met[shows.get(name, "messages_late")] > 0


def test_a_superblock_write_that_failed_is_made_again_by_the_same_process() -> None:
    met: Counter[str] = Counter()
    for seed in range(4):
        result = simulate(seed, requests=60, profile=replace(FAILING, superblock_failure=0.2))
        assert result.ok, (seed, result.failures)
        met.update(result.statistics)
    assert met["superblock_writes_failed"] > met["superblock_writes_unknown"] > 0


def test_budgets_grow_with_the_requests() -> None:
    assert [budget_ticks(100, requests) for requests in (0, 200, 201, 2_000)] == [100, 100, 200, 1_000]
