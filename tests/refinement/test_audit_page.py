"""The page of an audit: causes first, each told step by step; bounded, escaped, self-contained."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refinement import fakes
from tests.refinement.browser import browser, flaws, look, needs_browser
from tests.refinement.test_behaviour_page import Page
from viewproof.refinement.cli import cli
from viewproof.refinement.discovery import survey
from viewproof.refinement.local import audit
from viewproof.refinement.reports.audit import page, timeline
from viewproof.refinement.reports.audit.causes import causes, kind_of, reasons
from viewproof.refinement.reports.audit.telling import system_of, tell
from viewproof.refinement.verdict import AuditOptions, AuditReport, RunVerdict, Step, UnitResult, Violation

STEADY = Path(__file__).parents[2] / "traces" / "recorded" / "steady"


def changed(folder: Path, change: Any, run: str = "steady") -> Path:
    """The recorded run with some of its lines changed, or left out (None)."""
    for file in sorted(STEADY.glob("*.ndjson")):
        records = [json.loads(line) for line in file.read_text().splitlines()]
        kept = [found for record in records if (found := change({**record, "run": run})) is not None]
        fakes.write_lines(folder / file.name, kept)
    return folder


def ahead(record: dict[str, Any]) -> dict[str, Any]:
    """Node 1 knows of a commit that nobody told it of."""
    if record["node"] == 1 and record["event"] == "on_prepare" and record["seq"] > 200:
        return {**record, "commit_max": record["commit_max"] + 40}
    return record


def gap(record: dict[str, Any]) -> dict[str, Any] | None:
    return None if record["node"] == 2 and 100 < record["seq"] < 120 else record


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> AuditReport:
    """Two runs with one mistake, one with a gap, one that conforms."""
    from viewproof.refinement.checker import check_run

    folder = tmp_path_factory.mktemp("fleet")
    for run, change in (("bad-1", ahead), ("bad-2", ahead), ("gap", gap), ("good", dict)):
        changed(folder / run, change, run)
    return audit(survey([str(folder)]), AuditOptions(), check_run)


@pytest.fixture(scope="module")
def text(report: AuditReport, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page.render(report, tmp_path_factory.mktemp("page"))


def stories(text: str) -> list[dict[str, Any]]:
    found = re.findall(r'<script type="application/json" id="story-\d+">(.*?)</script>', text, re.DOTALL)
    return [json.loads(one) for one in found]


def test_one_mistake_in_two_runs_is_one_cause(report: AuditReport, text: str) -> None:
    (cause,) = causes(report)
    assert [run.run_id for run, _ in cause.found] == ["bad-1", "bad-2"]
    assert "Causes: 1 mistake in 2 runs" in text
    assert len(stories(text)) == 2


def test_the_story_ends_at_the_refused_line_and_its_messages_join_the_steps(report: AuditReport) -> None:
    run = next(run for run in report.verdicts if run.run_id == "bad-1")
    told = tell(run, run.violations[0], system_of("native"))
    steps = told.document["steps"]
    assert steps[-1]["source"] == {"file": run.violations[0].file, "line": run.violations[0].line}
    assert steps[-1]["refused"]["why_not"] == list(run.violations[0].why_not)
    clocks = [int(dict(step["facts"])["clock"]) for step in steps]
    assert clocks == sorted(clocks)
    used = [(use["step"], step["number"]) for step in steps for use in step["uses"]]
    assert used, "messages of the window are arrows"
    for sender, receiver in used:
        facts = dict(steps[receiver - 1]["facts"])
        assert (steps[sender - 1]["actor"], dict(steps[sender - 1]["facts"])["seq"]) == (
            int(facts["m_from"]),
            facts["m_seq"],
        )
    assert [beat.broken for beat in told.scene.beats] == [False] * (len(steps) - 1) + [True]
    assert told.scene.lanes == (0, 1, 2)


def test_what_the_nodes_have_shown_is_brought_up_to_date_step_by_step(report: AuditReport) -> None:
    run = next(run for run in report.verdicts if run.run_id == "bad-1")
    document = tell(run, run.violations[0], system_of("native")).document
    values = [cell[2] for cell in document["cells"]]
    for step in document["steps"]:
        for cell, before, after in step["changes"]:
            assert values[cell] == before
            assert document["cells"][cell][1] == [step["actor"]]
            values[cell] = after
    assert "?" not in {values[n] for n, cell in enumerate(document["cells"]) if cell[0] == "op" and cell[1] == [1]}


def test_a_gap_is_on_the_timeline_and_grouped_by_kind(report: AuditReport, text: str) -> None:
    run = next(run for run in report.verdicts if run.run_id == "gap")
    assert run.timeline is not None
    (mark,) = [mark for mark in run.timeline.marks if mark.kind == "gap"]
    assert (mark.node, mark.text) == (2, "19 events are missing before event 120")
    assert any(mark.kind == "unknown" for mark in run.timeline.marks)
    plan = timeline.plan(run)
    assert plan is not None
    assert [row.node for row in plan.rows] == [0, 1, 2]
    assert any(sign.kind == "gap" for sign in plan.rows[2].signs)
    assert not any(sign.kind == "gap" for sign in plan.rows[0].signs)
    assert all(timeline.LEFT <= sign.x <= timeline.WIDTH for row in plan.rows for sign in row.signs)
    assert "Missing evidence: 1 run inconclusive" in text
    assert timeline.plan(next(run for run in report.verdicts if run.run_id == "good")) is None


def test_reasons_are_one_kind_whatever_their_numbers_and_places() -> None:
    runs = [RunVerdict(f"r{n}", "inconclusive", 1, missing=(f"seq {n} of node 0 at f{n}.ndjson:{n}",)) for n in (1, 2)]
    (reason,) = reasons([*runs, RunVerdict("no", "violates", 1, missing=("seq 3 of node 0 at x:3",))])
    assert reason.text == "seq 1 of node 0 at f1.ndjson:1"
    assert [run.run_id for run in reason.runs] == ["r1", "r2"]
    assert kind_of("column x of node 1") != kind_of("column y of node 1")


def test_the_page_is_well_formed_and_loads_nothing(text: str) -> None:
    found = Page(text)
    assert found.balanced
    assert found.having("src") == []
    links = [str(a["href"]) for a in found.having("href")]
    assert all(link.startswith(("#", "data:")) for link in links)
    assert "http:" not in text.replace("http://www.w3.org", "")
    ids = [a["id"] for a in found.having("id") if not str(a["id"]).startswith(("step-", "head"))]
    assert len(ids) == len(set(ids))


def many(runs: int) -> AuditReport:
    """Runs that all violate, by seven mistakes."""
    verdicts = []
    for n in range(runs):
        steps = tuple(Step(k % 3, "f.ndjson", k + 1, "x", "on_prepare", k + 1, k + 1) for k in range(18))
        violation = Violation(
            f"r{n}", 18, "f.ndjson", 18, 2, "on_prepare", f"rule/{n % 7}", "error", "bad", story=steps
        )
        verdicts.append(RunVerdict(f"r{n}", "violates", 17, violations=(violation,)))
    return AuditReport.combine("local", AuditOptions(), [UnitResult("u", verdicts=tuple(verdicts))])


def test_thousands_of_runs_make_a_page_of_a_few_megabytes(tmp_path: Path) -> None:
    text = page.render(many(5_000), tmp_path)
    assert len(text) < 4_000_000
    assert len(stories(text)) == 7 * page.STORIES_PER_CAUSE
    assert f"and {5_000 - page.RUNS_MAX} more runs" in text
    assert "and 615 more" in text, "of the 715 runs of the first cause"


def test_causes_that_a_baseline_knows_come_last() -> None:
    from viewproof.refinement.baseline import Baseline, Known

    report = many(20)
    first = report.violations[0]
    known = Baseline("viewproof.baseline/1", (Known(first.cause, first.rule_id, first.action),))
    found = causes(replace(report, baseline=known))
    assert found[-1].id == first.cause
    assert (found[-1].known, found[-1].count) == (3, 3)


def test_what_comes_from_a_trace_can_neither_end_a_script_nor_turn_text_around(tmp_path: Path) -> None:
    nasty = "</script><script>alert(1)</script>\u202e\x07"
    step = Step(0, nasty, 1, nasty, nasty, 1, 1, {nasty: nasty}, {nasty: nasty})
    violation = Violation(nasty, 1, nasty, 1, 0, nasty, nasty, "error", nasty, nasty, nasty, story=(step,), rule=nasty)
    run = RunVerdict(nasty, "violates", 1, violations=(violation,), missing=(nasty,), notes=(nasty,))
    text = page.render(AuditReport.combine("local", AuditOptions(), [UnitResult("u", verdicts=(run,))]), tmp_path)
    assert "<script>alert" not in text
    assert "\u202e" not in text
    assert "\x07" not in text
    assert "alert(1)" in text


def test_a_line_of_a_trace_is_linked_from_where_the_page_lies(tmp_path: Path) -> None:
    bad = changed(tmp_path / "traces" / "bad", ahead)
    file = tmp_path / "pages" / "r.html"
    file.parent.mkdir()
    assert CliRunner().invoke(cli, ["audit", str(bad), "--html", str(file)]).exit_code == 1
    (story,) = stories(file.read_text())
    link = story["steps"][-1]["source"]["href"]
    assert (file.parent / link).resolve() == (bad / "replica-1.ndjson").resolve()


def test_a_violation_that_nothing_led_to_is_a_story_of_one_step() -> None:
    violation = Violation("r", 7, "f", 7, 1, "execute", "I1", "error", "op 3 has two checksums")
    told = tell(RunVerdict("r", "violates", 9, violations=(violation,)), violation, None)
    assert [step["source"]["line"] for step in told.document["steps"]] == [7]
    assert told.scene.lanes == (1,)


@pytest.mark.long
@needs_browser
def test_in_a_browser_causes_lead_to_stories_that_keys_step_through(text: str, tmp_path: Path) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    file = tmp_path / "audit.html"
    file.write_text(text)
    with browser() as driver:
        wait = WebDriverWait(driver, 60)

        def heading() -> str:
            return str(driver.find_element(By.CSS_SELECTOR, "#details h2").text)

        def press(*keys: str) -> None:
            driver.find_element(By.TAG_NAME, "body").send_keys(*keys)

        driver.get(file.as_uri())
        assert flaws(driver) == []
        press("j")
        last = len(stories(text)[0]["steps"])
        link = driver.find_element(By.LINK_TEXT, "Step through what led there")
        link.send_keys(Keys.ENTER)
        wait.until(lambda d: heading().startswith(f"{last}."))
        assert "REFUSED" in driver.find_element(By.ID, "details").text.upper()
        press("k", "k")
        assert heading().startswith(f"{last - 2}.")
        assert driver.current_url.endswith(f"#violation=1&step={last - 2}")
        driver.refresh()
        wait.until(lambda d: heading().startswith(f"{last - 2}."))
        assert flaws(driver) == []
        press("]")
        wait.until(lambda d: "2 of 2" in d.find_element(By.ID, "other").text)
        press(Keys.ESCAPE)
        wait.until(lambda d: d.find_element(By.ID, "overview").is_displayed())
        field = driver.find_element(By.ID, "runs-filter")
        field.send_keys("gap")
        assert driver.find_element(By.ID, "runs-shown").text == "1 of 4"
        printed = driver.execute_cdp_cmd("Page.printToPDF", {})["data"]
        assert len(printed) > 20_000


@pytest.mark.long
@needs_browser
def test_in_a_browser_five_lanes_fit_at_1440_pixels(tmp_path: Path) -> None:
    steps = tuple(
        Step(k % 5, "f", k + 1, "x", "on_commit", k // 5 + 1, k + 1, used=(k % 5 - 1, k // 5 + 1) if k % 5 else None)
        for k in range(30)
    )
    violation = Violation("r", 6, "f", 30, 4, "on_start_view_change", "rule", "error", "bad", story=steps)
    run = RunVerdict("r", "violates", 29, violations=(violation,))
    file = tmp_path / "five.html"
    page.write(AuditReport.combine("local", AuditOptions(), [UnitResult("u", verdicts=(run,))]), file)
    with browser() as driver:
        look(driver, 1440, dark=False)
        driver.get(file.as_uri() + "#violation=1")
        fits = """
            const [all, drawing] = ["diagram", "drawing"].map((id) => document.getElementById(id));
            return [all.scrollWidth <= all.clientWidth, drawing.style.zoom];
        """
        fit, zoom = driver.execute_script(fits)
        assert fit
        assert float(zoom) > 0.75, "and can be read"
