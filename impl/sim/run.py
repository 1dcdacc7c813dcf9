"""One simulated run from a seed: a safety phase with faults, a liveness phase without, the verdict, the trace.

The same arguments give the same run, byte for byte.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

from viewproof.impl.faults import quorums_with
from viewproof.impl.interface.checks import ContradictionError
from viewproof.impl.interface.durable import ConfigurationError, Quorums, quorums_default
from viewproof.impl.sim.checkers import Failure
from viewproof.impl.sim.cluster import SimCluster
from viewproof.impl.sim.nemesis import Nemesis
from viewproof.impl.sim.profile import SimProfile, client_profile_draw, profile_draw, storage_profile_draw
from viewproof.impl.sim.storage import StorageError
from viewproof.impl.storage.records import JournalError
from viewproof.impl.trace.files import read_ndjson
from viewproof.impl.trace.parquet import export_parquet

BUDGET_REQUESTS = 200
"""Requests for which the profile's ticks are meant."""

SAFETY_PART = 0.75
"""Part of the requests after which the liveness phase begins."""


@dataclass(frozen=True, slots=True)
class SimResult:
    """The outcome of a run.

    `ok`: no checker failed; `abandoned`: requests whose session ended, or whose reply came too late to be kept;
    `statistics`: how often each fault, step of a view change and rare situation (`impl.sim.situations`) occurred;
    `trace`: the directory of the trace files, None if none were asked for; `ticks`: length of the run.
    """

    seed: int
    run: str
    ok: bool
    failures: list[Failure]
    events: int
    ticks: int
    answered: int
    abandoned: int = 0
    statistics: dict[str, int] = field(default_factory=dict)
    trace: Path | None = None


def simulate(
    seed: int,
    *,
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
) -> SimResult:
    """Runs the cluster under `seed` and judges it.

    `profile` is drawn from the seed unless given, and may ask for more clients than `clients`; so is
    `client_profile`, one of `CLIENT_PROFILES`, unless it or `profile` is given; `features`, one of `FEATURES_CHOICES`,
    takes the place of the profile's; `rot`: a part of the drawn profiles has disks that rot; `quorums` are majorities
    unless given.
    With `out`, the trace goes to `out/seed-<seed>/replica-<node>.ndjson` (replacing what was there), with `parquet`
    also to `.parquet` beside it. Raises `ConfigurationError` for impossible numbers, `FaultError` for an unknown
    fault, `OSError` for an unwritable `out`.
    """
    if min(replicas, clients) < 1 or requests < 0 or seed < 0:
        raise ConfigurationError("replicas and clients must be at least 1, requests and seed at least 0")
    in_force = quorums_with(faults)(quorums or quorums_default(replicas), replicas)
    random = Random(seed)
    run = f"seed-{seed}"
    drawn = profile_of_run(run, random, clients, profile, client_profile, features, rot=rot)
    core_size_min = core_size(drawn, in_force, replicas)
    cluster = SimCluster(
        config=drawn.replica_config(run),
        faults=faults,
        replica_count=replicas,
        quorums=quorums,
        client_count=max(clients, drawn.clients_min),
        requests=requests,
        profile=drawn,
        random=random,
        record=out is not None,
    )
    stopped = stopped_by(lambda: run_phases((cluster,), requests, core_size_min))
    return sim_result(seed, cluster, stopped, out, parquet)


def core_size(profile: SimProfile, quorums: Quorums, replicas: int) -> int:
    """How many replicas must come back in the end. Raises `ConfigurationError` if those that may be are too few."""
    least = max(quorums.replication, quorums.view_change, replicas // 2 + 1)
    if profile.may_shut_out and replicas - 1 < least:
        raise ConfigurationError(f"one replica may be shut out under this profile: of {replicas}, {least} are needed")
    return least


def profile_of_run(
    run: str,
    random: Random,
    clients: int,
    profile: SimProfile | None,
    client_profile: str | None,
    features: str | None,
    *,
    rot: bool = True,
) -> SimProfile:
    """The profile of a run: what is given, else drawn, each kind by a generator of its own."""
    drawn = profile if profile is not None else profile_draw(random)
    if profile is None or client_profile is not None:
        count = max(clients, drawn.clients_min)
        drawn = client_profile_draw(drawn, client_profile, count, Random(f"clients of {run}"))
    if profile is None:
        drawn = storage_profile_draw(drawn, Random(f"storage of {run}"), rot=rot)
    return drawn if features is None else replace(drawn, features=features)


def stopped_by(phases: Callable[[], None]) -> Failure | None:
    """Runs the phases. The failure, if a replica contradicts itself, or others contradict what it executed, which stops
    the run; its trace so far is kept.
    """
    try:
        phases()
    except (ContradictionError, AssertionError, LookupError, JournalError, StorageError, ValueError) as error:
        return Failure("replica", f"{type(error).__name__}: {error}")
    return None


def sim_result(seed: int, cluster: SimCluster, stopped: Failure | None, out: Path | None, parquet: bool) -> SimResult:
    """The verdict on a cluster's run, which `stopped` ended early, if not None; writes the trace, if asked for."""
    if stopped is None:
        failures = cluster.finish()
    else:
        failures = [Failure(stopped.checker, f"tick {cluster.now}: {stopped.message}")]
    failures += [failure for checker in cluster.checkers for failure in checker.failures if failure not in failures]
    run = cluster.config.run
    trace = None if out is None else _write_trace(cluster, out / run, parquet)
    return SimResult(
        seed=seed,
        run=run,
        ok=not failures,
        failures=failures,
        events=cluster.events,
        ticks=cluster.now,
        answered=len(cluster.clients.answers),
        abandoned=cluster.clients.abandoned,
        statistics=dict(sorted(cluster.statistics.items())),
        trace=trace,
    )


def run_phases(clusters: Sequence[SimCluster], requests: int, core_size_min: int) -> None:
    """Both phases of the groups of one set of processes; faults strike all groups of a process together."""
    first = clusters[0]
    first.spare = len(first.replicas) - core_size_min if len(clusters) == 1 else 0
    if len(clusters) == 1:
        first.let_rot()
    nemesis = Nemesis(first)
    for cluster in clusters:
        cluster.start()
    safety_end = budget_ticks(first.profile.safety_ticks_max, requests)
    enough = int(requests * SAFETY_PART)
    while first.now < safety_end and any(cluster.clients.completed < enough for cluster in clusters):
        for cluster in clusters:
            cluster.step()
    safety = first.now
    nemesis.stop(core_size_min)
    end = safety + budget_ticks(first.profile.liveness_ticks_max, requests)
    while first.now < end:
        for cluster in clusters:
            cluster.step()
        if first.now % 8 == 0 and all(not each.clients.requests_left and each.settled() for each in clusters):
            break
    for cluster in clusters:
        cluster.statistics["ticks_safety"] = safety
        cluster.statistics["ticks_liveness"] = first.now - safety


def budget_ticks(ticks: int, requests: int) -> int:
    """How long a phase may last: so many ticks for every 200 requests, begun or whole."""
    return ticks * max(1, -(-requests // BUDGET_REQUESTS))


def _write_trace(cluster: SimCluster, directory: Path, parquet: bool) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    for node, lines in enumerate(cluster.lines):
        data = b"".join(lines if cluster.border is None else cluster.border.lines_of_member(node, lines))
        (directory / f"replica-{node}.ndjson").write_bytes(data)
        if parquet:
            export_parquet(read_ndjson(io.BytesIO(data)), directory / f"replica-{node}.parquet")
    return directory
