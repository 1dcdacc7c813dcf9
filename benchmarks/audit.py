"""How fast the audit is, and how much memory it takes: one command, one table.

    python -m benchmarks.audit            # or: make bench, tools/dev bench
    python -m benchmarks.audit --record   # all tables of docs/audit-speed.md, with that of benchmarks.giant

Makes a data set of 1,000 simulated runs with faults on (more than 2 million events; kept under `build/`) and audits it,
as NDJSON (a file per replica) and as Parquet (a file per 50 runs), and then half of its runs, with each engine, each
time in a process of its own. `interp` gets a few runs, as it is slow. `reading` only reads the columns; `row by row` is
the replay that judges what compiled code leaves to it, and `× rows` how much faster than it an engine is on the same
data. Kinds of configurations are compiled before anything is measured; how long that took is said.

Columns: `seconds` go by in the audit, without `start` (loading Python, and where there is one starting and stopping
the Spark session); `cpu s` are processor seconds of all processes, Java included; `MiB` is the peak of the whole
process tree (shared memory counted once); then the shares of the processor seconds: reading files, sorting, checking
(replay, sequence numbers, facts), and the rest (start, Java, handing results over); `others` are the cores that other
processes of the machine kept busy meanwhile: where that is not near 0, `seconds` are too long, and `cpu s` tells more.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks import giant, giant_data
from benchmarks.data import HALVES, data_set, parquet_of
from benchmarks.figures import record
from benchmarks.text import table
from benchmarks.watch import Watched, watch

_VSR = (sys.executable, "-m", "viewproof")
ROWS = "row by row"
READING = "reading"
ENGINES = {
    "interp": ("--interp",),
    ROWS: ("--engine", "local"),
    READING: (),
    "local": ("--engine", "local"),
    "local, 2 workers": ("--engine", "local", "--workers", "2"),
    "spark, local[2]": ("--engine", "spark", "--master", "local[2]"),
}
"""Engine → options of `vsr audit`."""

HEADER = (
    "engine", "data", "runs", "events", "seconds", "events/s", "× rows", "start", "cpu s", "events/cpu s", "MiB",
    "read", "sort", "check", "rest", "others",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Measured:
    """One audit: its JSON report, and what its processes took."""

    report: dict[str, Any]
    watched: Watched

    @property
    def seconds(self) -> float:
        """Seconds of the audit without the start."""
        return float(self.report["seconds"])

    @property
    def speed(self) -> float:
        """Events a second."""
        return int(self.report["events"]) / self.seconds

    def cells(self, engine: str, data: str, rows: float | None) -> tuple[str, ...]:
        """The row of the table; `rows` is the speed of the replay row by row on the same data."""
        events, cpu = int(self.report["events"]), self.watched.cpu_seconds
        spent: dict[str, float] = self.report["spent"]
        shares = [spent.get(phase, 0.0) / cpu for phase in ("read", "sort", "check")]
        return (
            engine,
            data,
            f"{len(self.report['verdicts']):,}",
            f"{events:,}",
            f"{self.seconds:.1f}",
            f"{self.speed:,.0f}",
            "" if rows is None else f"{self.speed / rows:.1f}",
            f"{self.watched.wall_seconds - self.seconds:.1f}",
            f"{cpu:.1f}",
            f"{events / cpu:,.0f}",
            f"{self.watched.peak_mib:,.0f}",
            *(f"{share:.0%}" for share in (*shares, 1 - sum(shares))),
            f"{self.watched.others_cores:.1f}",
        )


def audit(engine: str, paths: list[str], how: str = "compiled") -> Measured:
    """One `vsr audit` (or only the reading) in a process of its own, watched."""
    with tempfile.TemporaryDirectory(prefix="bench-audit-") as scratch:
        result = Path(scratch) / "result.json"
        command = [*_VSR, "audit", *paths, *ENGINES[engine], "--json", str(result)]
        if engine == READING:
            command = [sys.executable, "-m", "benchmarks.reading", str(result), *paths]
        watched = watch(command, {"VSR_REPLAY": "python" if engine == ROWS else how})
        if watched.exit_code or not result.exists():
            raise SystemExit(f"{engine}: the audit ended with exit code {watched.exit_code}, expected 0")
        return Measured(json.loads(result.read_text()), watched)


def median(engine: str, paths: list[str], repeat: int) -> Measured:
    """The audit with the median time of several."""
    found = sorted((audit(engine, paths) for _ in range(repeat)), key=lambda measured: measured.seconds)
    return found[statistics.median_low(range(len(found)))]


def measured(engines: Sequence[str], data: Path, options: argparse.Namespace) -> Iterator[tuple[str, ...]]:
    """The rows of the table."""
    rows: dict[str, float] = {}
    for engine in engines:
        inputs = {"ndjson": [str(data)], "parquet": [str(parquet_of(data))], "ndjson, half": [str(data / HALVES[0])]}
        repeat = options.repeat
        if engine == "interp":
            few = sorted(map(str, (data / HALVES[0]).iterdir()))[: options.interp_runs]
            inputs, repeat = {"ndjson": few}, 1
        for name, paths in inputs.items():
            sys.stderr.write(f"measuring {engine} on {' '.join(paths)}\n")
            found = median(engine, paths, repeat)
            if engine == ROWS:
                rows[name] = found.speed
            yield found.cells(engine, name, rows.get(name) if engine != "interp" else None)


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.audit", description="Audit speed and memory, per engine.")
    parser.add_argument("--runs", type=int, default=1000, help="simulated runs (1000)")
    parser.add_argument("--requests", type=int, default=100, help="client requests per run (100)")
    parser.add_argument("--interp-runs", type=int, default=4, help="runs that interp gets (4)")
    parser.add_argument("--repeat", type=int, default=3, help="print the median of so many, interp excepted (3)")
    parser.add_argument("--engine", action="append", choices=ENGINES, help="only this one; may be repeated")
    parser.add_argument("--giant", type=int, default=50_000_000, help="events of the one large run (50,000,000)")
    parser.add_argument(
        "--record", action="store_true", help="keep the table and that of benchmarks.giant, and write docs"
    )
    parser.add_argument("--make", action="store_true", help="only make the data of all tables")
    options = parser.parse_args()
    data = data_set(Path("build") / "audit", options.runs, options.requests, workers=os.cpu_count() or 1)
    if options.make:
        parquet_of(data)
        giant_data.giant(Path("build"), options.giant)
        return
    first = audit("local", [str(data)])
    sys.stdout.write(f"the first audit, which compiles what is not in the cache: {first.seconds:.1f} s\n\n")
    rows = list(measured(options.engine or list(ENGINES), data, options))
    sys.stdout.write(table(HEADER, rows) + "\n\n")
    if options.record:
        note = f"Medians of {options.repeat}. The column names are explained at the top of `benchmarks/audit.py`."
        record("audit", "engines", HEADER, rows, "python -m benchmarks.audit", note)
        giant.run(giant_data.giant(Path("build"), options.giant), True)


if __name__ == "__main__":
    main()
