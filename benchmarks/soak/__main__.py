"""The command line; see the package's text."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.figures import record
from benchmarks.porcupine import NoPorcupineError, program
from benchmarks.soak.judge import judge, rows
from benchmarks.soak.network import entered
from benchmarks.soak.run import SoakOptions, soak


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
    parser.add_argument("--record", action="store_true", help="write it into docs/storage-and-net.md, too")
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
    found = judge(soak(directory, asked, _say), directory)
    sys.stdout.write("".join(f"{name}: {value}\n" for name, value in found.items() if name != "code"))
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n")
    if options.record:
        words = f"--seconds {options.seconds:g} --seed {options.seed} --rate {options.rate:g} --record"
        record("soak", "soak", ("a soak", "found"), rows(found), f"python -m benchmarks.soak {words}", "")
    return int(str(found["code"]))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        _say("stopped; nothing was judged (what was written stays in --directory)")
        sys.exit(4)
