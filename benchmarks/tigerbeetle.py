"""How fast TigerBeetle's logs are audited, on logs joined to a size: lines/s, peak memory, share of parsing.

The configurations of the logs are compiled before that, which takes seconds, once on a machine.

python -m benchmarks.tigerbeetle [LOGS…] [--megabytes 1000] [--engine spark|local] [--workers 2]
python -m benchmarks.tigerbeetle --megabytes 400 --record    # all engines, into docs/tigerbeetle.md
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import click

from benchmarks.figures import record
from benchmarks.watch import watch
from viewproof.api.audit import audit
from viewproof.refinement.discovery import survey
from viewproof.refinement.text_lines import Segment, open_log
from viewproof.refinement.tigerbeetle.parse import Parser
from viewproof.refinement.tigerbeetle.profile import COLUMNS_OF_ROWS, JULY, JUNE, SUFFIXES
from viewproof.refinement.tigerbeetle.reading import Lines
from viewproof.refinement.tigerbeetle.source import Source

ALLOW = ("view.acks_survive_view", "view.solo_keeps_view")
"""With these the shipped logs are judged to their ends."""
WAYS = (("one worker", "local", 1), ("two workers", "local", 2), ("Spark, two cores", "spark", 2))
"""What is recorded: name, engine, workers."""
SHIPPED = Path(__file__).resolve().parents[2] / "shared" / "traces" / "real"


def join(files: tuple[str, ...], megabytes: int, target: Path) -> tuple[int, int]:
    """Write the logs one after the other, again and again, until the size is reached; bytes and lines written."""
    size, lines = 0, 0
    with target.open("wb") as out:
        while size < megabytes * 1_000_000:
            for file in files:
                with open_log(file) as stream:
                    content = stream.read()
                size += out.write(content)
                lines += content.count(b"\n")
    return size, lines


def parsing(files: tuple[str, ...]) -> float:
    """Processor seconds a line to match the logs' lines with the tables."""
    lines, seconds = 0, 0.0
    for file in files:
        blocks = list(Lines(Segment(file)).blocks())
        cluster = Source((JUNE, JULY), COLUMNS_OF_ROWS).find_cluster(b"".join(blocks))
        if cluster is None:
            continue
        parser = Parser(cluster.family.table)
        started = time.process_time()
        for block in blocks:
            lines += max(last for _, last in parser.rows(block, 1))
        seconds += time.process_time() - started
    return seconds / lines


def judge(target: Path, engine: str, workers: int, out: Path) -> None:
    """Judge the joined log, in a process of its own; its figures go to `out`."""
    more: dict[str, Any] = {"workers": workers} if engine == "local" else {"master": f"local[{workers}]"}
    report = audit(str(target), input="tigerbeetle", allow=ALLOW, engine=engine, **more)
    figures = {
        "verdict": report.verdict,
        "runs": len(report.verdicts),
        "seconds": report.seconds,
        "spent": sum(report.spent.values()),
    }
    out.write_text(json.dumps(figures), encoding="utf-8")


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("logs", nargs="*", default=[str(SHIPPED)])
    arguments.add_argument("--megabytes", type=int, default=1000)
    arguments.add_argument("--engine", choices=("spark", "local"), default="spark")
    arguments.add_argument("--workers", type=int, default=2)
    arguments.add_argument("--record", action="store_true", help="all engines, into docs/tigerbeetle.md")
    arguments.add_argument("--into", help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.into:
        judge(Path(given.logs[0]), given.engine, given.workers, Path(given.into))
        return
    os.environ.setdefault("VSR_REPLAY", "compiled")
    files = survey(given.logs, "tigerbeetle", SUFFIXES).files
    if os.environ["VSR_REPLAY"] == "compiled":
        started = time.perf_counter()
        audit(*files, input="tigerbeetle", allow=ALLOW)
        click.echo(
            f"configurations compiled, or loaded, and the logs judged once: {time.perf_counter() - started:.1f} s"
        )
    a_line = parsing(files)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "joined.log"
        size, lines = join(files, given.megabytes, target)
        text = f"{size / 1e6:,.0f} MB, {lines:,} lines"
        if not given.record:
            measure(target, lines, given.engine, given.workers, a_line)
            click.echo(text)
            return
        rows = [(name, measure(target, lines, engine, workers, a_line)) for name, engine, workers in WAYS]
    command = f"python -m benchmarks.tigerbeetle --megabytes {given.megabytes} --record"
    record("tigerbeetle", "speed", ("audit", "lines/s"), rows, command, f"{text}; configurations compiled before.")


def measure(target: Path, lines: int, engine: str, workers: int, a_line: float) -> str:
    """Have a joined log judged, and print what that took; lines a second. `a_line`: processor seconds to match one."""
    out = target.with_name("figures.json")
    own = ["-m", "benchmarks.tigerbeetle", str(target), "--into", str(out)]
    watched = watch([sys.executable, *own, "--engine", engine, "--workers", str(workers)])
    if watched.exit_code:
        raise SystemExit(f"the audit failed with exit code {watched.exit_code}")
    figures = json.loads(out.read_text(encoding="utf-8"))
    seconds, spent = figures["seconds"], figures["spent"]
    click.echo(f"{figures['runs']} runs: {figures['verdict']}")
    click.echo(
        f"{engine}, {workers} workers: {lines / seconds:,.0f} lines/s in {seconds:.1f} s "
        f"({watched.wall_seconds:.1f} s with the start of the engine; others used {watched.others_cores:.1f} cores)"
    )
    click.echo(
        f"processor time {watched.cpu_seconds:.1f} s in all, {spent:.1f} s of it to read and judge "
        f"({lines / spent:,.0f} lines/s), {a_line * lines:.1f} s of that ({100 * a_line * lines / spent:.0f} %) "
        "to match lines with the tables"
    )
    click.echo(f"peak memory of all its processes {watched.peak_mib:,.0f} MiB")
    return f"{lines / seconds:,.0f}"


if __name__ == "__main__":
    main()
