"""What a run has shown: of the history, of the traces, of the processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.porcupine import NoPorcupineError, verdict_of_porcupine
from benchmarks.soak.run import Soaked
from benchmarks.soak.strikes import VSR
from viewproof.impl.net.history import CheckResult, check_history

OK, VIOLATED, OPEN = 0, 1, 4


def judge(soaked: Soaked, directory: Path) -> dict[str, Any]:
    """Name → what was found; `code` is the exit code."""
    own = check_history(soaked.history)
    try:
        porcupine = verdict_of_porcupine(soaked.history)
    except NoPorcupineError as error:
        porcupine = f"not judged: {error}"
    traces, events = _audit(soaked.traces, directory / "audit.json")
    latencies = sorted(soaked.latencies_ns)
    verdicts = {own.verdict, porcupine, traces}
    bad = any((soaked.failure, soaked.tracebacks, *soaked.codes.values(), verdicts & {"violation", "violates"}))
    return {
        "seconds": round(soaked.seconds),
        "operations": len(soaked.history),
        "answered": len(latencies),
        "without an answer": soaked.unanswered,
        "sent again": soaked.retries,
        "slowest answer, s": round(latencies[-1] / 1e9, 1) if latencies else 0,
        "strikes": dict(sorted(soaked.strikes.items())),
        "what came of them": dict(sorted(soaked.refusals.items())),
        "history, own checker": _own_text(own),
        "history, Porcupine": porcupine,
        "traces": traces,
        "events": events,
        "ended by": soaked.failure or "its time",
        "logs with a traceback": list(soaked.tracebacks),
        "exit codes": soaked.codes,
        "code": VIOLATED if bad else OK if verdicts <= {"ok", "conforms"} else OPEN,
    }


COUNTED = ("seconds", "operations", "answered", "slowest answer, s", "strikes", "events")
JUDGED = ("history, own checker", "history, Porcupine", "traces")


def rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    """What a document shows of it."""
    strikes = found["strikes"]
    counted = {**found, "strikes": sum(strikes.values())}
    return [(name, f"{counted[name]:,}") for name in COUNTED] + [(name, str(found[name])) for name in JUDGED]


def _own_text(result: CheckResult) -> str:
    if result.ok:
        return f"ok ({result.keys} keys, {result.configurations:,} configurations)"
    return f"{result.verdict}: {[*map(str, result.failures), *map(str, result.inconclusive_keys)]}"


def _audit(traces: Path, report: Path) -> tuple[str, int]:
    """Verdict of `vsr audit`, or what it says, and the number of events."""
    command = [*VSR, "audit", str(traces), "--json", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    verdicts = {0: "conforms", 1: "violates", 4: "inconclusive"}
    if done.returncode not in verdicts:
        return f"audit ended with {done.returncode}: {done.stdout}{done.stderr}", 0
    if done.returncode:
        sys.stderr.write(done.stdout)
    return verdicts[done.returncode], int(json.loads(report.read_text(encoding="utf-8"))["events"])
