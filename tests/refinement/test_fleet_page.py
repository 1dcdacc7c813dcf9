"""The page on a fleet links the runs of a cause to their stories, whatever the runs are called."""

from __future__ import annotations

import re
from urllib.parse import unquote

from viewproof.refinement.reports.fleet import Cause, Fleet, render

ONE = {
    "run": "a b/1", "rule_id": "replay.refused", "rule": "", "message": "m", "node": 0, "seq": 3, "action": "execute",
    "expected": "", "observed": "", "place": "", "changes": [], "why_not": [], "story": ["node 0: start [x:1]"],
    "carried": {}, "rule_fingerprint": "f1",
}  # fmt: skip


def test_runs_of_a_cause_link_to_their_stories() -> None:
    stories = {run: ONE | {"run": run, "message": f"it is {run}", "seq": n} for n, run in enumerate(("a b/1", "<c>"))}
    cause = Cause(9, ("a b/1", "<c>", "other"), ONE, stories)
    page = render(Fleet({"violates": 9, "conforms": 1}, 100, (cause,)))
    links = re.findall(r'<a href="#([^"]+)">', page)
    assert [unquote(link) for link in links] == ["a b/1/f1", "<c>/f1"]
    for link in links:
        assert f'<details id="{link}">' in page
    assert "it is &lt;c&gt;" in page
    assert ", other, and 6 more" in page


def test_a_cause_without_stories_names_its_runs() -> None:
    page = render(Fleet({"violates": 1}, 1, (Cause(1, ("r",), ONE),)))
    assert "<dd>r</dd>" in page


def test_guards_that_were_open_or_false_and_idle_actions_are_named() -> None:
    guards = (("commit", "a < b", "normal.py:3", 1_200, 7, 1),)
    page = render(Fleet({"conforms": 2}, 9, coverage=(("commit", 1_207, 2),), guards=guards, idle=("nack", "rejoin")))
    assert "<code>commit</code>: <code>a &lt; b</code>" in page
    assert '<td class="n">1,200</td><td class="n">7</td><td class="n">1</td>' in page
    assert "No run took <code>nack</code>, <code>rejoin</code>." in page
    assert "Guards that" not in render(Fleet({"conforms": 2}, 9))
