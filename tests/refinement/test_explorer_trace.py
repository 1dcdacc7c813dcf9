"""`vsr explore TRACE`: the replay event by event, held against the plain one; why not; what if; what is saved."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refinement.browser import browser, flaws, needs_browser
from tests.refinement.oxia.test_logs import calm
from tests.refinement.test_audit_page import ahead, changed, gap
from tests.refinement.test_explorer import ask
from viewproof.api.trace import TraceError, record_run
from viewproof.refinement.cli.explore import explore, names_trace
from viewproof.refinement.explorer import Server, Trace
from viewproof.spec.engines import interp
from viewproof.spec.engines.guards import Span
from viewproof.spec.lang import SpecError


def opened(folder: Path, change: Any, events: int = 120) -> Trace:
    """The recorded run, its first events changed."""
    run = changed(folder / "run", lambda record: change(record) if record["clock"] <= events else None)
    return Trace(*record_run(run))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return opened(tmp_path_factory.mktemp("good"), dict)


@pytest.fixture(scope="module")
def bad(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    return opened(tmp_path_factory.mktemp("bad"), ahead, 2_000)


@pytest.fixture(scope="module")
def server(bad: Trace) -> Iterator[Server]:
    made = Server(bad)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def test_the_cells_after_each_event_are_those_of_the_plain_replay(good: Trace) -> None:
    """Two replays of one run: Kleene's, that is recorded, and the compiled one."""
    total = good.recording.total
    assert total > 100
    for number in (*range(0, total, 7), total):
        cells, state = good.recording.cells_after(number), good.recording.state_after(number)
        for name, var in cells.schema.vars.items():
            for index in {*cells.known[name], *state.tables.get(name, {})}:
                value = cells.read(var, index)
                if not isinstance(value, Span):
                    assert value == state.get(var, index), (number, name, index)


def test_each_event_stood_for_steps_that_were_enabled_and_wrote_what_is_said(good: Trace) -> None:
    spec, taken = good.spec, 0
    for number in range(1, 80):
        event = good.recording.events[number - 1]
        if len(event.taken) != 1 or event.taken[0].maybe:
            continue
        before, after = (good.recording.state_after(n) for n in (number - 1, number))
        one = event.taken[0]
        made = before
        for receiver, inbox in (after.received or {}).items():
            for name, table in inbox.items():
                for index, value in table.items():
                    made = made.deliver(spec.schema.vars[name], index, value, receiver)
        found = interp.step(spec, made, spec.action(one.action), {k: int(v) for k, v in one.args.items()})
        assert isinstance(found, interp.State), (number, one.call)
        assert found.key() == after.key(), (number, one.call)
        assert len(one.guards) == len(spec.ir(one.action).guards)
        taken += 1
    assert taken > 30


def test_a_window_brings_the_state_up_to_date(good: Trace) -> None:
    window = good.window(60)
    assert (window["from"], window["to"]) == (30, 75)
    story = window["story"]
    values = [cell[2] for cell in story["cells"]]
    for step in story["steps"]:
        for cell, before, after in step["changes"]:
            assert values[cell] == before
            values[cell] = after
    assert any(step["uses"] for step in story["steps"])
    assert [step["shown"] for step in story["steps"]] == list(range(30, 76))
    later = good.window(75)["story"]
    at = {(name, tuple(index)): text for name, index, text in later["cells"]}
    cells = good.recording.cells_after(44)
    assert at["op", (0,)] == str(cells.read(good.spec.schema.vars["op"], (0,)))


def test_it_ends_at_the_event_that_is_refused(bad: Trace) -> None:
    begun = bad.begin()
    assert (begun["verdict"], begun["refused"]) == ("violates", begun["total"])
    last = bad.window(begun["total"])["story"]["steps"][-1]
    assert last["source"]["line"] == bad.verdict.violations[0].line
    assert last["refused"]["rows"][0] == ["rule", bad.verdict.violations[0].rule_id]
    with pytest.raises(SpecError, match="there is no event"):
        bad.window(begun["total"] + 1)


