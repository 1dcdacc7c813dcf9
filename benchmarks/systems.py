"""Lines of each system that is not ours: its adapter, its specification, and what checks that.

`python -m benchmarks.systems BEFORE AFTER` shows two checkouts side by side, one alone what is there now. A line counts
as in `benchmarks.lines`; of the tables that an adapter reads (text beside its Python) each that is no comment does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from benchmarks.lines import Size, python_files, rows_of, size_of
from benchmarks.text import table

ADAPTER, PROFILE, CHECKS = "adapter", "profile", "models, mistakes, invariants"
FOLDERS: dict[str, tuple[str, str]] = {
    "refinement/tigerbeetle": ("TigerBeetle", ADAPTER),
    "spec/vsr/tigerbeetle": ("TigerBeetle", PROFILE),
    "refinement/iggy": ("Iggy", ADAPTER),
    "spec/vsr/parts/iggy": ("Iggy", PROFILE),
    "refinement/oxia": ("Oxia", ADAPTER),
    "spec/oxia": ("Oxia", PROFILE),
    "refinement/events": ("all adapters", "words for what lines mean"),
    "refinement/flat": ("all adapters", "whole logs by compiled code"),
    "refinement/joined": ("all adapters", "files that are read together"),
}
"""Folder → whose it is, and what is in it."""
CHECKING = ("models", "mistakes", "faults", "fault_models", "invariants", "abstraction", "shapes", "reach")
"""Files of a profile, by how their names begin, that say how it is checked."""


def kind_of(path: Path, folder: str) -> tuple[str, str]:
    """Whose file it is, and of which kind."""
    system, kind = FOLDERS[folder]
    checks = kind == PROFILE and path.stem.partition("_20")[0] in CHECKING
    return system, CHECKS if checks else kind


def table_size(text: str) -> Size:
    """The size of a table of an adapter: what is neither blank nor a comment is as good as code."""
    lines = text.splitlines()
    return Size(1, len(lines), sum(bool(line.strip()) and not line.startswith("#") for line in lines))


def systems(root: Path) -> dict[str, Size]:
    """The size of each kind of each system; a folder that is not there has none."""
    found: dict[str, Size] = {}
    for folder in FOLDERS:
        for path in (*python_files(root / folder), *sorted((root / folder).glob("*.txt"))):
            size = size_of(path.read_text()) if path.suffix == ".py" else table_size(path.read_text())
            name = ": ".join(kind_of(path, folder))
            found[name] = found.get(name, Size()) + size
    return found


def main(words: Iterable[str] | None = None) -> int:
    """Print the table; 2 where a checkout has none of the systems."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.systems", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path()], help="One, or two: before and after.")
    given = parser.parse_args(None if words is None else list(words))
    if len(given.checkouts) > 2:
        parser.error("one or two checkouts")
    found = [systems(checkout) for checkout in given.checkouts]
    for checkout, sizes in zip(given.checkouts, found, strict=True):
        if not sizes:
            parser.error(f"{checkout} has no adapter")
    header, rows = rows_of(found)
    sys.stdout.write(table(["system", *header[1:]], rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
