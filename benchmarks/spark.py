"""How fast the audit is in Spark, next to the local engine and to what Spark does with the same table without it.

    python -m benchmarks.spark                              # 2,000,000 events of each shape
    python -m benchmarks.spark --events 4000000 --repeat 1 --cluster --make      # the data alone, some minutes
    python -m benchmarks.spark --events 4000000 --repeat 1 --cluster --record    # the table of docs/spark.md
    python -m benchmarks.spark --events 100000000 --repeat 1 --files --table large --record    # another, an hour

Three shapes in Parquet (`spark_data`): many small runs, one giant run, a Zipf mix. Each is audited by `local`,
`local --workers 2` and Spark `local[2]` on files, and as a DataFrame (`viewproof.spark.audit`); `floor` is what Spark
`local[2]` takes for a `count`, and for a window `lag` over the same table by run and clock, which is the least that a
judgement of each event after the one before it costs there. `--cluster` audits the small runs on a standalone cluster
of 1, 2 and 4 worker processes of one core each.

`seconds` leave out loading Python and starting Java and the session; `MiB` is the peak of the whole process tree. For
the validation of traces by TLC 16 to 20 events a second were published; the last column says how many times 20 it is.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path

from benchmarks.figures import record
from benchmarks.spark_cluster import standalone_cluster
from benchmarks.spark_data import shapes
from benchmarks.text import table
from benchmarks.watch import Watched, watch

_VSR = (sys.executable, "-m", "viewproof", "audit")
TLC_EVENTS_PER_SECOND = 20
WARM = 1_000_000
"""Events of each shape that are audited before, so that what it needs is compiled."""
HEADER = ("shape", "what", "events", "seconds", "events/s", "cpu s", "MiB", "others", "× TLC")
FILES = {
    "local": (),
    "local, 2 workers": ("--workers", "2"),
    "spark local[2], files": ("--engine", "spark", "--master", "local[2]"),
}
CODE = {
    "spark local[2], DataFrame": """
verdicts = vsr.audit(events, tasks=8, plan=vsr.plan(events, 8))
answer = {row["verdict"]: row["count"] for row in verdicts.groupBy("verdict").count().collect()}
assert set(answer) == {"conforms"}, answer
""",
    "floor: count": """
answer = events.select(*(fn.count(name) for name in events.columns)).collect()
""",
    "floor: window lag": """
order = Window.partitionBy("run").orderBy("clock", "node", "seq")
lagged = events.withColumn("before", fn.lag(fn.struct(*events.columns)).over(order))
answer = lagged.agg(fn.count("before"), fn.sum(fn.col("before.seq")), fn.max(fn.col("before.head"))).collect()
""",
}
"""What is measured inside a session, on the DataFrame `events`."""
_PROGRAM = """
import json, sys, time
from pyspark.sql import Window, functions as fn
from viewproof import spark as vsr
session = vsr.start_session("local[2]", conf={"spark.sql.shuffle.partitions": "8"})
events = session.read.option("recursiveFileLookup", "true").parquet(sys.argv[1])
began = time.monotonic()
exec(sys.argv[3])
json.dump({"seconds": time.monotonic() - began}, open(sys.argv[2], "w"))
session.stop()
"""


def audited(
    words: Sequence[str], data: Path, environment: Mapping[str, str] | None = None
) -> tuple[float, int, Watched]:
    """Seconds, events and what it took, of an audit of files; all of it must conform."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "report.json"
        watched = watch((*_VSR, *words, "--json", str(result), str(data)), environment)
        if watched.exit_code:
            raise SystemExit(f"vsr audit {' '.join(words)} {data}: exit code {watched.exit_code}, expected 0")
        report = json.loads(result.read_text())
        return float(report["seconds"]), int(report["events"]), watched


def run_inside(code: str, data: Path) -> tuple[float, Watched]:
    """Seconds of a piece of code inside a session, and what its process took."""
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "seconds.json"
        watched = watch((sys.executable, "-c", _PROGRAM, str(data), str(result), code))
        if watched.exit_code:
            raise SystemExit(f"exit code {watched.exit_code} of{code}")
        return float(json.loads(result.read_text())["seconds"]), watched


