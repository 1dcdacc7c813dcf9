"""Fuzzed frames and files, as many as one likes.

    python -m tests.fuzz --frames 1000000 --files 100000 --sockets 20000

Prints what became of them, how long it took, and what the process had more in memory after it. Anything but a refusal
by name ends it with a traceback, which names the number that brings it about again.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.fuzz.files import read_all
from tests.impl.net.test_connections import resident_bytes_of
from tests.impl.net.test_fuzzed_frames import decode_all, serve_while


def main() -> None:
    """Parse options, fuzz, print."""
    parser = argparse.ArgumentParser(prog="tests.fuzz", description="Frames and files that nobody should send.")
    parser.add_argument("--frames", type=int, default=0, help="given to the border and a replica, in this process")
    parser.add_argument("--files", type=int, default=0, help="read in this process")
    parser.add_argument("--sockets", type=int, default=0, help="frames sent to a real cluster, each on a connection")
    parser.add_argument("--seed", type=int, default=1, help="of all of them (1)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as directory:
        path = Path(directory)
        _measured(
            "frames",
            options.frames,
            lambda: "{:,} refused, {:,} too far ahead, {:,} taken".format(*decode_all(options.seed, options.frames)),
        )
        _measured(
            "files", options.files, lambda: str(dict(sorted(read_all(path, options.seed, options.files).items())))
        )
        _measured("frames to a cluster", options.sockets, lambda: serve_while(options.sockets, path / "cluster"))


def _measured(what: str, count: int, work: Callable[[], str]) -> None:
    if not count:
        return
    before, started = resident_bytes_of(os.getpid()), time.monotonic()
    text = work()
    grown = (resident_bytes_of(os.getpid()) - before) / (1 << 20)
    sys.stdout.write(f"{count:,} {what} in {time.monotonic() - started:.0f} s, {grown:+.0f} MiB: {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
