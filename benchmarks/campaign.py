"""Simulated runs over all profiles, each audited: `python -m benchmarks.campaign --seed S --runs N`.

Seed s runs under the profile number s of the drawn ones and all named ones, taken in turn, in clusters of 3, 3, 5, 2, 4
and 3 replicas, in turn as well (never 2 where one may be shut out). A run fails if a checker of the simulator fails, or
if its audit does not conform; in `misconfigured` one replica is shut out from the start and leaves no trace, so that
audits of it are inconclusive, which the table says. Exit code 1 if a run failed.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path

import click

from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.run import SimResult, simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.verdict import AuditOptions, RunVerdict

PROFILES: tuple[str, ...] = ("", *NAMED_PROFILES)
""""" is drawn from the seed."""

SIZES = (3, 3, 5, 2, 4, 3)
PROGRESS_EVERY = 100
SHOWN = 3
"""Reasons of a failed run, at most."""

OUTSIDERS = frozenset({"misconfigured"})
"""Profiles in which a replica leaves no trace."""


def profile_of(seed: int) -> str:
    """The profile under which a seed runs."""
    return PROFILES[seed % len(PROFILES)]


def replicas_of(seed: int) -> int:
    """How many replicas a seed's run has: three at least, where one of them may be shut out."""
    name, size = profile_of(seed), SIZES[seed // len(PROFILES) % len(SIZES)]
    return max(3, size) if name and NAMED_PROFILES[name].has_border else size


def judged(seed: int, requests: int) -> tuple[SimResult, RunVerdict]:
    """One run, and its audit."""
    name = profile_of(seed)
    folder = Path(tempfile.mkdtemp(prefix="viewproof-"))
    try:
        profile = NAMED_PROFILES[name] if name else None
        result = simulate(seed, replicas=replicas_of(seed), requests=requests, profile=profile, out=folder)
        log = ProblemLog()
        rows = [row for file in sorted(folder.rglob("*.ndjson")) for row in read_rows(str(file), log)]
        return result, check_run(result.run, sorted(rows, key=order_key), AuditOptions())
    finally:
        shutil.rmtree(folder)


def replay(seed: int, requests: int) -> str:
    """The commands that make and audit one run again."""
    words = f"vsr simulate --seed {seed} --replicas {replicas_of(seed)} --requests {requests} --out replay"
    name = profile_of(seed)
    return f"{words}{f' --profile {name}' if name else ''}; vsr audit replay"


@click.command(help=__doc__)
@click.option("--seed", type=click.IntRange(0), default=0, help="The first.")
@click.option("--runs", type=click.IntRange(1), default=len(PROFILES))
@click.option("--requests", type=click.IntRange(1), default=60)
def main(seed: int, runs: int, requests: int) -> None:
    """Makes the runs; a line per failure at once, a table at the end."""
    verdicts: Counter[tuple[str, str]] = Counter()
    events, failed, started = 0, 0, time.monotonic()
    for done, each in enumerate(range(seed, seed + runs)):
        if done and done % PROGRESS_EVERY == 0:
            seconds = time.monotonic() - started
            click.echo(f"{done:,} runs, {failed} failed, {events:,} events, {seconds:.0f} s", err=True)
        result, verdict = judged(each, requests)
        kind = str(verdict.verdict) if result.ok else "fails"
        verdicts[profile_of(each) or "drawn", kind] += 1
        events += result.events
        if kind == "conforms" or (kind == "inconclusive" and profile_of(each) in OUTSIDERS):
            continue
        failed += 1
        click.echo(f"{kind}: {replay(each, requests)}")
        why = (*map(str, result.failures), *(found.message for found in verdict.violations), *verdict.missing)
        click.echo("\n".join(f"    {line}" for line in why[:SHOWN]))
    for (name, kind), number in sorted(verdicts.items()):
        click.echo(f"{name:18} {kind:13} {number:6,}")
    click.echo(f"{runs:,} runs from seed {seed}, {failed} failed; {events:,} events")
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
