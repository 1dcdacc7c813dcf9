"""`vsr bench`: how fast the audit is, and how much memory it takes, on one generated data set."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from refinement.cli.output import json_option, note, save_json, steps
from refinement.reading import ProblemLog, discover, read_rows
from refinement.verdict import EXIT_CONFORMS, EXIT_ERROR

_SAMPLE_SECONDS = 0.25
_SELF = (sys.executable, "-c", "from refinement.cli import main; main()")
ENGINES = {
    "interp": ("--interp",),
    "local": ("--engine", "local"),
    "local-2": ("--engine", "local", "--workers", "2"),
    "spark": ("--engine", "spark"),
}
"""Engine → options of `vsr audit`."""

INTERP_RUNS = 10
"""Runs that `interp` gets, as it is slow."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One engine on the data set: `seconds` of the audit, `wall_seconds` of the whole process tree with its start."""

    engine: str
    verdict: str
    events: int
    seconds: float
    wall_seconds: float
    memory_mib: float | None

    @property
    def rate(self) -> float:
        """Events per second of the audit."""
        return self.events / self.seconds if self.seconds else 0.0


@click.command()
@click.option("--data", type=click.Path(path_type=Path, file_okay=False), help="Traces to use; else they are made.")
@click.option("--runs", type=click.IntRange(1), default=1000, show_default=True, help="Simulated runs to make.")
@click.option("--requests", type=click.IntRange(1), default=150, show_default=True, help="Requests per simulated run.")
@click.option("--engine", "engines", multiple=True, type=click.Choice(["decode", *ENGINES]), help="Only these.")
@json_option
def bench(data: Path | None, runs: int, requests: int, engines: tuple[str, ...], json_file: Path | None) -> int:
    """Measure the audit: events per second and peak memory, per engine.

    Memory is the sum over the engine's processes (proportional set size), sampled; Spark's includes its Java.
    """
    if data is None:
        data = Path("out") / f"bench-{runs}-{requests}"
        if not data.exists():
            _make(data, runs, requests)
    measured = []
    for engine in engines or ("decode", *ENGINES):
        note(f"measuring {engine} on {data}")
        measured.append(_decode(data) if engine == "decode" else _audit(engine, data))
    _print(measured)
    good = all(result.verdict != "error" for result in measured)
    code = EXIT_CONFORMS if good else EXIT_ERROR
    rows = [asdict(result) | {"events_per_second": result.rate} for result in measured]
    save_json({"format": "viewproof.bench/1", "data": str(data), "engines": rows, "exit_code": code}, json_file)
    return code


def _make(data: Path, runs: int, requests: int) -> None:
    """Simulate the data set, moved into place when it is whole."""
    from impl.sim.run import simulate

    draft = data.with_name(f"{data.name}.{os.getpid()}")
    note(f"simulating {runs} runs into {data}")
    with steps("simulate") as progress:
        for seed in range(1, runs + 1):
            simulate(seed, requests=requests, out=draft)
            progress(seed, runs, f"seed {seed}")
    draft.rename(data)


def _decode(data: Path) -> Measured:
    """Reading alone, in this process: what every engine pays before it checks anything."""
    started = time.monotonic()
    log = ProblemLog()
    files = [file for unit in discover([str(data)]).units for file in unit.files]
    events = sum(1 for file in files for _ in read_rows(file, log))
    seconds = time.monotonic() - started
    return Measured("decode", "error" if log else "read", events, seconds, seconds, None)


def _audit(engine: str, data: Path) -> Measured:
    """One `vsr audit` in a process of its own, watched."""
    with tempfile.TemporaryDirectory(prefix="vsr-bench-") as scratch:
        result = Path(scratch) / "result.json"
        paths = sorted(map(str, data.iterdir()))[:INTERP_RUNS] if engine == "interp" else [str(data)]
        command = [*_SELF, "audit", *paths, *ENGINES[engine], "--json", str(result)]
        started = time.monotonic()
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            peak = 0
            while process.poll() is None:
                peak = max(peak, sum(map(_memory_kib, _tree(process.pid))))
                time.sleep(_SAMPLE_SECONDS)
        wall = time.monotonic() - started
        if not result.exists():
            return Measured(engine, "error", 0, 0.0, wall, None)
        report = json.loads(result.read_text())
    memory = peak / 1024 if peak else None
    return Measured(engine, report["verdict"], report["events"], report["seconds"], wall, memory)


def _tree(pid: int) -> Iterator[int]:
    """A process and all below it, where /proc tells."""
    yield pid
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return
    for child in children:
        yield from _tree(child)


def _memory_kib(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def _print(measured: list[Measured]) -> None:
    table = Table("engine", "verdict", "events", "seconds", "events/s", "wall s", "peak MiB")
    for result in measured:
        memory = "" if result.memory_mib is None else f"{result.memory_mib:,.0f}"
        numbers = (f"{result.events:,}", f"{result.seconds:.1f}", f"{result.rate:,.0f}", f"{result.wall_seconds:.1f}")
        table.add_row(result.engine, result.verdict, *numbers, memory)
    Console(width=100).print(table)
