"""Every test that docs/security.md names exists, and every promise and every attack of its tables has one."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "security.md").read_text()
NAMED = re.compile(r"`((?:tests/)?[\w/]*test_\w+\.py)::(test_\w+)`")
HEADS = ("| attacker |", "| what | what happened |")


def rows(head: str) -> list[str]:
    """The rows of the table that begins like this."""
    lines = TEXT.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(head)) + 2
    end = next(number for number in range(first, len(lines)) if not lines[number].startswith("|"))
    return lines[first:end]


@pytest.mark.parametrize("head", HEADS)
def test_each_row_names_a_test(head: str) -> None:
    assert len(rows(head)) > 10
    assert [row for row in rows(head) if not NAMED.search(row)] == []


def test_each_test_that_is_named_exists() -> None:
    named = NAMED.findall(TEXT)
    assert len(named) == TEXT.count("::test_")
    missing = []
    for file, name in named:
        path = ROOT / file if "/" in file else ROOT / "tests" / "impl" / "net" / file
        functions = {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}
        missing += [] if name in functions else [f"{file}::{name}"]
    assert missing == []
