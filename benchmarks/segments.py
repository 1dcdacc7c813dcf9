"""What cutting one run into segments would gain: each replayed from an unknown state, beside the compiled replay.

    python -m benchmarks.segments [--events 1000000] [--record]

The run (`benchmarks.giant_data`) is read and replayed by compiled code, on one thread: what is read can be shared out
among threads, the replay cannot. From a stretch in its middle the same events are judged by the replay that knows
cells which are not known, as a segment would be. `cores` is how many of them replay as fast as one thread of
compiled code reads and replays.
"""

from __future__ import annotations

import argparse
import sys
import time
from itertools import islice
from pathlib import Path

from benchmarks.figures import record
from benchmarks.giant import audited
from benchmarks.giant_data import giant
from benchmarks.text import table
from viewproof.refinement.checker import check_run
from viewproof.refinement.native import SYSTEM
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions

HEADER = ("what", "events", "cpu s", "events/s", "cores")
SEGMENT = 20_000


def segment(data: Path, events: int) -> tuple[list[Row], AuditOptions]:
    """So many events, from a tenth of the run on, and the configuration that its first event shows."""
    files = sorted(map(str, data.iterdir()))
    first = next(iter(read_rows(files[0], ProblemLog())))
    shown = SYSTEM.configuration_of(dict(zip(SYSTEM.names, first, strict=False)))
    rows = [row for file in files for row in islice(read_rows(file, ProblemLog()), 3 * events)]
    begin = max(row[INDEX["clock"]] for row in rows) // 3
    later = sorted((row for row in rows if row[INDEX["clock"]] >= begin), key=order_key)
    return later[:events], AuditOptions(configuration=tuple(shown.items()))


def run(data: Path, recording: bool) -> None:
    """Measure, print, and keep."""
    report, _ = audited(data, 1)
    events, spent = report["events"], report["spent"]
    check = spent.pop("check")
    read = sum(spent.values())
    rows, options = segment(data, SEGMENT)
    began = time.process_time()
    verdict = check_run(rows[0][0], rows, options)
    seconds = time.process_time() - began
    if verdict.verdict != "inconclusive" or verdict.events != len(rows):
        raise SystemExit(f"the segment {verdict.verdict} after {verdict.events} events, expected: inconclusive")
    one = events / (read + check)
    lines = [
        (what, f"{n:,}", f"{cpu:.1f}", f"{n / cpu:,.0f}", f"{one / (n / cpu):,.1f}" if n == len(rows) else "")
        for what, n, cpu in (
            ("read", events, read),
            ("compiled replay", events, check),
            ("both, one thread", events, read + check),
            ("a segment, from an unknown state", len(rows), seconds),
        )
    ]
    sys.stdout.write(table(HEADER, lines) + "\n")
    if recording:
        note = f"With enough threads for reading a run is judged {(read + check) / check:.1f} times as fast as by one."
        record("spark", "segments", HEADER, lines, f"python -m benchmarks.segments --events {events}", note)


def main() -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.segments", description="What cutting one run would gain.")
    parser.add_argument("--events", type=int, default=1_000_000, help="at least so many (1,000,000)")
    parser.add_argument("--data", type=Path, default=Path("build"), help="where the run is kept (build)")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/spark.md")
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    run(giant(options.data, options.events), options.record)


if __name__ == "__main__":
    main()
