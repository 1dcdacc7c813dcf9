"""Links between the documents lead somewhere: files are there, and so are the headings that they name."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "traces").glob("*.md")])
NOTEBOOKS = sorted((ROOT / "docs").rglob("*.ipynb"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def text_of(page: Path) -> str:
    """The text of a page; of a notebook that of its text cells."""
    if page.suffix != ".ipynb":
        return page.read_text()
    cells = json.loads(page.read_text())["cells"]
    return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as hosts of Markdown make them."""
    headings = re.findall(r"^#+ (.+)$", text_of(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", heading)) for heading in headings)
    return {heading.strip().lower().replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page: Path) -> None:
    lost = []
    for link in LINK.findall(text_of(page)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            lost.append(link)
    assert not lost


def test_every_page_is_reached_from_the_readme() -> None:
    found, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        found.add(page)
        names = (link.partition("#")[0] for link in LINK.findall(text_of(page)) if not re.match(r"[a-z]+:", link))
        targets = ((page.parent / name).resolve() for name in names if name.endswith((".md", ".ipynb")))
        waiting += [target for target in targets if target.exists()]
    assert [str(page.relative_to(ROOT)) for page in [*PAGES, *NOTEBOOKS] if page not in found] == []
