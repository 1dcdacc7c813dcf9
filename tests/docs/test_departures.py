"""docs/departures.md: what each of its rows names exists, and no row is without something that shows it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from viewproof.faults import records
from viewproof.spec.protocols import MODELS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "departures.md"
SEEDS = ("seed 000", "seed 001", "seed 002", "seed 003")
NAMED = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([\w.-]+\.md)(?:#[\w-]+)?\)")
FOLDERS = ("spec/", "impl/", "refinement/", "tests/", "benchmarks/", "viewproof/")
AREAS = {fault.partition(".")[0] for fault in records()}


def rows() -> list[tuple[str, str, str, str]]:
    """Document, rule, place, what shows it."""
    found: list[tuple[str, str, str, str]] = []
    seed = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            seed = line.removeprefix("## ").partition(":")[0]
        elif line.startswith("| ") and not line.startswith("| rule |"):
            cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
            assert len(cells) == 3, line
            found.append((seed, *cells))  # type: ignore[arg-type]
    return found


def problem(name: str) -> str:
    """Why what a row names does not exist, or ""."""
    if name.startswith(FOLDERS):
        path, _, function = name.partition("::")
        if not (ROOT / path).exists():
            return f"no file {path}"
        text = (ROOT / path).read_text(encoding="utf-8") if function else ""
        return "" if not function or re.search(rf"^def {function}\(", text, re.MULTILINE) else f"no test {name}"
    if name.startswith("vsr check "):
        return "" if name.removeprefix("vsr check ") in MODELS else f"no model {name}"
    if name.partition(".")[0] in AREAS and re.fullmatch(r"[a-z]+\.\w+", name):
        return "" if name in records() else f"no mistake {name}"
    return ""


def test_everything_that_is_named_exists() -> None:
    named = [(rule, name) for _, rule, *cells in rows() for cell in cells for name in NAMED.findall(cell)]
    assert [(rule, text) for rule, name in named if (text := problem(name))] == []
    assert len(named) > 200


def test_what_stands_in_brackets_behind_a_file_is_in_it() -> None:
    """As `impl/replica/commit_path.py` (`require_next`)."""
    behind = re.compile(r"`([\w/]+\.py)` \(`([\w-]+)`\)")
    for _, _, *cells in rows():
        for path, name in behind.findall(" ".join(cells)):
            assert name in (ROOT / path).read_text(encoding="utf-8"), (path, name)


def test_every_row_names_what_shows_it_and_every_departure_its_reason() -> None:
    for _, rule, place, shown in rows():
        named = [name for name in NAMED.findall(f"{place} {shown}") if name.startswith(FOLDERS) or name in records()]
        assert named, rule
        if "**Departure**" in shown:
            assert len(shown.partition("**Departure**")[2]) > 60, rule
        else:
            assert place != "–", rule


@pytest.mark.parametrize("seed", SEEDS)
def test_every_document_has_its_table(seed: str) -> None:
    assert sum(row[0] == seed for row in rows()) >= 15


def test_mistakes_of_the_documents_are_in_their_tables() -> None:
    """Each mistake of the catalogue that comes from one of the four is named in the table of that document."""
    tables = {seed: " ".join(" ".join(row) for row in rows() if row[0] == seed) for seed in SEEDS}
    missing = [
        (fault.id, fault.source)
        for fault in records().values()
        if fault.source in SEEDS and f"`{fault.id}`" not in tables[fault.source]
    ]
    assert missing == []


def test_links_lead_to_pages() -> None:
    assert [page for page in LINK.findall(PAGE.read_text(encoding="utf-8")) if not (PAGE.parent / page).exists()] == []
