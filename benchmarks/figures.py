"""Figures of a document, recorded: the last run of a benchmark lies beside it, and the document is made from that.

    python -m benchmarks.figures          # writes the tables of all recorded runs into their documents again

A document has each table between `<!-- NAME of benchmarks/recorded/FILE -->` and `<!-- end of NAME -->`; a test holds
both together. A table says when, of which commit and on what machine it was measured.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.text import table

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "benchmarks" / "recorded"
COLUMNS = 128
"""What is said below a table is wrapped there."""
PLACE = re.compile(
    r"(<!-- (?P<name>[\w-]+) of benchmarks/recorded/(?P<file>[\w-]+)\.json -->\n).*?(<!-- end of (?P=name) -->)", re.S
)


def record(file: str, name: str, header: Sequence[str], rows: Sequence[Sequence[str]], command: str, note: str) -> None:
    """Keep a table as the last of its name, and write it into the documents."""
    path = RECORDED / f"{file}.json"
    tables: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    tables[name] = {
        "command": command, "when": f"{datetime.now(UTC):%d %B %Y}".lstrip("0"), "commit": _commit(),
        "machine": machine(), "note": note, "header": list(header), "rows": [list(row) for row in rows],
    }  # fmt: skip
    RECORDED.mkdir(exist_ok=True)
    path.write_text(json.dumps(tables, indent=1, ensure_ascii=False) + "\n")
    for document in documents():
        document.write_text(written(document.read_text()))


def documents() -> list[Path]:
    """Documents with recorded tables."""
    return [path for path in sorted((ROOT / "docs").glob("*.md")) if PLACE.search(path.read_text())]


def written(text: str) -> str:
    """A document's text with the tables that are recorded."""
    return PLACE.sub(lambda found: found[1] + _text(found["file"], found["name"]) + found[4], text)


def _text(file: str, name: str) -> str:
    path = RECORDED / f"{file}.json"
    kept = json.loads(path.read_text()).get(name) if path.exists() else None
    if kept is None:
        return "\nNot measured yet on a machine that does nothing else.\n\n"
    by = f"`{kept['command']}` on {kept['when']}, commit {kept['commit']}, {kept['machine']}."
    said = "\n".join(
        line for part in (by, kept["note"]) for line in textwrap.wrap(part, COLUMNS, break_long_words=False)
    )
    return f"\n{table(kept['header'], kept['rows'])}\n\n{said}\n\n"


def _commit() -> str:
    """The commit of the code, and whether sources were changed since."""
    commit, changed = (_git("rev-parse", "--short", "HEAD"), _git("status", "--porcelain", "--", "*.py"))
    return (commit or "unknown") + (" with changes" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()


def machine() -> str:
    """Cores, processor and Python."""
    models = re.findall(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text(encoding="utf-8"), re.M)
    return f"{os.cpu_count()} cores ({models[0] if models else platform.machine()}), Python {platform.python_version()}"


def main() -> None:
    """Write the documents again."""
    for document in documents():
        document.write_text(written(document.read_text()))
        sys.stdout.write(f"{document.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
