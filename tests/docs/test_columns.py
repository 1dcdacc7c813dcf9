"""Prose is wrapped: no line of a page is above 140 columns but a row of a table, which Markdown has in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "traces/README.md"])
COLUMNS_MAX = 140


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_prose_has_at_most_140_columns(page: Path) -> None:
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    assert [n for n, line in lines if len(line) > COLUMNS_MAX and not line.startswith("|")] == []
