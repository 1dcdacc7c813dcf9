"""Reading alone: the columns of all files of a data set, and nothing done with them (`benchmarks.audit`).

python -m benchmarks.reading RESULT.json PATH…
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from viewproof.refinement.adapter import NATIVE, adapter
from viewproof.refinement.discovery import discover
from viewproof.refinement.flat.columns import read
from viewproof.refinement.problems import ProblemLog


def main(result: str, *paths: str) -> None:
    """Read, and write what it took as `vsr audit --json` does."""
    system, units = adapter(NATIVE).system, discover(paths).units
    started, cpu = time.monotonic(), time.process_time()
    events = sum(read(unit.files, system, ProblemLog()).rows for unit in units)
    seconds, spent = time.monotonic() - started, {"read": time.process_time() - cpu}
    Path(result).write_text(
        json.dumps({"events": events, "seconds": seconds, "spent": spent, "verdicts": []}), encoding="utf-8"
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