def measured(shape: str, data: Path, repeat: int, what: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The rows of one shape: the median of several."""
    events = 0
    for name, words in FILES.items():
        if name in what:
            found = sorted((audited(words, data) for _ in range(repeat)), key=lambda one: one[0])
            seconds, events, watched = found[statistics.median_low(range(repeat))]
            yield cells(shape, name, events, seconds, watched)
    for name, code in CODE.items():
        if name in what:
            inside = sorted((run_inside(code, data) for _ in range(repeat)), key=lambda one: one[0])
            seconds, watched = inside[statistics.median_low(range(repeat))]
            yield cells(shape, name, events, seconds, watched)


def on_clusters(data: Path, workers: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """The rows of standalone clusters; their processes are not of the tree that is watched."""
    for count in workers:
        with tempfile.TemporaryDirectory() as folder, standalone_cluster(Path(folder), count) as master:
            words = ("--engine", "spark", "--master", master, "--conf", "spark.driver.host=127.0.0.1")
            seconds, events, watched = audited(words, data)
            row = cells("small", f"spark, {count} workers of a cluster", events, seconds, watched)
            yield (*row[:5], "", "", row[7], row[8])


def cells(shape: str, what: str, events: int, seconds: float, watched: Watched) -> tuple[str, ...]:
    """A row of the table."""
    speed = events / seconds
    return (
        shape, what, f"{events:,}", f"{seconds:.1f}", f"{speed:,.0f}", f"{watched.cpu_seconds:.1f}",
        f"{watched.peak_mib:,.0f}", f"{watched.others_cores:.1f}", f"{speed / TLC_EVENTS_PER_SECOND:,.0f}",
    )  # fmt: skip


def main() -> None:
    """Parse options, measure, print."""
    every = [*FILES, *CODE]
    parser = argparse.ArgumentParser(prog="benchmarks.spark", description="Speed of the audit in Spark.")
    parser.add_argument("--events", type=int, default=2_000_000, help="events of each shape (2,000,000)")
    parser.add_argument("--shape", action="append", choices=("small", "giant", "zipf"), help="only this one; again")
    parser.add_argument("--what", action="append", choices=every, help="only this one; may be repeated")
    parser.add_argument("--files", action="store_true", help="only what judges files: no DataFrame, no floor")
    parser.add_argument("--repeat", type=int, default=3, help="print the median of so many (3)")
    parser.add_argument("--cluster", action="store_true", help="also on clusters of 1, 2 and 4 workers")
    parser.add_argument(
        "--data", type=Path, default=Path("build") / "spark", help="where the data is kept (build/spark)"
    )
    parser.add_argument("--make", action="store_true", help="only make the data")
    parser.add_argument("--record", action="store_true", help="keep the table, and write it into docs/spark.md")
    parser.add_argument("--table", default="shapes", help="the name of that table (shapes)")
    options = parser.parse_args()
    what = options.what or (list(FILES) if options.files else every)
    root = options.data
    root.mkdir(parents=True, exist_ok=True)
    rows: list[tuple[str, ...]] = []
    os.environ.setdefault("PYTHONPATH", os.getcwd())
    for shape, make in shapes(root).items():
        if options.shape and shape not in options.shape:
            continue
        data = make(options.events)
        if options.make:
            continue
        audited((), make(min(options.events, WARM)), {"VSR_REPLAY": "compiled"})  # what is not in the cache
        clusters = (1, 2, 4) if options.cluster and shape == "small" else ()
        for row in chain(measured(shape, data, options.repeat, what), on_clusters(data, clusters)):
            sys.stderr.write(f"{', '.join(filter(None, row))}\n")
            rows.append(row)
    if options.make:
        return
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        words = ["--events", str(options.events), "--repeat", str(options.repeat), *["--cluster"][: options.cluster]]
        words += [word for shape in options.shape or () for word in ("--shape", shape)] + ["--files"][: options.files]
        words += [word for one in options.what or () for word in ("--what", f"'{one}'")]
        note = f"Medians of {options.repeat}. The columns are explained at the top of `benchmarks/spark.py`."
        record("spark", options.table, HEADER, rows, " ".join(("python -m benchmarks.spark", *words)), note)


if __name__ == "__main__":
    main()
