"""`vsr explore`: what the page is told, what it may ask, what it saves; and the page in a browser, if there is one."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.refinement.browser import browser, flaws, needs_browser
from viewproof.api.model import model_size
from viewproof.refinement.cli.check import check
from viewproof.refinement.cli.explore import _named, explore
from viewproof.refinement.explorer import Goal, Server, Subject

FAULT = "state.getstate_truncates"
REQUEST = ["on_request", {"r": 0, "c": 1, "s": 1}]


def subject(name: str = "core", max_states: int = 3_000_000, **sizes: int) -> Subject:
    return _named(name, model_size(name, None, (), sizes), (), "core", max_states)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    made = Server(subject(views=3, ops=1))
    thread = threading.Thread(target=made.serve_forever, daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.search.stop()
    made.server_close()


def ask(server: Server, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    """Status and answer of a request as the page makes it; `body` as it is, if it is bytes."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    request = urllib.request.Request(server.address.rstrip("/") + path, data, {"Content-Type": "application/json"})
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            text = answer.read().decode()
            return answer.status, json.loads(text) if "json" in answer.headers["Content-Type"] else text
    except urllib.error.HTTPError as problem:
        return problem.code, json.loads(problem.read())


def stand(server: Server, walk: list[Any], faults: tuple[str, ...] = ()) -> Any:
    status, found = ask(server, "/api/stand", {"faults": list(faults), "walk": walk})
    assert status == 200, found
    return found


def sought(server: Server, id: str, *, breaks: bool, faults: tuple[str, ...] = ()) -> Any:
    """What a search ends with."""
    body = {"faults": list(faults), "walk": [], "id": id, "breaks": breaks}
    assert ask(server, "/api/search", body)[0] == 200
    assert server.search._thread is not None
    server.search._thread.join(timeout=300)
    return ask(server, "/api/search")[1]


def test_at_first_a_request_can_be_taken_and_a_commit_cannot_for_a_reason(server: Server) -> None:
    found = stand(server, [])
    following = {group["action"]: group for group in found["next"]}
    assert {k: v for k, v in following["on_request"]["steps"][0].items() if k != "changes"} == {
        "args": {"r": 0, "c": 1, "s": 1},
        "breaks": None,
    }
    assert ["op", [0], "0", "1"] in following["on_request"]["steps"][0]["changes"]
    assert following["commit"]["steps"] == []
    assert "is false" in following["commit"]["nearest"]
    assert all(claim["broken"] is None for claim in found["claims"])
    assert {claim["id"]: claim["met"] for claim in found["claims"]}["I2"] is False


def test_a_walk_is_taken_as_far_as_it_goes_and_the_rest_is_refused_by_name(server: Server) -> None:
    found = stand(server, [REQUEST, ["commit", {"r": 0, "o": 1}]])
    assert found["walk"] == [REQUEST]
    assert found["refused"].startswith("step 2, commit(r=0, o=1) is not enabled: ")
    assert len(found["story"]["steps"]) == 1
    assert "on_request" in found["drawing"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (["kommit", {}], "no action kommit"),
        (["commit", {"r": 0}], "commit takes r, o"),
        (["commit", {"r": 9, "o": 1}], "r is one of 0 … 2"),
        (["commit", {"r": "0", "o": 1}], "r is one of 0 … 2"),
    ],
)
def test_a_step_that_is_none_is_refused(server: Server, step: list[Any], reason: str) -> None:
    assert reason in stand(server, [step])["refused"]


def test_every_step_that_is_offered_can_be_taken_and_does_what_was_said(server: Server) -> None:
    walk: list[Any] = []
    for _ in range(8):
        before = stand(server, walk)
        offered = [(group["action"], step) for group in before["next"] for step in group["steps"]]
        assert offered
        name, step = offered[len(walk) % len(offered)]
        after = stand(server, [*walk, [name, step["args"]]])
        assert after["refused"] == ""
        cells = before["story"]["cells"]
        taken = after["story"]["steps"][-1]["changes"]
        assert [[*cells[cell][:2], old, new] for cell, old, new in taken] == step["changes"]
        walk = after["walk"]


