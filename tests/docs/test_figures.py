"""Figures in documents are those of the last recorded run of their benchmark."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.figures import PLACE, RECORDED, documents, written


def test_tables_are_those_of_the_recorded_runs() -> None:
    assert documents()
    for document in documents():
        text = document.read_text()
        assert written(text) == text, f"python -m benchmarks.figures writes {document} again"
        begun = re.findall(r"<!-- ([\w-]+) of benchmarks/recorded/", text)
        assert begun == [found["name"] for found in PLACE.finditer(text)], "a table without an end"


def test_every_recorded_table_is_in_a_document() -> None:
    shown = {(f["file"], f["name"]) for d in documents() for f in PLACE.finditer(d.read_text())}
    kept = {(path.stem, name) for path in RECORDED.iterdir() for name in json.loads(path.read_text())}
    assert kept <= shown


def test_a_run_is_recorded_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "RECORDED", tmp_path)
    monkeypatch.setattr(figures, "documents", list)
    place = "before\n<!-- speed of benchmarks/recorded/some.json -->\nold\n<!-- end of speed -->\nafter\n"
    assert "Not measured yet" in written(place)
    figures.record(
        "some", "speed", ("engine", "events/s"), [("local", "1,000")], "python -m benchmarks.some", "A note."
    )
    text = written(place)
    assert text.startswith("before\n<!-- speed")
    assert "| local  |    1,000 |" in text
    assert "`python -m benchmarks.some` on " in text
    assert text.endswith("\nA note.\n\n<!-- end of speed -->\nafter\n")
    assert written(text) == text
