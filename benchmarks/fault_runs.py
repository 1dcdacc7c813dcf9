"""The known mistakes in the replica's simulated runs, and the table of all in docs/faults.md (`benchmarks.faults`)."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from viewproof.faults import records
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import SimResult, simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.verdict import AuditOptions, RunVerdict
from viewproof.spec.vsr.fault_models import FAULT_MODELS

HEADER = ("fault", "runs", "audit rejects", "first", "at", "simulator fails", "checkers")
TABLE_HEADER = ("fault", "the mistake [source]", "level", "in the spec", "in the replica")
MARK, END = "<!-- table of {} -->", "<!-- end of it -->"
BEGIN = MARK.format("benchmarks.faults")


@dataclass(frozen=True, slots=True)
class FaultRuns:
    """Runs of this profile ("": drawn from the seed) and size, from seed 0 on.

    `shows_in_trace`: the audit rejects the trace of a run. Else no event of it is wrong: the replicas stand still, or
    all make the same mistake in what a trace does not show, and the simulator says so. `outsider`: without the mistake
    one replica is shut out from the start and leaves no trace, so that the audit is inconclusive.
    """

    profile: str = ""
    replicas: int = 3
    requests: int = 80
    shows_in_trace: bool = True
    outsider: bool = False

    @property
    def sim_profile(self) -> SimProfile | None:
        """As `simulate` takes it."""
        return NAMED_PROFILES[self.profile] if self.profile else None

    def command(self, fault: str) -> str:
        """The command that makes these runs, but for their number and where the traces go."""
        words = ["vsr simulate --seed 0", f"--requests {self.requests}", f"--fault {fault}"]
        words += [f"--profile {self.profile}"] if self.profile else []
        words += [f"--replicas {self.replicas}"] if self.replicas != 3 else []
        return " ".join(words)


FAULT_RUNS = {fault.id: FaultRuns(**fault.runs) for fault in records().values() if fault.replica}
"""Per fault of the replica the runs in which it shows, as its record says; in the order of the catalogue."""


@dataclass
class Caught:
    """What audit and simulator say of runs with a fault: seeds, and what they name.

    `first`: the first run that the audit rejects, seed and number of events before the violation.
    """

    runs: int = 0
    rejected: int = 0
    failed: int = 0
    first: tuple[int, int] | None = None
    places: Counter[str] = field(default_factory=Counter)
    checkers: Counter[str] = field(default_factory=Counter)

    def add(self, seed: int, run: SimResult, verdict: RunVerdict) -> None:
        """One more run."""
        self.runs += 1
        self.failed += not run.ok
        self.checkers.update(sorted({failure.checker for failure in run.failures}))
        if verdict.verdict == "violates":
            violation = verdict.violations[0]
            self.rejected += 1
            self.first = self.first or (seed, violation.prefix_length)
            self.places[f"`{violation.action}`"] += 1

    @property
    def cells(self) -> tuple[str, ...]:
        """All columns but the first two of `HEADER`."""
        first = "–" if self.first is None else "seed {}, event {}".format(*self.first)
        return (f"{self.rejected} of {self.runs}", first, most(self.places), str(self.failed), most(self.checkers))

    @property
    def sentence(self) -> str:
        """The same in words."""
        audit = f"audit: {self.rejected} of {self.runs}"
        if self.first is not None:
            seed, events = self.first
            audit += f", first seed {seed} after {counted(events, 'event')}, at {most(self.places)}"
        return f"{audit}; simulator: {self.failed}" + (f" ({most(self.checkers)})" if self.failed else "")


def most(counted: Counter[str]) -> str:
    """The two most frequent."""
    return ", ".join(name for name, _ in counted.most_common(2)) or "–"


def caught(fault: str, runs: int) -> Caught:
    """Makes so many runs with a fault and judges them."""
    found = Caught()
    chosen = FAULT_RUNS[fault]
    for seed in range(runs):
        folder = Path(tempfile.mkdtemp(prefix="viewproof-"))
        try:
            run = simulate(
                seed,
                replicas=chosen.replicas,
                requests=chosen.requests,
                profile=chosen.sim_profile,
                faults=frozenset({fault}),
                out=folder,
            )
            log = ProblemLog()
            rows = [row for file in sorted(folder.rglob("*.ndjson")) for row in read_rows(str(file), log)]
            found.add(seed, run, check_run(run.run, sorted(rows, key=order_key), AuditOptions()))
        finally:
            shutil.rmtree(folder)
    return found


def kind(fault: str) -> str:
    """Which runs a fault is looked for in."""
    chosen = FAULT_RUNS[fault]
    words = [f"`{chosen.profile}`" if chosen.profile else "drawn"]
    return ", ".join(words + ([counted(chosen.replicas, "replica")] if chosen.replicas != 3 else []))


def counted(number: int, noun: str) -> str:
    """The number with the noun, in the plural where that is right."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def run_rows(faults: Sequence[str], runs: int) -> Iterator[tuple[str, ...]]:
    """The rows of `python -m benchmarks.faults --audit`."""
    for fault in faults:
        yield (fault, kind(fault), *caught(fault, runs).cells)


def table_rows(runs: int, searched: Callable[[str], tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """The rows of docs/faults.md, one per mistake; `searched`: what breaks, steps, states, as text."""
    for fault, record in records().items():
        spec = replica = "–"
        if fault in FAULT_MODELS:
            broken, steps, states, *_ = searched(fault)
            spec = f"`{FAULT_MODELS[fault].model}`: {broken} in {counted(int(steps), 'step')}, {states} states"
        if fault in FAULT_RUNS:
            replica = f"{kind(fault)}: {caught(fault, runs).sentence}"
        yield (f"`{fault}`", f"{record.replica or record.spec} [{record.source}]", record.level, spec, replica)


def write_table(file: Path, lines: Sequence[str], command: str = "benchmarks.faults") -> None:
    """Puts the lines in place of the file's table that the command makes. Raises `ValueError` if it has no mark of
    where that is.
    """
    text = file.read_text(encoding="utf-8")
    mark = MARK.format(command)
    before, begin, rest = text.partition(mark)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{file}: the table goes between the lines {mark} and {END}, which are missing")
    file.write_text("\n".join([before + begin, "", *lines, "", end + after]), encoding="utf-8")
