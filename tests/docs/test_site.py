"""The site of the documents: built strictly, whole, and without anything that is fetched from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.refinement.browser import browser, flaws, needs_browser

ROOT = Path(__file__).resolve().parents[2]
FETCHED = re.compile(r'<(?:script|link|img|iframe|source)\b[^>]*(?:src|href)="(?:https?:)?//[^"]*', re.IGNORECASE)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with every warning an error: lost links and headings, pages that are in no menu."""
    pytest.importorskip("material", reason="the extra `site` is not installed (tools/dev site installs it)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ROOT / "tools/site/mkdocs.yml", "-d", folder]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.mark.long
def test_every_page_and_lesson_is_on_the_site(site: Path) -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").rglob("*.ipynb")]
    named = (page.relative_to(ROOT).with_suffix(".html") for page in pages)
    lost = [name for name in named if not (site / name.with_stem(name.stem.replace("README", "index"))).exists()]
    assert lost == []
    lesson = (site / "docs/course/1-copying-a-log.html").read_text(encoding="utf-8")
    assert "Exercise: repair it" in lesson
    assert (site / "docs/reference/audit.schema.json").exists()


@pytest.mark.long
def test_a_page_fetches_nothing_from_elsewhere(site: Path) -> None:
    found = {page.name: FETCHED.findall(page.read_text(encoding="utf-8")) for page in site.rglob("*.html")}
    assert {name: links for name, links in found.items() if links} == {}


@pytest.mark.long
def test_the_search_knows_pages_lessons_and_reference(site: Path) -> None:
    index = json.loads((site / "search/search_index.json").read_text(encoding="utf-8"))
    places = {document["location"] for document in index["docs"]}
    assert {"docs/course/2-quorums.html", "docs/reference/language.html#all_of", "docs/audit.html"} <= places


class Quiet(SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.mark.long
@needs_browser
def test_in_a_browser_pages_fit_and_can_be_read(site: Path) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = ("index", "docs/faults", "docs/audit", "docs/course/1-copying-a-log", "docs/reference/commands")
    try:
        for dark in (False, True):  # the site keeps its first choice of light or dark: a browser for each
            with browser() as driver:
                for page in pages:
                    found = flaws(driver, f"http://127.0.0.1:{server.server_port}/{page}.html", modes=(dark,))
                    assert [text for text in found if not re.search(r": 1\.00 ", text)] == [], "1.00: out of sight"
    finally:
        server.shutdown()
