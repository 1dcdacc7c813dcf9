"""The command line; see the package's text."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.porcupine import NoPorcupineError, program, verdict_of_porcupine
from benchmarks.soak.network import entered
from benchmarks.soak.run import Soaked, SoakOptions, soak
from benchmarks.soak.strikes import VSR, NotBackError
from viewproof.impl.net.cluster import ClusterError
from viewproof.impl.net.errors import ClientError
from viewproof.impl.net.history import CheckResult, check_history

OK, VIOLATED, OPEN = 0, 1, 4


def main(words: Sequence[str] | None = None) -> int:
    """Parse options, run, judge, print; the exit code."""
    words = sys.argv[1:] if words is None else words
    parser = argparse.ArgumentParser(prog="benchmarks.soak", description="A real cluster, struck for a long time.")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--seed", type=int, default=1, help="of the strikes and the operations (1)")
    parser.add_argument("--rate", type=float, default=200.0, help="requests per second aimed at (200)")
    parser.add_argument("--period", type=float, default=20.0, help="seconds with one set of keys (20)")
    parser.add_argument("--directory", type=Path, help="where data, logs and traces stay; otherwise they do not")
    parser.add_argument("--json", type=Path, help="write what was found there, too")
    options = parser.parse_args(words)
    try:
        program()  # where there is a network
    except NoPorcupineError as error:
        _say(str(error))
    code = entered(words)
    if code is not None:
        return code
    with tempfile.TemporaryDirectory(prefix="soak-") as directory:
        return _run((options.directory or Path(directory)).absolute(), options)


def _run(directory: Path, options: argparse.Namespace) -> int:
    directory.mkdir(parents=True, exist_ok=True)
    if any(directory.iterdir()):
        raise SystemExit(f"{directory} is not empty")
    asked = SoakOptions(options.seconds, options.seed, options.rate, period=options.period)
    try:
        soaked = soak(directory, asked, _say)
    except (NotBackError, ClusterError, ClientError) as error:
        _say(f"failed: {type(error).__name__}: {error}")
        return VIOLATED
    found = judge(soaked, directory)
    sys.stdout.write("".join(f"{name}: {value}\n" for name, value in found.items() if name != "code"))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    return int(str(found["code"]))


def judge(soaked: Soaked, directory: Path) -> dict[str, object]:
    """Name → what was found; `code` is the exit code."""
    own = check_history(soaked.history)
    try:
        porcupine = verdict_of_porcupine(soaked.history)
    except NoPorcupineError as error:
        porcupine = f"not judged: {error}"
    traces, events = _audit(soaked.traces, directory / "audit.json")
    latencies = sorted(soaked.latencies_ns)
    verdicts = {own.verdict, porcupine, traces}
    bad = "violation" in verdicts or "violates" in verdicts or bool(soaked.tracebacks) or any(soaked.codes.values())
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
        "logs with a traceback": list(soaked.tracebacks),
        "exit codes": soaked.codes,
        "code": VIOLATED if bad else OK if verdicts <= {"ok", "conforms"} else OPEN,
    }


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
        _say(done.stdout)
    return verdicts[done.returncode], int(json.loads(report.read_text())["events"])


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main())