def test_a_search_leads_to_a_witness_and_with_a_mistake_to_a_break(server: Server) -> None:
    met = sought(server, "I2", breaks=False)
    there = stand(server, met["walk"])
    assert {claim["id"]: claim["met"] for claim in there["claims"]}["I2"] is True
    assert there["story"]["ending"] is None
    assert sought(server, "I3", breaks=True)["walk"] == []
    broken = sought(server, "I3", breaks=True, faults=(FAULT,))
    there = stand(server, broken["walk"], (FAULT,))
    assert there["story"]["ending"]["id"] == "I3"
    assert {claim["id"]: claim["broken"] for claim in there["claims"]}["I3"] == len(broken["walk"])
    before = stand(server, broken["walk"][:-1], (FAULT,))
    steps = [step for group in before["next"] for step in group["steps"] if step["breaks"] == "I3"]
    assert broken["walk"][-1][1] in [step["args"] for step in steps]
    assert ask(server, "/api/search", {"faults": [], "walk": [], "id": "I99", "breaks": True})[0] == 409


def test_a_bound_that_came_first_is_no_answer_and_a_search_can_be_stopped() -> None:
    with Server(subject(max_states=100)) as small:
        thread = threading.Thread(target=small.serve_forever, daemon=True)
        thread.start()
        assert sought(small, "I2", breaks=True)["walk"] is None
        ask(small, "/api/stop", {})
        small.shutdown()
    large = Server(subject(max_states=10**9, views=4, ops=3))
    large.search.begin((), Goal("I2", breaks=True))
    assert large.search.standing()["running"]
    assert large.search.stop()["error"] == "stopped"
    large.server_close()


def test_what_is_saved_as_a_test_passes_and_fails_without_the_mistake(server: Server, tmp_path: Path) -> None:
    walk = sought(server, "I3", breaks=True, faults=(FAULT,))["walk"]
    status, saved = ask(server, "/api/save", {"form": "python", "faults": [FAULT], "walk": walk})
    assert status == 200
    assert saved["name"].endswith("_test.py")
    file = tmp_path / saved["name"]
    file.write_text(saved["text"])
    run = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 0, done.stdout
    file.write_text(saved["text"].replace(f", faults=['{FAULT}']", ""))
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert done.returncode == 1, "without the mistake nothing breaks"


def test_what_is_saved_as_itf_is_read_back_and_the_page_tells_it(server: Server, tmp_path: Path) -> None:
    walk = stand(server, [REQUEST])["walk"]
    file = tmp_path / "saved.itf.json"
    file.write_text(ask(server, "/api/save", {"form": "itf", "faults": [], "walk": walk})[1]["text"])
    done = CliRunner().invoke(check, ["core", "--views", "3", "--ops", "1", "--import", str(file)])
    assert done.exit_code in (0, None), done.output
    assert "a behaviour of core, 1 steps" in done.output
    page = ask(server, "/api/save", {"form": "page", "faults": [], "walk": walk})[1]["text"]
    assert "on_request(r=0, c=1, s=1)" in page
    story = json.loads(ask(server, "/api/save", {"form": "json", "faults": [], "walk": walk})[1]["text"])
    assert [step["action"] for step in story["steps"]] == ["on_request"]
    assert ask(server, "/api/save", {"form": "exe", "faults": [], "walk": walk})[0] == 409


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        ({"faults": [], "walk": [["commit"]]}, 400),
        ({"faults": "none", "walk": []}, 400),
        ({"walk": []}, 400),
        ({"faults": ["no.such"], "walk": []}, 409),
        (b"[" * 100_000, 400),
    ],
)
def test_a_request_that_is_none_of_the_pages_is_refused_with_a_reason(server: Server, body: Any, status: int) -> None:
    code, answer = ask(server, "/api/stand", body)
    assert code == status
    assert answer["error"]
    assert stand(server, [])["walk"] == [], "and the server serves on"


