"""Running TLC, which is not part of this project, on an exported module: its verdict and counts.

`VSR_TLC` is a Java class path that contains TLC: a jar or a directory of classes, several separated by colons.
With one worker TLC's search is breadth first, so counterexamples are shortest and the depth is exact; with more it is
not quite. TLC counts the initial state as depth 1; `Outcome.steps` is the depth in steps, as the other engines say it.

Where one step breaks several invariants, TLC names a state invariant before a transition invariant; `interp` and
`explicit` the other way round.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from viewproof.spec.engines.tla.module import Module

VARIABLE = "VSR_TLC"
POLL_SECONDS = 0.02
"""How often the process is looked at."""
SUCCESS, STATS, DEPTH, VERSION, PROGRESS, STARTING = "2193", "2199", "2194", "2262", "2200", "2185"
VIOLATIONS = {"2107", "2110", "2112", "2230"}
STATE = "2217"
"""Numbers of TLC's messages: end without error, counts, depth, version, progress, start; broken invariants; a state of
a trace."""

CONSTANT = re.compile(r"The invariant of \S+ is equal to FALSE")
"""What TLC says of an invariant that depends on no variable, before it searches."""


class TlcError(Exception):
    """TLC could not be run, or stopped with an error that is no verdict."""


@dataclass(frozen=True)
class Outcome:
    """What TLC said: holds, violated, or inconclusive if it was stopped.

    `broken`: name of the operator that was violated; `trace`: states of its counterexample, the initial one included;
    `memory_bytes`: largest resident size of its process.
    """

    verdict: str
    broken: str | None
    distinct: int
    generated: int
    depth: int
    trace: int
    version: str
    seconds: float
    memory_bytes: int

    @property
    def steps(self) -> int:
        """Depth of the search in steps."""
        return self.depth - 1


def class_path() -> str | None:
    """The class path in `VSR_TLC`; None if it is not set."""
    return os.environ.get(VARIABLE) or None


def run(
    module: Module, classes: str, *, workers: int = 1, heap: str = "2g", timeout_seconds: float | None = None
) -> Outcome:
    """Run TLC on a module, in a directory of its own that is removed again.

    A run longer than `timeout_seconds` is stopped; it is then inconclusive, with the counts of its last progress line.
    """
    java = shutil.which("java")
    if java is None:
        raise TlcError("there is no java on the path")
    with tempfile.TemporaryDirectory(prefix="vsr-tlc-") as place:
        module.write(Path(place))
        command = [
            java, f"-Xmx{heap}", "-XX:+UseParallelGC", f"-Djava.io.tmpdir={place}", "-cp", _absolute(classes),
            "tlc2.TLC", "-tool", "-noGenerateSpecTE", "-workers", str(workers), "-fp", "0", module.name,
        ]  # fmt: skip
        started = time.perf_counter()
        text, memory, ended = _execute(command, Path(place), timeout_seconds)
        seconds = time.perf_counter() - started
        return parse(text, seconds, memory) if ended else partial(text, memory)


def _absolute(classes: str) -> str:
    return os.pathsep.join(str(Path(part).absolute()) for part in classes.split(os.pathsep))


def _execute(command: list[str], place: Path, timeout_seconds: float | None) -> tuple[str, int, bool]:
    """Output of a process, its largest resident size in bytes as far as it could be seen (Linux), and whether it
    ended by itself.
    """
    log, memory, ended = place / "output", 0, True
    with log.open("wb") as out, subprocess.Popen(command, cwd=place, stdout=out, stderr=subprocess.STDOUT) as process:
        deadline = None if timeout_seconds is None else time.monotonic() + timeout_seconds
        while process.poll() is None:
            memory = max(memory, _resident_bytes(process.pid))
            if deadline is not None and time.monotonic() > deadline:
                process.kill()
                ended = False
                break
            time.sleep(POLL_SECONDS)
    return log.read_text(encoding="utf-8", errors="replace"), memory, ended


def _resident_bytes(pid: int) -> int:
    """Largest resident size of a process so far."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def messages(text: str) -> list[tuple[str, str]]:
    """TLC's messages as (number, text)."""
    found = re.findall(r"@!@!@STARTMSG (\d+):\d+ @!@!@\n(.*?)@!@!@ENDMSG", text, re.DOTALL)
    return [(number, body.strip()) for number, body in found]


def partial(text: str, memory_bytes: int = 0) -> Outcome:
    """The outcome of a run that was stopped: counts and time of its last progress line."""
    said = messages(text)
    last = dict(said)
    progress = re.match(
        r"Progress\((\d+)\) at (\S+ \S+): ([\d,]+) states generated.*?([\d,]+) distinct", last.get(PROGRESS, "")
    )
    begun = re.search(r"\((\S+ \S+)\)", last.get(STARTING, ""))
    if progress is None or begun is None:
        raise TlcError(f"TLC was stopped before its first progress line:\n{text[-2000:]}")
    seconds = (datetime.fromisoformat(progress[2]) - datetime.fromisoformat(begun[1])).total_seconds()
    generated, distinct = (int(n.replace(",", "")) for n in (progress[3], progress[4]))
    version = last.get(VERSION, "unknown").removeprefix("TLC2 Version ")
    return Outcome("inconclusive", None, distinct, generated, int(progress[1]), 0, version, seconds, memory_bytes)


def parse(text: str, seconds: float = 0.0, memory_bytes: int = 0) -> Outcome:
    """The outcome that TLC printed (with -tool). Anything but a verdict with its counts raises `TlcError`."""
    said = messages(text)
    last = dict(said)
    violation = next((body for number, body in said if number in VIOLATIONS), None)
    counts = re.match(r"([\d,]+) states generated, ([\d,]+) distinct", last.get(STATS, ""))
    if violation is None and SUCCESS not in last:
        raise TlcError(f"TLC gave no verdict:\n{text[-2000:]}")
    if counts is None and violation is not None and ("initial state" in violation or CONSTANT.match(violation)):
        generated = distinct = depth = 1
    elif counts is None or DEPTH not in last:
        raise TlcError(f"TLC gave no counts:\n{text[-2000:]}")
    else:
        generated, distinct = (int(n.replace(",", "")) for n in counts.groups())
        depth = int(re.findall(r"\d+", last[DEPTH])[0])
    broken = None if violation is None else re.split(r" is (?:violated|equal)", violation)[0].split()[-1]
    trace = sum(number == STATE for number, _ in said) or int(violation is not None)
    version = last.get(VERSION, "unknown").removeprefix("TLC2 Version ")
    verdict = "holds" if violation is None else "violated"
    return Outcome(verdict, broken, distinct, generated, depth, trace, version, seconds, memory_bytes)
