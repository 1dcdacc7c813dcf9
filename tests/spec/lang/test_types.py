"""The types of state, sorts and messages: what mypy, and so an editor, refuses before anything is recorded."""

from __future__ import annotations

import re
from pathlib import Path

import mypy.api

ROOT = Path(__file__).parents[3]
MISTAKES = Path(__file__).with_name("mistakes.py")


def test_mypy_refuses_each_mistake_with_its_error_and_nothing_else() -> None:
    expected = dict(re.findall(r"(\d+):.*# error: (.*)", "\n".join(numbered(MISTAKES))))
    output, trouble, _ = mypy.api.run(["--config-file", str(ROOT / "pyproject.toml"), "--no-pretty", str(MISTAKES)])
    assert not trouble
    found: dict[str, str] = {}
    for line, message in re.findall(r"mistakes\.py:(\d+): error: (.*)", output):
        found[line] = f"{found.get(line, '')} {message}"
    assert expected.keys() == found.keys(), output
    assert not {line: found[line] for line, said in expected.items() if said not in found[line]}


def numbered(file: Path) -> list[str]:
    """Its lines, each with its number."""
    return [f"{number}:{line}" for number, line in enumerate(file.read_text().splitlines(), 1)]
