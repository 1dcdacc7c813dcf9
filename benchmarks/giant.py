"""One run of 50 million events: seconds with one and with two threads, the same report, and memory over time.

    python -m benchmarks.giant [--events 50000000] [--record]

The run (`benchmarks.giant_data`) is made once under `build/`. `--record` keeps the tables and writes them into
docs/audit-speed.md (`benchmarks.figures`).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.figures import record
from benchmarks.giant_data import giant
from benchmarks.text import table
from benchmarks.watch import Watched, watch

MEMORY_MIB = 4096
"""Beyond it the audit is stopped: the run was left to the replay that goes row by row and holds all of it."""
SHOWN = 10
"""Moments of the run at which its memory is shown."""


def audited(data: Path, workers: int) -> tuple[dict[str, Any], Watched]:
    """The JSON report of one audit, and what it took."""
    with tempfile.TemporaryDirectory(prefix="bench-giant-") as scratch:
        result = Path(scratch) / "result.json"
        command = [sys.executable, "-m", "viewproof", "audit", str(data), "--workers", str(workers)]
        watched = watch([*command, "--json", str(result)], {"VSR_REPLAY": "compiled"}, MEMORY_MIB)
        if watched.exit_code:
            raise SystemExit(f"exit code {watched.exit_code}, expected 0; {watched.peak_mib:,.0f} MiB at most")
        return json.loads(result.read_text()), watched


def without_times(value: Any) -> Any:
    """A report without what is different each time."""
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in ("seconds", "spent")}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def run(data: Path, recording: bool) -> None:
    """Measure, print, and keep."""
    found = {workers: audited(data, workers) for workers in (1, 2)}
    reports = [without_times(report) for report, _ in found.values()]
    if reports[0] != reports[1]:
        raise SystemExit("two threads report something else than one")
    one = found[1][0]["seconds"]
    rows = []
    for workers, (report, watched) in found.items():
        seconds, events = report["seconds"], report["events"]
        rows.append((
            str(workers), f"{events:,}", f"{seconds:.1f}", f"{events / seconds:,.0f}", f"{one / seconds:.2f}",
            f"{watched.cpu_seconds:.1f}", f"{watched.peak_mib:,.0f}", f"{watched.others_cores:.1f}",
        ))  # fmt: skip
    header = ("workers", "events", "seconds", "events/s", "× one", "cpu s", "MiB", "others")
    shares = [f"{number * 100 // SHOWN} %" for number in range(1, SHOWN + 1)]
    memory = [
        (str(workers), *(f"{mib:,.0f}" for mib in _over_time(watched))) for workers, (_, watched) in found.items()
    ]
    command = "python -m benchmarks.giant"
    for name, heads, lines, note in (
        ("giant", header, rows, "Both reports are the same."),
        ("memory", ("workers", *shares), memory, "Most MiB of the process in each tenth of its time."),
    ):
        sys.stdout.write(table(heads, lines) + "\n\n")
        if recording:
            record("audit", name, heads, lines, command, note)


def _over_time(watched: Watched) -> list[float]:
    """Most memory in each tenth of the time."""
    tenths = [[0.0] for _ in range(SHOWN)]
    for seconds, mib in watched.memory:
        tenths[min(SHOWN - 1, int(seconds / watched.wall_seconds * SHOWN))].append(mib)
    return list(map(max, tenths))


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.giant", description="One very large run: speed and memory.")
    parser.add_argument("--events", type=int, default=50_000_000, help="at least so many (50,000,000)")
    parser.add_argument("--record", action="store_true", help="keep the tables, and write docs/audit-speed.md")
    options = parser.parse_args()
    run(giant(Path("build"), options.events), options.record)


if __name__ == "__main__":
    main()
