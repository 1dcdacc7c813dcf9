"""Three shapes of the same number of events in Parquet: many small runs, one giant run, and a Zipf mix of sizes.

Small runs are simulated ones under other names; large ones are a simulated stretch that is repeated (`giant_data`).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.giant_data import giant
from viewproof.impl.sim.run import simulate
from viewproof.refinement.parquet import write_parquet
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows

BASES = 12
"""Simulated runs of which the small ones are copies."""
REQUESTS = 100
RUNS_A_FILE = 50
LARGE = 200_000
"""From so many events on a run of the mix is one that was made long."""


def shapes(root: Path) -> dict[str, Callable[[int], Path]]:
    """Shape → what makes it: the folder with so many events, made unless it is there."""

    def made(name: str, fill: Callable[[Path, int], None]) -> Callable[[int], Path]:
        def folder(events: int) -> Path:
            found = root / f"{name}-{events}"
            if not found.exists():
                sys.stderr.write(f"making {found}\n")
                draft = root / f"draft-{name}"
                shutil.rmtree(draft, ignore_errors=True)
                draft.mkdir(parents=True)
                fill(draft, events)
                draft.rename(found)
            return found

        return folder

    return {
        "small": made("small", lambda folder, events: _copies(folder, root, events, count())),
        "giant": lambda events: giant(root, events),
        "zipf": made("zipf", lambda folder, events: _zipf(folder, root, events)),
    }


def _zipf(folder: Path, root: Path, events: int) -> None:
    """The n-th run has a share of 1 in n of what the first has, down to the size of a small run."""
    left, size, number = events, events // 4, 1
    while size // number >= LARGE and left > size // number:
        for file in sorted(giant(root, size // number).iterdir()):
            _renamed(file, f"large-{number}", folder / f"large-{number}" / file.name)
        left -= size // number
        number += 1
    _copies(folder, root, left, count())


def _copies(folder: Path, root: Path, events: int, numbers: Iterator[int]) -> None:
    """Copies of simulated runs, several in a file, until there are so many events."""
    bases = _bases(root)
    while events > 0:
        part = folder / f"part-{next(numbers):05}"
        part.mkdir()
        with pq.ParquetWriter(part / "events.parquet", bases[0].schema, compression="zstd") as writer:
            for _ in range(RUNS_A_FILE):
                number = next(numbers)
                table = bases[number % len(bases)]
                writer.write_table(_named(table, f"run-{number}"))
                events -= table.num_rows
                if events <= 0:
                    break


def _bases(root: Path) -> list[pa.Table]:
    folder = root / f"bases-{REQUESTS}"
    if not folder.exists():
        draft = root / "draft-bases"
        shutil.rmtree(draft, ignore_errors=True)
        for seed in range(BASES):
            result = simulate(seed, requests=REQUESTS, replicas=3 + 2 * (seed % 2), out=draft / "simulated")
            if not result.ok or result.trace is None:
                raise SystemExit(f"seed {seed}: the simulator's own checkers failed")
            rows = (row for file in sorted(result.trace.iterdir()) for row in read_rows(str(file), ProblemLog()))
            write_parquet(rows, str(draft / f"{seed:02}.parquet"))
        shutil.rmtree(draft / "simulated")
        draft.rename(folder)
    return [pq.read_table(file) for file in sorted(folder.glob("*.parquet"))]


def _named(table: pa.Table, run: str) -> pa.Table:
    return table.set_column(0, table.schema.field(0), pa.array([run] * table.num_rows, pa.string()))


def _renamed(file: Path, run: str, to: Path) -> None:
    to.parent.mkdir(exist_ok=True)
    with pq.ParquetFile(file) as source, pq.ParquetWriter(to, source.schema_arrow, compression="zstd") as writer:
        for group in range(source.num_row_groups):
            writer.write_table(_named(source.read_row_group(group), run))
