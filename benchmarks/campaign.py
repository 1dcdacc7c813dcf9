"""Simulated runs over all profiles, each audited: `python -m benchmarks.campaign --seed S --runs N`.

Seed s runs under the profile number s of the drawn ones and all named ones, taken in turn, in clusters of 3, 3, 5, 2, 4
and 3 replicas, in turn as well (never 2 where one may be shut out). A run fails if a checker of the simulator fails, or
if its audit does not conform; in `misconfigured` one replica is shut out from the start and leaves no trace, so that
audits of it are inconclusive, which the table says. Exit code 1 if a run failed, 4 if the time was up before.

With `--state FILE` what was run is kept in the file, also when it is interrupted, and the same command goes on there:
a hundred thousand runs (`--runs 100000`) are some hours, `--seconds S` at a time; `--jobs 2` takes two cores for them.
`--again` makes those that failed again, with the tree at hand, before it goes on; to be given only where what was
mended cannot make others fail. With `--record` the table is kept as the last one, and written into
docs/recovery-and-repair.md.
"""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Generator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import repeat
from pathlib import Path

import click

from benchmarks.figures import record
from benchmarks.text import table
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


def spare_the_collector() -> None:
    """What is loaded by now stays: each look at all of it is some part of a run's time."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


OUTCOMES = ("conforms", "inconclusive", "failed")
HEADER = ("profile", *OUTCOMES)
BLOCK = 10
"""Runs that each of several processes is given at a time."""


def all_judged(seed: int, runs: int, requests: int, jobs: int) -> Generator[tuple[SimResult, RunVerdict], None, None]:
    """So many runs, and their audits, in order, made by so many processes. To be closed if not all are taken."""
    spare_the_collector()
    if jobs == 1:
        yield from (judged(each, requests) for each in range(seed, seed + runs))
        return
    with ProcessPoolExecutor(jobs, initializer=spare_the_collector) as pool:
        for first in range(seed, seed + runs, jobs * BLOCK):
            seeds = range(first, min(first + jobs * BLOCK, seed + runs))
            yield from pool.map(judged, seeds, repeat(requests))


def replay(seed: int, requests: int) -> str:
    """The commands that make and audit one run again."""
    words = f"vsr simulate --seed {seed} --replicas {replicas_of(seed)} --requests {requests} --out replay"
    name = profile_of(seed)
    return f"{words}{f' --profile {name}' if name else ''}; vsr audit replay"


@dataclass
class Campaign:
    """What was run so far: seeds from `seed` to below `seed + done`, of so many requests.

    `verdicts`: profile and verdict, joined by a colon → runs; `failed`: how to make each failed run again; `mended`:
    the same of those that failed and no longer do, with the revision that they were made again with; `trees`: revision
    of this repository → runs made with it first.
    """

    seed: int
    requests: int
    done: int = 0
    events: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    mended: list[str] = field(default_factory=list)
    trees: dict[str, int] = field(default_factory=dict)

    @classmethod
    def begun(cls, file: Path | None, seed: int, requests: int) -> Campaign:
        """As it is in the file, or a new one. Raises click.UsageError if the file has another one."""
        if file is None or not file.exists():
            return cls(seed, requests)
        try:
            found = cls(**json.loads(file.read_text(encoding="utf-8")))
        except (ValueError, TypeError) as error:
            raise click.UsageError(f"{file}: not what --state wrote: {error}") from error
        if (found.seed, found.requests) != (seed, requests):
            raise click.UsageError(
                f"{file}: runs from seed {found.seed} with {found.requests} requests; asked for are those from seed"
                f" {seed} with {requests}: give the same numbers, or another file"
            )
        return found

    def keep(self, file: Path | None) -> None:
        """Writes it to the file, atomically."""
        if file is not None:
            new = file.with_suffix(file.suffix + ".new")
            new.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
            new.replace(file)

    def add(self, tree: str, result: SimResult, verdict: RunVerdict) -> tuple[str, ...]:
        """One more run. Returns what is wrong with it, in lines, none if nothing is."""
        self.trees[tree] = self.trees.get(tree, 0) + 1
        self.events += result.events
        self.done += 1
        return self._judge(result, verdict)

    def _judge(self, result: SimResult, verdict: RunVerdict) -> tuple[str, ...]:
        name = profile_of(result.seed)
        kind = str(verdict.verdict) if result.ok else "fails"
        key = f"{name or 'drawn'}:{kind}"
        self.verdicts[key] = self.verdicts.get(key, 0) + 1
        if kind == "conforms" or (kind == "inconclusive" and name in OUTSIDERS):
            return ()
        self.failed.append(f"{kind}: {replay(result.seed, self.requests)}")
        why = (*map(str, result.failures), *(found.message for found in verdict.violations), *verdict.missing)
        return (self.failed[-1], *(f"    {line}" for line in why[:SHOWN]))

    def make_again(self, tree: str) -> Generator[tuple[str, ...], None, None]:
        """Makes those that failed again; yields of each what is wrong with it, in lines."""
        before, self.failed = self.failed, []
        for text in before:
            kind, seed = text.partition(":")[0], int(text.split(" --seed ")[1].split()[0])
            self.verdicts[f"{profile_of(seed) or 'drawn'}:{kind}"] -= 1
            wrong = self._judge(*judged(seed, self.requests))
            self.mended += [] if wrong else [f"{text} ({tree})"]
            yield wrong

    def table(self) -> list[tuple[str, ...]]:
        """Runs by profile and outcome, those of all profiles last (HEADER)."""
        counts: dict[str, dict[str, int]] = {}
        for key, number in self.verdicts.items():
            name, _, kind = key.partition(":")
            for row in (name, "all"):
                found = counts.setdefault(row, dict.fromkeys(OUTCOMES, 0))
                found[kind if kind in found else "failed"] += number
        names = (*sorted(counts.keys() - {"all"}), "all")
        return [(name, *(f"{number:,}" for number in counts[name].values())) for name in names if name in counts]

    def summary(self) -> str:
        """Seeds, failures, events and trees."""
        text = f"{self.done:,} runs, seeds {self.seed} to {self.seed + self.done - 1}, {len(self.failed)} failed"
        text += f" ({len(self.mended)} more did so and no longer do)" if self.mended else ""
        return f"{text}; {self.events:,} events; by trees {', '.join(f'{t}: {n:,}' for t, n in self.trees.items())}"


def tree_at_hand() -> str:
    """The revision of this repository, with a plus if it was changed since; "" if there is none."""
    words = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--abbrev=12", "--dirty=+"]
    try:
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


@click.command(help=__doc__)
@click.option("--seed", type=click.IntRange(0), default=0, help="The first.")
@click.option("--runs", type=click.IntRange(1), default=len(PROFILES), help="How many in all, with those in the state.")
@click.option("--requests", type=click.IntRange(1), default=60)
@click.option("--seconds", type=click.FloatRange(0.0), help="No run is counted after so long.")
@click.option("--jobs", type=click.IntRange(1), default=1, help="How many processes make the runs.")
@click.option(
    "--state", type=click.Path(dir_okay=False, path_type=Path), help="What was run so far, to go on with another time."
)
@click.option("--again", is_flag=True, help="Make those that failed again, by the tree at hand.")
@click.option("--record", "kept", is_flag=True, help="Keep the table, and write docs/recovery-and-repair.md.")
def main(
    seed: int, runs: int, requests: int, seconds: float | None, jobs: int, state: Path | None, again: bool, kept: bool
) -> None:
    """Makes the runs; a line per failure at once, a table at the end."""
    found = Campaign.begun(state, seed, requests)
    tree, before, started = tree_at_hand(), found.done, time.monotonic()
    for wrong in found.make_again(tree) if again else ():
        click.echo("\n".join(wrong or ("no longer fails",)))
    made_now = all_judged(seed + before, max(0, runs - before), requests, jobs)
    try:
        while (seconds is None or time.monotonic() - started < seconds) and (made := next(made_now, None)):
            for line in found.add(tree, *made):
                click.echo(line)
            if found.done % PROGRESS_EVERY == 0:
                found.keep(state)
                text = f"{found.done:,} runs, {len(found.failed)} failed, {found.events:,} events"
                click.echo(f"{text}; {found.done - before:,} in {time.monotonic() - started:.0f} s", err=True)
    finally:
        made_now.close()
        found.keep(state)
    click.echo(f"{table(HEADER, found.table())}\n\n{found.summary()}")
    if kept:
        words = f"python -m benchmarks.campaign --seed {seed} --requests {requests} --runs {runs}"
        record("campaign", "campaign", HEADER, found.table(), f"{words} --state F --record", f"{found.summary()}.")
    raise SystemExit(1 if found.failed else 0 if found.done >= runs else 4)


if __name__ == "__main__":
    main()
