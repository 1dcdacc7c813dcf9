"""Run a command and watch its whole process tree: wall clock, processor seconds, peak memory, and what others used."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_SAMPLE_SECONDS = 0.25
"""Reading the memory of a large process takes milliseconds itself."""

_MODULES = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(Path("build/python").absolute())}

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Watched:
    """What a process tree took.

    `cpu_seconds` are of all its processes; `peak_mib` is the largest sum of proportional set sizes seen (memory that
    processes share is counted once), `memory` are these sums with the seconds at which they were seen; `others_cores`
    is how many cores other processes kept busy meanwhile.
    """

    exit_code: int
    wall_seconds: float
    cpu_seconds: float
    peak_mib: float
    others_cores: float
    memory: tuple[tuple[float, float], ...] = ()


def watch(
    command: Sequence[str], variables: Mapping[str, str] | None = None, most_mib: float = float("inf")
) -> Watched:
    """Run `command` with these variables of the environment, its output dropped, to its end, or until it takes more
    memory than that. Python's compiled modules are kept, as where a package is installed. Needs Linux's /proc.
    """
    busy, started = machine_busy_seconds(), time.monotonic()
    memory, seconds = list[tuple[float, float]](), dict[int, float]()
    with subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_MODULES, **(variables or {})},
    ) as process:
        while process.poll() is None:
            tree = list(_tree(process.pid))
            memory.append((time.monotonic() - started, sum(map(_memory_kib, tree)) / 1024))
            if memory[-1][1] > most_mib:
                process.kill()
            for pid in tree:
                seconds[pid] = max(seconds.get(pid, 0.0), _own_seconds(pid))
            time.sleep(_SAMPLE_SECONDS)
    wall = time.monotonic() - started
    cpu = sum(seconds.values())
    others = max(0.0, machine_busy_seconds() - busy - cpu) / wall
    peak = max((mib for _, mib in memory), default=0.0)
    return Watched(process.returncode, wall, cpu, peak, others, tuple(memory))


def machine_busy_seconds() -> float:
    """Processor seconds of the whole machine so far, all cores together."""
    fields = list(map(int, Path("/proc/stat").read_text(encoding="utf-8").split("\n", 1)[0].split()[1:9]))
    return (sum(fields) - fields[3] - fields[4]) / _TICKS


def _tree(pid: int) -> Iterator[int]:
    """A process and all below it."""
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
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except (OSError, ValueError):
        pass
    return 0


def _own_seconds(pid: int) -> float:
    """Processor time of one process so far, without its children's."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / _TICKS