def test_why_not_says_the_guard_with_its_values_and_agrees_with_what_can_be_taken(good: Trace) -> None:
    fork = good.fork(60)
    spec, state = fork.build(()), fork.start
    for action in spec.actions:
        rows = good.why_not(60, action.name)
        for row in rows:
            assert row["enabled"] or row["place"], row
        if any(row["enabled"] for row in rows):
            possible = (interp.step(spec, state, action, args) for args in interp.instances(spec, action))
            assert any(isinstance(found, interp.State) for found in possible), action.name
    (row,) = [row for row in good.why_not(60, "commit") if row["text"].startswith("commit(r=1, o=1)")][:1] or [None]
    assert row is None or "is not" not in row["text"]


def test_what_is_not_known_is_said_and_nothing_goes_on_from_it(tmp_path: Path) -> None:
    trace = opened(tmp_path, gap, 400)
    hole = trace.recording.hole_at
    assert any("no such event in the input" in text for text in trace.recording.events[hole - 1].unknown)
    trace.fork(hole - 1)
    with pytest.raises(SpecError, match="not known here: seq"):
        trace.fork(hole + 5)
    shown = [text for step in trace.window(hole + 5)["story"]["steps"] for _, _, text in step["changes"]]
    assert shown


def test_from_any_event_one_goes_on_with_the_models_steps(server: Server, bad: Trace) -> None:
    assert ask(server, "/api/fork", {"event": 50}) == (200, {"path": "/from-50/"})
    begun = ask(server, "/from-50/api/begin")[1]
    assert (begun["searches"], begun["forms"]) == (False, ["itf", "page", "json"])
    there = ask(server, "/from-50/api/stand", {"faults": [], "walk": []})[1]
    cells = {(name, tuple(index)): text for name, index, text in there["story"]["cells"]}
    op = bad.recording.cells_after(50).read(bad.spec.schema.vars["op"], (0,))
    assert cells["op", (0,)] == str(op) != "0"
    assert {var["name"]: var["init"] for var in there["story"]["vars"]}["op"] == "0", "so what differs is shown"
    group = next(group for group in there["next"] if group["action"] == "start_view_change")
    walk = [["start_view_change", group["steps"][0]["args"]]]
    after = ask(server, "/from-50/api/stand", {"faults": [], "walk": walk})[1]
    assert (after["walk"], after["refused"]) == (walk, "")
    assert all(claim["broken"] is None for claim in after["claims"])
    itf = ask(server, "/from-50/api/save", {"form": "itf", "faults": [], "walk": walk})[1]
    assert '"action": "start_view_change"' in itf["text"]
    assert ask(server, "/from-50/")[0] == 200
    assert ask(server, "/from-51/")[0] == 200, "an address can be reloaded, whatever was asked before"
    status, answer = ask(server, "/from-50/api/search", {"faults": [], "walk": [], "id": "I1", "breaks": True})
    assert (status, answer["error"]) == (409, "nothing is searched for from a state of a trace")


def test_what_is_none_of_the_pages_requests_is_refused(server: Server) -> None:
    assert ask(server, "/api/window", {"event": "1"})[0] == 400
    assert ask(server, "/api/window", {"event": 10**9})[0] == 409
    assert ask(server, "/api/why-not", {"event": 5, "action": "kommit"})[0] == 409
    assert ask(server, "/api/stand", {"faults": [], "walk": []})[0] == 404
    assert ask(server, "/from-999999/")[0] == 409
    assert ask(server, "/api/save", {"event": 5, "form": "exe"})[0] == 409
    assert ask(server, "/", Host="evil.example")[0] == 403
    assert "http" not in ask(server, "/")[1].replace("http-equiv", "").replace("http://www.w3.org", "")


def run_saved(text: str, folder: Path) -> None:
    """Run the one test of a file."""
    names: dict[str, Any] = {}
    exec(compile(text, "saved_test.py", "exec"), names)
    (test,) = (value for name, value in names.items() if name.startswith("test_"))
    test(folder)


