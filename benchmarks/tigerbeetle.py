"""How fast TigerBeetle's logs are audited: lines/s by parsing alone and in all, memory, on logs joined to a size.

python -m benchmarks.tigerbeetle ../shared/traces/real --megabytes 1000
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path

import click

from refinement.tigerbeetle.audit import audit, find_cluster
from refinement.tigerbeetle.inputs import survey_logs
from refinement.tigerbeetle.parse import Parser
from refinement.tigerbeetle.reading import Lines, Segment, open_log
from refinement.verdict import AuditOptions

ALLOW = ("view.acks_survive_view", "view.solo_keeps_view")
"""With these the shipped logs are judged to their ends."""


def join(files: tuple[str, ...], megabytes: int, target: Path) -> int:
    """Write the logs one after the other, again and again, until the size is reached; bytes written."""
    size = 0
    with target.open("wb") as out:
        while size < megabytes << 20:
            for file in files:
                with open_log(file) as stream:
                    size += out.write(stream.read())
    return size


def parsing(files: tuple[str, ...]) -> tuple[int, float]:
    """Lines, and processor seconds to match them with the tables."""
    lines, seconds = 0, 0.0
    for file in files:
        content = [line for chunk in Lines(Segment(file)).chunks() for line in chunk]
        cluster = find_cluster(content)
        if cluster is None:
            continue
        parser = Parser(cluster.family.table)
        started = time.process_time()
        for number, line in enumerate(content):
            parser.match(line, number)
        seconds += time.process_time() - started
        lines += len(content)
    return lines, seconds


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("logs", nargs="+")
    arguments.add_argument("--megabytes", type=int, default=200)
    arguments.add_argument("--workers", type=int, default=2)
    given = arguments.parse_args()
    files = survey_logs(given.logs).files
    lines, seconds = parsing(files)
    click.echo(f"matching alone: {lines / seconds:,.0f} lines/s of processor time")
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "joined.log"
        size = join(files, given.megabytes, target)
        with target.open("rb") as stream:
            total = sum(1 for _ in stream)
        report = audit([str(target)], AuditOptions("core", ALLOW), workers=given.workers)
    spent = sum(report.spent.values())
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    click.echo(f"{size / 1e6:,.0f} MB, {total:,} lines, {len(report.verdicts)} runs: {report.verdict}")
    click.echo(f"{report.seconds:.1f} s, {total / report.seconds:,.0f} lines/s with {given.workers} workers")
    click.echo(
        f"{spent:.1f} s of processor time, {total / spent:,.0f} lines/s of it; peak of a process {peak >> 10} MB"
    )


if __name__ == "__main__":
    main()
