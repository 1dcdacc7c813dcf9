"""How fast Iggy's debug logs are audited, beside unpacking and searching them: the shipped logs, again and again.

`python -m benchmarks.iggy [--megabytes 1000] [--engine local|spark …] [--workers 2]` prints a table; logs that violate
are left out. Nothing is kept: copies of the packed logs, below `build`; a link would be read once only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.text import table
from benchmarks.watch import watch
from viewproof.api.audit import audit
from viewproof.refinement.joined.source import lines_of

ROOT = Path(__file__).resolve().parents[1]
SHIPPED = ROOT.parent / "shared" / "traces" / "real" / "iggy"
LEFT_OUT = ("deposed-3-s2", "stale-entry")
"""Logs that violate are judged up to a line only."""


def copy(folder: Path, logs: Path, megabytes: int) -> tuple[int, int]:
    """Copies of the logs, again and again, until their unpacked size is reached; bytes and lines."""
    packed = [file for part in ("simulator", "server") for file in sorted((logs / part).glob("*.log.zst"))]
    packed = [file for file in packed if file.name.split(".")[0] not in LEFT_OUT]
    if not packed:
        raise SystemExit(f"no logs in {logs}")
    sizes = {}
    for file in packed:
        lengths = [len(line.text.encode()) + 1 for line in lines_of(str(file))]
        sizes[file] = sum(lengths), len(lengths)
    size = lines = 0
    for number, file in enumerate(itertools.cycle(packed)):
        if size >= megabytes * 1_000_000:
            break
        shutil.copyfile(file, folder / f"{number:05}-{file.name}")
        size, lines = size + sizes[file][0], lines + sizes[file][1]
    return size, lines


def floor(folder: Path) -> float:
    """Seconds to unpack all logs and look for lines of events: `zstdcat … | grep -c sim_event`."""
    started = time.monotonic()
    names = "\0".join(str(file) for file in sorted(folder.iterdir()))
    command = "xargs -0 zstdcat | grep -c sim_event"
    subprocess.run(["sh", "-c", command], input=names.encode(), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def judge(folder: Path, engine: str, workers: int, out: Path) -> None:
    """Judge all of them, in a process of its own; its figures go to `out`."""
    more: dict[str, Any] = {"workers": workers} if engine == "local" else {"master": f"local[{workers}]"}
    report = audit(str(folder), adapter="iggy", engine=engine, **more)
    verdicts = Counter(verdict.verdict for verdict in report.verdicts)
    out.write_text(json.dumps({"seconds": report.seconds, "verdicts": verdicts}), encoding="utf-8")


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.iggy", description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000, help="Size of all logs, unpacked.")
    parser.add_argument("--engine", nargs="+", choices=("local", "spark"), default=["local"])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--logs", type=Path, default=SHIPPED, help="The folder with simulator/ and server/.")
    parser.add_argument("--into", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.into:
        judge(Path(given.into[0]), given.engine[0], given.workers, Path(given.into[1]))
        return 0
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="iggy-", dir=build) as folder:
        logs, out = Path(folder) / "logs", Path(folder) / "figures.json"
        logs.mkdir()
        size, lines = copy(logs, given.logs, given.megabytes)
        seconds = floor(logs)
        rows = [["zstdcat, grep", f"{seconds:.1f}", f"{size / 1e6 / seconds:,.1f}", f"{lines / seconds:,.0f}", "", ""]]
        for engine in given.engine:
            own = [sys.executable, "-m", "benchmarks.iggy", "--engine", engine, "--workers", str(given.workers)]
            watched = watch([*own, "--into", str(logs), str(out)])
            if watched.exit_code:
                raise SystemExit(f"the audit failed with exit code {watched.exit_code}")
            figures = json.loads(out.read_text())
            wall = figures["seconds"]
            said = ", ".join(f"{n} {name}" for name, n in sorted(figures["verdicts"].items()))
            rates = [f"{wall:.1f}", f"{size / 1e6 / wall:,.1f}", f"{lines / wall:,.0f}"]
            rows.append([f"{engine}, {given.workers} workers", *rates, f"{watched.peak_mib:,.0f}", said])
        header = ["what", "s", "MB/s", "lines/s", "peak MiB", "runs"]
        sys.stdout.write(f"{size / 1e6:,.0f} MB, {lines:,} lines\n{table(header, rows)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