def test_what_is_saved_as_a_test_passes_and_as_a_page_stands_alone(server: Server, bad: Trace, tmp_path: Path) -> None:
    saved = ask(server, "/api/save", {"event": bad.recording.total, "form": "python"})[1]
    assert saved["name"].endswith("_test.py")
    run_saved(saved["text"], tmp_path)
    with pytest.raises(AssertionError):
        run_saved(saved["text"].replace(repr(bad.verdict.violations[0].rule_id), "'another'"), tmp_path)
    page = ask(server, "/api/save", {"event": bad.recording.total, "form": "page"})[1]["text"]
    assert "api/window" not in page
    assert bad.verdict.violations[0].rule_id in page


def test_a_trace_is_told_from_a_model_and_a_run_that_is_not_there_is_named(tmp_path: Path) -> None:
    assert names_trace(["--no-open", str(tmp_path)])
    assert not names_trace(["core", "--import", str(tmp_path)])
    assert not names_trace(["./model.py"])
    assert names_trace(["--adapter", "iggy", "server.log"])  # a model has that name, too
    assert not names_trace(["iggy", "--port", "8000"])
    run = changed(tmp_path / "run", lambda record: record if record["clock"] < 20 else None)
    with pytest.raises(TraceError, match="there is no run other; there are: steady"):
        record_run(run, run="other")
    done = CliRunner().invoke(explore, [str(run), "--run", "other"])
    assert (done.exit_code, "there is no run other" in done.output) == (2, True)
    done = CliRunner().invoke(explore, [str(run), "--views", "3"])
    assert (done.exit_code, "No such option" in done.output) == (2, True)
    (tmp_path / "bad.ndjson").write_text("{}\n")
    done = CliRunner().invoke(explore, [str(tmp_path / "bad.ndjson")])
    assert (done.exit_code, "bad.ndjson:1" in done.output) == (2, True)


def test_logs_of_other_systems_are_looked_at_or_refused_with_what_to_do_instead(tmp_path: Path) -> None:
    oxia = Trace(*record_run(calm().write(tmp_path), adapter="oxia"))
    window = oxia.window(oxia.recording.total)
    assert "apply(r=1)" in {each["call"] for step in window["story"]["steps"] for each in step["stands_for"]}
    assert oxia.why_not(oxia.recording.total, "elect")
    with pytest.raises(TraceError, match=r"tigerbeetle-\d+ are gone through once.*vsr audit --html FILE shows"):
        record_run(tmp_path, input="tigerbeetle")


@pytest.mark.long
@needs_browser
def test_in_a_browser_a_run_is_scrubbed_by_keys_and_gone_on_from(server: Server, bad: Trace) -> None:
    from selenium.common.exceptions import StaleElementReferenceException
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import Select, WebDriverWait

    total = bad.recording.total
    with browser() as driver:
        wait = WebDriverWait(driver, 60, ignored_exceptions=[StaleElementReferenceException])

        def at(event: int) -> None:
            wait.until(lambda d: d.find_element(By.CSS_SELECTOR, "#details h2").text.startswith(f"{event}."))

        def press(*keys: str) -> None:
            driver.find_element(By.TAG_NAME, "body").send_keys(*keys)

        driver.get(server.address)
        at(total)
        assert "REFUSED" in driver.find_element(By.ID, "details").text.upper()
        press("k")
        at(total - 1)
        press(Keys.HOME)
        at(1)
        press(Keys.PAGE_DOWN)
        at(11)
        press(*("j" * 40))
        at(51)
        press("v")
        at(total)
        press(Keys.HOME, Keys.PAGE_DOWN)
        at(11)
        choice = driver.find_element(By.CSS_SELECTOR, '#details select[aria-label="Why not this action?"]')
        Select(choice).select_by_value("commit")
        wait.until(lambda d: d.find_elements(By.CSS_SELECTOR, "#details .guard.false .values"))
        driver.refresh()
        at(11)
        assert flaws(driver) == []
        press("f")
        wait.until(lambda d: "/from-11/" in d.current_url)
        wait.until(lambda d: d.find_element(By.TAG_NAME, "body").get_attribute("data-ready") == "yes")
        driver.find_element(By.CSS_SELECTOR, "#choice-list button").click()
        wait.until(lambda d: d.find_element(By.ID, "length").text == "1 step")
        assert flaws(driver) == []
        driver.find_element(By.LINK_TEXT, "← the trace").click()
        at(11)
