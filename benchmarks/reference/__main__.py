"""The reference pages, from declarations: one command, one folder (docs/reference).

    python -m benchmarks.reference                           # which pages are not as they would be made now
    python -m benchmarks.reference --write docs/reference    # makes them again

`language.md` follows from the words of `viewproof.spec.lang` and what the engines make of an example of each;
`commands.md` from the declarations of `vsr`; `settings.md` from the settings of a server; the schemas of reports from
the classes that they show.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from benchmarks.reference import commands, language, reports, settings
from benchmarks.reference.shapes import REPORTS

PAGES: Mapping[str, Callable[[], str]] = {
    "language.md": language.page,
    "commands.md": commands.page,
    "settings.md": settings.page,
    "audit.schema.json": reports.audit_schema,
    "check.schema.json": reports.check_schema,
    "simulate.schema.json": reports.simulate_schema,
    **{f"{command}.schema.json": partial(reports.schema_of, command) for command in REPORTS},
}
HERE = Path(__file__).resolve().parents[2] / "docs/reference"


def stale(folder: Path) -> list[str]:
    """The pages in the folder that are not as they would be made now."""
    texts = {name: make() for name, make in PAGES.items()}
    return [n for n, text in texts.items() if not (folder / n).exists() or (folder / n).read_text("utf-8") != text]


def main() -> int:
    """Make the pages, or say which are stale (exit code 1)."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reference", description=__doc__)
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="put the pages into this folder")
    folder = parser.parse_args().write
    if folder is None:
        found = stale(HERE)
        print("\n".join(found) or "all pages are as they would be made now")  # noqa: T201
        return 1 if found else 0
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
