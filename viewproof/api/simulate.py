"""Simulated runs of the replica: the same seed gives the same run, byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from viewproof.impl.groups.group import SINGLE, Group, parse_groups
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.sim.groups import simulate_groups
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import CLIENT_PROFILES, FEATURES_CHOICES
from viewproof.impl.sim.run import SimResult
from viewproof.refinement.discovery import is_trace
from viewproof.refinement.workers import in_processes


@dataclass(frozen=True, slots=True)
class Plan:
    """What each seed runs with; see `simulate`."""

    replicas: int = 3
    clients: int = 3
    requests: int = 200
    faults: tuple[str, ...] = ()
    out: Path | None = None
    parquet: bool = False
    client_profile: str | None = None
    features: str | None = None
    groups: tuple[Group, ...] = (SINGLE,)
    rot: bool = True
    profile: str | None = None


def simulate(
    seed: int = 1,
    *,
    runs: int = 1,
    replicas: int = 3,
    clients: int = 3,
    requests: int = 200,
    faults: Iterable[str] = (),
    profile: str | None = None,
    client_profile: str | None = None,
    features: str | None = None,
    groups: str = SINGLE.name,
    rot: bool = True,
    out: str | Path | None = None,
    parquet: bool = False,
    workers: int = 1,
) -> list[SimResult]:
    """Run `runs` seeds from `seed` on, under a faulty network, disks and crashes; one result per seed and group.

    A result: `ok` (no checker failed, else `failures` say what), `events` and `answered` requests (numbers), `ticks`
    (virtual time), `statistics` (how often each fault and rare situation occurred), `trace` (the directory of its trace
    files, None without `out`), `seed` and `run`.

    `clients` and `requests` are numbers per run; `faults` are names of docs/faults.md that the replica knows; `profile`
    names what the runs are hard on, `client_profile` how clients are remembered, `features` who supports them: each
    drawn from the seed unless given (`vsr simulate --help` lists the names). `groups` as there, such as
    "metadata,partitions". `out` is where traces go, one directory per run, as NDJSON, or Parquet with `parquet`.
    `workers` are processes, which import the main module again: a script needs `if __name__ == "__main__"`.

    Raises `ConfigurationError` for impossible numbers and names, `FaultError` for an unknown fault, `OSError` for an
    `out` that cannot be written.
    """
    if runs < 1 or workers < 1:
        raise ConfigurationError("runs and workers must be at least 1")
    for word, value, known in (
        ("client profile", client_profile, CLIENT_PROFILES),
        ("features", features, FEATURES_CHOICES),
        ("profile", profile, tuple(NAMED_PROFILES)),
    ):
        if value is not None and value not in known:
            raise ConfigurationError(f"unknown {word} {value}; there are: {', '.join(known)}")
    if parquet and out is None:
        raise ConfigurationError("parquet says how traces are written; out says where, and is missing")
    plan = Plan(
        replicas, clients, requests, tuple(dict.fromkeys(faults)), None if out is None else Path(out), parquet,
        client_profile, features, parse_groups(groups), rot, profile,
    )  # fmt: skip
    return [result for of_seed in run_seeds(range(seed, seed + runs), plan, workers) for result in of_seed]


def run_seeds(seeds: Sequence[int], plan: Plan, workers: int = 1) -> Iterator[list[SimResult]]:
    """The runs of each seed, in order of the seeds, as they are done."""
    run = partial(run_seed, plan=plan)
    if workers == 1 or len(seeds) == 1:
        yield from map(run, seeds)
        return
    yield from in_processes(run, seeds, min(workers, len(seeds)))


def run_seed(seed: int, plan: Plan) -> list[SimResult]:
    """The run of one seed, one for each group. Other traces beside it are removed, as an audit would read them too.

    They are of an earlier run of the seed, with more replicas or in the other format, or, with Parquet, its NDJSON.
    """
    found = list(
        simulate_groups(
            seed,
            groups=plan.groups,
            replicas=plan.replicas,
            clients=plan.clients,
            requests=plan.requests,
            faults=frozenset(plan.faults),
            profile=None if plan.profile is None else NAMED_PROFILES[plan.profile],
            client_profile=plan.client_profile,
            features=plan.features,
            rot=plan.rot,
            out=plan.out,
            parquet=plan.parquet,
        ).values()
    )
    suffix = "parquet" if plan.parquet else "ndjson"
    written = {f"replica-{replica}.{suffix}" for replica in range(plan.replicas)}
    for result in found:
        for file in () if result.trace is None else result.trace.glob("replica-*"):
            if is_trace(file.name) and file.name not in written:
                file.unlink()
    return found