@pytest.mark.parametrize("length", [str((1 << 20) + 1), "-1", "many"])
def test_a_body_that_is_too_long_is_refused_unread(server: Server, length: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.putrequest("POST", "/api/stand")
    connection.putheader("Content-Type", "application/json")
    connection.putheader("Content-Length", length)
    connection.endheaders()
    with connection.getresponse() as answer:
        assert answer.status == 400
        assert "at most" in json.load(answer)["error"]
    connection.close()


def test_other_sites_are_refused(server: Server) -> None:
    assert ask(server, "/api/begin", Host="evil.example")[0] == 403
    assert ask(server, "/api/stand", {"faults": [], "walk": []}, Content_Type="text/plain")[0] == 400
    assert ask(server, "/etc/passwd")[0] == 404


def test_the_page_loads_nothing_from_elsewhere(server: Server) -> None:
    status, page = ask(server, "/")
    assert status == 200
    assert "core" in page
    assert "http" not in page.replace("http-equiv", "")


def test_only_mistakes_that_the_model_can_make_are_offered(server: Server) -> None:
    begun = ask(server, "/api/begin")[1]
    offered = {fault["id"] for fault in begun["faults"]}
    assert FAULT in offered
    assert "table.evict_forgets" not in offered, "the core has no client table with slots"


def test_an_option_that_has_no_meaning_and_a_port_that_is_taken_are_refused(server: Server) -> None:
    done = CliRunner().invoke(explore, ["core", "--no-open", "--port", str(server.server_port)])
    assert done.exit_code == 2
    assert "cannot be listened on" in done.output
    done = CliRunner().invoke(explore, ["core", "--no-open", "--invariant", "I3"])
    assert done.exit_code == 2
    assert "does not apply to vsr explore" in done.output


def test_ctrl_c_ends_it_with_exit_code_0() -> None:
    run = [sys.executable, "-m", "viewproof", "explore", "core", "--no-open", "--views", "2", "--ops", "1"]
    with subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        with urllib.request.urlopen(address + "api/begin", timeout=60) as answer:
            assert json.load(answer)["model"] == "core"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors


@pytest.mark.long
@needs_browser
def test_in_a_browser_steps_are_chosen_taken_back_and_found(server: Server) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    with browser() as driver:
        wait = WebDriverWait(driver, 60)

        def length() -> int:
            return int(driver.find_element(By.ID, "length").text.split()[0])

        def press(key: str) -> None:
            driver.find_element(By.TAG_NAME, "body").send_keys(key)

        driver.get(server.address)
        wait.until(lambda d: d.find_element(By.TAG_NAME, "body").get_attribute("data-ready") == "yes")
        driver.find_element(By.CSS_SELECTOR, '[data-step="on_request(r=0, c=1, s=1)"]').click()
        wait.until(lambda d: length() == 1)
        press("u")
        wait.until(lambda d: length() == 0)
        press("r")
        wait.until(lambda d: length() == 1)
        driver.find_element(By.ID, "faults").click()
        driver.find_element(By.CSS_SELECTOR, f'#fault-list input[value="{FAULT}"]').click()
        wait.until(lambda d: d.find_element(By.ID, "switched").text == "(1)")
        press(Keys.ESCAPE)
        driver.find_element(By.ID, "goals").click()
        driver.find_elements(By.CSS_SELECTOR, '#goal-list [data-goal="I3"]')[-1].click()
        wait.until(lambda d: "breaks I3" in d.find_element(By.ID, "verdict").text)
        driver.refresh()
        wait.until(lambda d: "breaks I3" in d.find_element(By.ID, "verdict").text)
        assert length() > 3, "a reload comes back to the same place"
        assert flaws(driver) == []
