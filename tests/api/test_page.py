"""docs/api.md: its snippets run, and print what the page says."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

import viewproof

PAGE = Path(__file__).parents[2] / "docs" / "api.md"


def test_snippets_of_the_page_print_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS
    found = doctest.testfile(str(PAGE), module_relative=False, optionflags=flags)
    assert found.failed == 0
    assert found.attempted > 20


def test_every_public_name_stands_on_the_page() -> None:
    text = PAGE.read_text()
    missing = [name for name in viewproof.__all__ if f"`{name}" not in text]
    assert not missing
