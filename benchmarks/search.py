"""How fast `vsr check` searches, and where the time goes: one command, one table.

    python -m benchmarks.search           # each row in a process of its own; minutes
    python -m benchmarks.search --record  # the table of docs/explicit-speed.md

Columns: the command's options; `distinct` states; `seconds` of the search, and those of compiling before it;
`distinct/s` and `generated/s`, of the search; `MiB` is the peak of the process; `others` are the cores that other
processes of the machine kept busy: where that is not near 0, the row is too slow.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import record
from benchmarks.text import table
from benchmarks.watch import watch

HEADER = ("vsr check", "distinct", "seconds", "compile s", "distinct/s", "generated/s", "MiB", "others")
ROWS = (
    "core --views 3 --ops 2 --max-states 8000000 --workers 1",
    "core --views 3 --ops 2 --max-states 8000000 --workers 2",
    "core --views 3 --ops 2 --workers 2",
    "core --views 3 --ops 2 --max-states 25000000 --memory 600M",
    "core --views 4 --ops 3 --requests 3 --fault state.getstate_truncates --invariant I1 --invariant I2",
    "core --views 2 --ops 2 --clients 2 --requests 1",
    "core --views 2 --ops 2 --clients 2 --requests 1 --symmetry Client",
)


def measure(row: str) -> tuple[str, ...]:
    """The cells of one command, searched in a process that compiles all of it anew."""
    with tempfile.TemporaryDirectory() as place:
        answer, cache = Path(place) / "answer.json", Path(place) / "cache"
        command = [sys.executable, "-m", "viewproof", "check", *row.split(), "--json", str(answer)]
        watched = watch(command, {"VSR_CACHE": str(cache)})
        found = json.loads(answer.read_text(encoding="utf-8"))
    seconds = max(float(found["seconds"]), 1e-9)
    return (
        f"`{row}`", f"{found['distinct']:,}", f"{seconds:.1f}", f"{found['compile_seconds']:.1f}",
        f"{found['distinct'] / seconds:,.0f}", f"{found['generated'] / seconds:,.0f}", f"{watched.peak_mib:,.0f}",
        f"{watched.others_cores:.1f}",
    )  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    """Parse options, measure, print."""
    parser = argparse.ArgumentParser(prog="benchmarks.search", description="How fast vsr check searches.")
    parser.add_argument("--row", action="append", help="only this, as one word; may be repeated")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/explicit-speed.md")
    options = parser.parse_args(words)
    rows = []
    for row in options.row or ROWS:
        sys.stderr.write(f"vsr check {row}\n")
        rows.append(measure(row))
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        note = "Compiled anew for each row; the states of a row are the same on every machine."
        record("search", "search", HEADER, rows, "python -m benchmarks.search --record", note)


if __name__ == "__main__":
    main()
