"""The page of a behaviour: complete, self-contained, escaped; and alive, where there is a Chromium to try it in."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.spec.story.behaviours import BOOT, GETSTATE, faulty, taken
from viewproof.refinement.cli.check_text import show_value
from viewproof.refinement.cli.story import tell
from viewproof.refinement.reports.behaviour import diagram, render, scene_of, write
from viewproof.spec.engines import story

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


class Page(HTMLParser):
    """What the tests look at: tags with attributes, texts by tag, the embedded document."""

    VOID = frozenset({"meta", "input", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self._open[-1] if self._open else "", []).append(data)

    @property
    def balanced(self) -> bool:
        """Is everything closed that was opened?"""
        return not self._open

    def having(self, attribute: str) -> list[dict[str, str | None]]:
        """Attributes of the tags that have this one."""
        return [attributes for _, attributes in self.tags if attribute in attributes]


def _told(fault: str, calls: Any, broken: str) -> story.Story:
    spec = faulty(fault)
    return tell(spec, taken(spec, calls), about="three replicas", faults=[fault], broken=broken)


@pytest.fixture(scope="module")
def getstate() -> story.Story:
    return _told("state.getstate_truncates", GETSTATE, "I3")


@pytest.fixture(scope="module")
def text(getstate: story.Story) -> str:
    return render(getstate)


def test_every_step_is_there_in_the_diagram_and_as_text(getstate: story.Story, text: str) -> None:
    page = Page(text)
    assert page.balanced
    assert [a["data-step"] for a in page.having("data-step")] == [str(n) for n in range(1, 9)]
    assert [a["data-number"] for a in page.having("data-number")] == [str(n) for n in range(1, 9)]
    codes = page.texts["code"]
    for step in getstate.steps:
        assert step.call() in codes
        assert str(step.source) in codes
        assert {leaf.text() for leaf in step.leaves} <= set(codes)


def test_the_document_in_the_page_is_the_story(getstate: story.Story, text: str) -> None:
    found = re.search(r'<script type="application/json" id="story">(.*?)</script>', text, re.DOTALL)
    assert found is not None
    assert json.loads(found[1]) == json.loads(json.dumps(story.to_json(getstate)))


def test_arguments_keep_the_order_of_the_parameters(text: str) -> None:
    assert '"args":{"r":2,"v":0,"n":1}' in text


def test_the_page_loads_nothing(text: str) -> None:
    page = Page(text)
    assert not page.having("src")
    assert {str(a["href"])[:6] for a in page.having("href")} == {"#step="}
    assert not [tag for tag, _ in page.tags if tag in ("link", "iframe", "img", "object", "embed")]
    assert not re.findall(r"https?://|@import|url\((?!#)|fetch\(|XMLHttpRequest", text)


def test_texts_are_escaped(getstate: story.Story) -> None:
    nasty = "</script><script>alert(1)</script>"
    spec = getstate.spec
    steps = taken(spec, GETSTATE)
    told = story.tell(spec, steps, show=lambda *_: nasty, about=nasty, faults=[nasty], marks={"on_get_state": nasty})
    text = render(told)
    assert "alert(1)" in text
    assert "<script>alert" not in text
    assert Page(text).balanced
    assert text.count("</script>") == 2


def test_an_arrow_leads_from_the_sender_to_each_user_and_fault_and_violation_are_marked(getstate: story.Story) -> None:
    drawing = diagram.draw(scene_of(getstate))
    assert {(a.message, a.first, a.last) for a in drawing.arrows} == {
        (used.message, used.step, step.number) for step in getstate.steps for used in step.uses
    }
    assert [a.number for a in drawing.arrows] == list(range(len(drawing.arrows)))
    assert [box.badges for box in drawing.boxes] == [""] * 7 + ["⚑✗"]
    assert [lane.member for lane in drawing.lanes] == [0, 1, 2]
    assert len({box.y for box in drawing.boxes}) == len(drawing.boxes)


def test_a_crash_is_marked_by_the_tag_of_its_action(tmp_path: Path) -> None:
    told = _told("boot.view_from_last_prepare", BOOT, "I6")
    assert scene_of(told).beats[1].crash
    write(told, tmp_path / "p.html")
    assert "⚡⚑✗" in (tmp_path / "p.html").read_text(encoding="utf-8")


def test_values_are_shown_as_in_the_command_line(getstate: story.Story, text: str) -> None:
    assert getstate.show is show_value
    assert "entry[2, 1]: v0 → none" in text


def _browse(page: Path, address: str, profile: Path, *more: str) -> str:
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *more, f"{page.as_uri()}#{address}"]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=180).stdout


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_in_a_browser_a_deep_link_shows_its_step_filter_and_why_not(text: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text, encoding="utf-8")
    dom = _browse(file, "step=6&filter=start_view(&why-not=commit", tmp_path / "profile", "--dump-dom")
    details = dom[dom.index('<section id="details"') : dom.index('<details id="text"')]
    assert "start_view(r=1, b=0)" in details
    assert "commit(r=1, o=1):  o == state.commit_max[r] + 1" not in details
    assert "count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o])" in details
    assert "uses do_view_change of 0 (step 4)" in details
    assert "<code>ack[view, replica, op]</code>: prepare_ok" in details, "what the indices are"
    chosen = re.findall(r'class="step[^"]*\bchosen\b[^"]*"[^>]*data-step="(\d+)"', dom)
    dim = re.findall(r'class="step[^"]*\bdim\b[^"]*"[^>]*data-step="(\d+)"', dom)
    assert chosen == ["6"]
    assert dim == ["1", "2", "3", "4", "5", "8"]


KEYS = """<script>
window.seen = [];
window.addEventListener("error", (e) => seen.push("error: " + e.message));
const now = () => seen.push(document.querySelector(".step.chosen")?.dataset.step ?? "0");
const key = (k) => { document.body.dispatchEvent(new KeyboardEvent("keydown", { key: k, bubbles: true })); now(); };
now();
["k", "ArrowUp", "j", "Home", "ArrowDown", "End"].forEach(key);
document.getElementById("step-4").dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true })); now();
document.getElementById("by-lane").value = "2";
document.getElementById("by-lane").dispatchEvent(new Event("input")); key("j");
seen.push(document.getElementById("shown").textContent, location.hash, document.activeElement.id);
key("/"); seen.push(document.activeElement.id);
document.getElementById("theme").click(); seen.push(document.documentElement.dataset.theme);
document.body.append(Object.assign(document.createElement("pre"), { id: "seen", textContent: seen.join("|") }));
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_in_a_browser_keys_clicks_and_filters_move_the_choice(text: str, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(text.replace("</body>", KEYS + "</body>"), encoding="utf-8")
    dom = _browse(file, "", tmp_path / "profile", "--dump-dom")
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom)
    assert found is not None
    seen = found[1].replace("&amp;", "&").split("|")
    assert seen[:7] == ["8", "7", "6", "7", "0", "1", "8"], "as it opens, then k ArrowUp j Home ArrowDown End"
    assert seen[7:9] == ["4", "7"], "a click, then j to the next step of replica 2"
    assert seen[9:12] == ["2 of 8 steps", "#step=7&by-lane=2", ""]
    assert seen[12:] == ["7", "filter", "dark"]


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
def test_a_browser_makes_a_picture_of_it(text: str, tmp_path: Path) -> None:
    file, picture = tmp_path / "page.html", tmp_path / "page.png"
    file.write_text(text, encoding="utf-8")
    _browse(file, "step=8", tmp_path / "profile", f"--screenshot={picture}", "--window-size=1500,950")
    assert picture.stat().st_size > 50_000
