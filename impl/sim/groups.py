"""Simulated runs of several consensus groups in the same processes: each group is a run of its own, with its trace.

The groups share the network's partitions, and every crash and restart of a process; their journals are their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

from viewproof.impl.faults import quorums_with
from viewproof.impl.groups.group import BOTH_PLANES, SINGLE, Group
from viewproof.impl.interface.durable import ConfigurationError, Quorums, quorums_default
from viewproof.impl.sim.cluster import SimCluster
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import SimResult, core_size, profile_of_run, run_phases, sim_result, stopped_by


def simulate_groups(
    seed: int,
    *,
    groups: Sequence[Group] = BOTH_PLANES,
    replicas: int = 3,
    clients: int = 3,
    requests: int = 200,
    quorums: Quorums | None = None,
    profile: SimProfile | None = None,
    client_profile: str | None = None,
    features: str | None = None,
    rot: bool = True,
    faults: frozenset[str] = frozenset(),
    out: Path | None = None,
    parquet: bool = False,
) -> dict[Group, SimResult]:
    """Runs `requests` in each group under `seed` and judges each; as `impl.sim.simulate`, per group. A single group
    takes the profile's plane.

    The trace of a group goes to `out/seed-<seed>.<group>/`.
    """
    if min(replicas, clients) < 1 or requests < 0 or seed < 0:
        raise ConfigurationError("replicas and clients must be at least 1, requests and seed at least 0")
    in_force = quorums_with(faults)(quorums or quorums_default(replicas), replicas)
    random = Random(seed)
    drawn = profile_of_run(f"seed-{seed}", random, clients, profile, client_profile, features, rot=rot)
    core_size_min = core_size(drawn, in_force, replicas)
    clusters: dict[Group, SimCluster] = {}
    for group in groups:
        own = drawn if group == SINGLE else replace(drawn, plane=group.plane)
        clusters[group] = SimCluster(
            config=replace(own.replica_config(group.run(f"seed-{seed}")), namespace=group.namespace),
            faults=faults,
            replica_count=replicas,
            quorums=quorums,
            client_count=max(clients, drawn.clients_min),
            requests=requests,
            profile=own,
            random=random,
            record=out is not None,
            network=next(iter(clusters.values())).network if clusters else None,
        )
    for cluster in clusters.values():
        cluster.mates = tuple(mate for mate in clusters.values() if mate is not cluster)
    failure = stopped_by(lambda: run_phases(tuple(clusters.values()), requests, core_size_min))
    return {group: sim_result(seed, cluster, failure, out, parquet) for group, cluster in clusters.items()}
