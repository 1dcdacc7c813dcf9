"""Whatever the code and the documents refer to is in this repository: seeds, papers and systems in docs/sources.md,
documents by their paths.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "docs" / "sources.md").read_text()
FOLDERS = ("spec", "impl", "refinement", "viewproof/api", "benchmarks", "docs", "traces", "tools")
DOCUMENT = re.compile(r"(?<![\w*])(?:\.\./|[\w-]+/)*[\w-]+\.md\b")
LATER = re.compile(r"\b(Iggy|TigerBeetle|Oxia)(,?) later\b")
SEED = re.compile(r"\bseeds? (00\d)(?:\s+(?:and|to)\s+(00\d))?")
BRACKET = re.compile(r"\[([^\]\[]+)\]")


def texts() -> Iterator[tuple[Path, str]]:
    """Every file of code and every document, with its text."""
    yield ROOT / "README.md", (ROOT / "README.md").read_text()
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".j2", ".go") and path.is_file():
                yield path, path.read_text()


def named() -> set[str]:
    """What docs/sources.md defines: the headings up to a colon, and the first cells of its tables."""
    headings = re.findall(r"^##+ ([^:\n]+)", SOURCES, re.MULTILINE)
    cells = re.findall(r"^\| ([^|\n]+?) \|", SOURCES, re.MULTILINE)
    return {*headings, *(re.sub(r"\[([^\]]+)\].*", r"\1", cell) for cell in cells)} - {"name", "---"}


def places(found: dict[str, list[Path]]) -> str:
    return "; ".join(f"{name} in {', '.join(str(p.relative_to(ROOT)) for p in at)}" for name, at in found.items())


def test_every_seed_that_is_named_is_described() -> None:
    known = named()
    found: dict[str, list[Path]] = {}
    count = 0
    for path, text in texts():
        for numbers in SEED.findall(text):
            for number in filter(None, numbers):
                count += 1
                if f"seed {number}" not in known:
                    found.setdefault(f"seed {number}", []).append(path)
    assert not found, places(found)
    assert count > 100


def test_what_a_system_did_later_is_described() -> None:
    known = named()
    found: dict[str, list[Path]] = {}
    for path, text in texts():
        for system, comma in LATER.findall(text):
            if not comma or f"{system}, later" not in known:
                found.setdefault(f"{system}{comma} later", []).append(path)
    assert not found, places(found)


def test_every_document_that_is_named_is_there() -> None:
    found: dict[str, list[Path]] = {}
    count = 0
    for path, text in texts():
        for name in DOCUMENT.findall(text):
            count += 1
            if not any(
                (folder / name).is_file() for folder in (ROOT, ROOT / "docs", ROOT / "docs/reference", path.parent)
            ):
                found.setdefault(name, []).append(path)
    assert not found, places(found)
    assert count > 100


def test_every_paper_of_which_a_section_is_named_is_described() -> None:
    known = named()
    found: dict[str, list[Path]] = {}
    count = 0
    for path, text in texts():
        for name in re.findall(r"\b((?:[A-Z][\w-]* )+)§\d", " ".join(text.split())):
            count += 1
            if name.strip() not in known:
                found.setdefault(name.strip(), []).append(path)
    assert not found, places(found)
    assert count > 20


def test_documents_do_not_lead_out_of_the_repository() -> None:
    found: dict[str, list[Path]] = {}
    for path, text in texts():
        if "../shared" in text:
            found.setdefault("../shared", []).append(path)
    assert not found, places(found)


def test_the_source_of_every_fault_is_described() -> None:
    table = [
        line for line in (ROOT / "docs" / "faults.md").read_text().splitlines() if re.match(r"\| `\w+\.\w+` \|", line)
    ]
    in_table = [source for line in table for source in BRACKET.findall(line)[:1]]
    assert len(in_table) > 40
    code = [path.read_text() for path in (ROOT / "spec" / "vsr").rglob("*.py")]
    in_code = [source for text in code for source in re.findall(r"\[([^\]\[]+)\]\.(?:\n|\"\"\")", text)]
    assert len(in_code) > 20
    known = named()
    plain = {re.sub(r" (§|of the paper).*", "", " ".join(source.split())) for source in (*in_table, *in_code)}
    assert plain - known == set()
