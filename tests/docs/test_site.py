"""The site of the documents: built strictly, whole, and without anything that is fetched from elsewhere."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def served(site: Path) -> Iterator[str]:
    """The address of the site on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


@pytest.mark.long
@needs_browser
def test_in_a_browser_pages_fit_and_can_be_read(site: Path) -> None:
    pages = ("index", "docs/faults", "docs/audit", "docs/course/1-copying-a-log", "docs/reference/commands")
    with served(site) as address:
        for dark in (False, True):  # the site keeps its first choice of light or dark: a browser for each
            with browser() as driver:
                for page in pages:
                    found = flaws(driver, f"{address}/{page}.html", modes=(dark,))
                    assert [text for text in found if not re.search(r": 1\.00 ", text)] == [], "1.00: out of sight"


@pytest.mark.long
@needs_browser
def test_in_a_browser_keys_alone_find_a_page_and_turn_to_the_next(site: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    with served(site) as address, browser() as driver:
        wait = WebDriverWait(driver, 60)

        def press(*keys: str) -> None:
            for key in keys:
                ActionChains(driver).send_keys(key).perform()

        def skips() -> bool:
            driver.get(f"{address}/index.html")
            press(Keys.TAB)
            return bool(driver.switch_to.active_element.text == "Skip to content")

        wait.until(lambda _: skips())  # a key that comes before the page has the focus goes nowhere
        press("/")
        wait.until(lambda _: driver.switch_to.active_element.get_attribute("placeholder") == "Search")
        press(*"quorums")
        first = wait.until(lambda _: driver.find_element(By.CSS_SELECTOR, "a.md-search-result__link"))
        wanted = first.get_attribute("href").partition("?")[0]
        press(Keys.ARROW_DOWN, Keys.ENTER)
        wait.until(lambda _: driver.current_url.partition("?")[0] == wanted)
        driver.get(f"{address}/docs/course/2-quorums.html")
        wait.until(lambda _: press("n") or "/2-" not in driver.current_url)  # until the page listens
        assert re.search(r"/course/[34]-", driver.current_url)
