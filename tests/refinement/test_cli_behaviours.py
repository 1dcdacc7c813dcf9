"""`vsr check --html --why-not` and `vsr export itf, html, graph`: files, answers, refusals, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.refinement.browser import browser, flaws, needs_browser
from viewproof.refinement.cli import cli

BOOT = ("core_restart", "--fault", "boot.view_from_last_prepare")
SMALL = ("core", "--views", "1", "--ops", "1", "--requests", "1")


def _run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(word) for word in words])


def test_check_writes_the_page_and_answers_why_not(tmp_path: Path) -> None:
    page, answer = tmp_path / "page.html", tmp_path / "answer.json"
    result = _run(
        *("check", *BOOT, "--engine", "interp", "--html", page, "--json", answer),
        *("--why-not", "commit:r=0@2", "--why-not", "restart:n=0@1"),
    )
    assert result.exit_code == 1
    assert "why not commit after step 2:\n  commit(r=0, o=1): state.status[r] == NORMAL is false" in result.stdout
    assert "restart(r=0, n=0): enabled" in result.stdout
    assert "I6 view_monotone" in page.read_text(encoding="utf-8")
    asked = json.loads(answer.read_text())["why_not"]
    assert [a["step"] for a in asked] == [2, 1]
    assert asked[0]["answers"][0]["values"] == ["status[0] = view_change"]


def test_a_model_that_holds_has_no_page(tmp_path: Path) -> None:
    result = _run("check", *SMALL, "--engine", "interp", "--html", tmp_path / "page.html", "--why-not", "commit:r=0@0")
    assert result.exit_code == 0
    assert "there is no behaviour to show" in result.stderr
    assert "commit(r=0, o=1): o <= state.op[r] is false" in result.stdout
    assert not (tmp_path / "page.html").exists()


@pytest.mark.parametrize("question", ["commit", "nothing@0", "commit:x=1@0", "commit:r=7@0"])
def test_a_question_that_makes_no_sense_is_refused_before_the_search(question: str) -> None:
    result = _run("check", *SMALL, "--why-not", question)
    assert result.exit_code == 2
    assert result.stdout == ""


def test_a_question_that_makes_no_sense_in_any_shape_is_refused_before_they_are_searched() -> None:
    result = _run("check", "core", "--why-not", "nothing@0")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "no action nothing; there are on_request" in result.stderr
    assert "restart" in result.stderr
    assert "shapes, each in" not in result.stderr


def test_a_behaviour_is_exported_as_page_and_as_itf(tmp_path: Path) -> None:
    page, trace, answer = tmp_path / "p.html", tmp_path / "t.itf.json", tmp_path / "a.json"
    assert _run("export", "html", *BOOT, "--out", page, "--json", answer).exit_code == 0
    assert "I6 view_monotone" in page.read_text(encoding="utf-8")
    assert [s["action"] for s in json.loads(answer.read_text())["story"]["steps"]] == ["start_view_change", "restart"]
    assert _run("export", "itf", *BOOT, "--out", trace).exit_code == 0
    assert len(json.loads(trace.read_text())["states"]) == 3


def test_a_behaviour_to_a_witness_is_exported(tmp_path: Path) -> None:
    page = tmp_path / "p.html"
    assert _run("export", "html", *SMALL, "--sometimes", "I1", "--out", page).exit_code == 0
    assert '<span class="verdict good">reached</span>' in page.read_text(encoding="utf-8")
    assert _run("export", "html", *SMALL, "--sometimes", "nothing", "--out", page).exit_code == 2


def test_nothing_to_export_is_exit_2_and_a_bound_exit_4(tmp_path: Path) -> None:
    result = _run("export", "itf", *SMALL, "--out", tmp_path / "t.itf.json")
    assert result.exit_code == 2
    assert "core holds: it has no counterexample" in result.stderr
    result = _run("export", "itf", "core", "--max-states", "100", "--out", tmp_path / "t.itf.json")
    assert result.exit_code == 4
    assert not list(tmp_path.iterdir())


def test_a_state_graph_is_exported_with_a_path(tmp_path: Path) -> None:
    out, page, answer = tmp_path / "g.graphml", tmp_path / "p.html", tmp_path / "a.json"
    result = _run(
        *("export", "graph", *SMALL, "--out", out, "--to", "commit_min[1]=1", "--html", page, "--json", answer)
    )
    assert result.exit_code == 0
    assert "94 states, 258 steps" in result.stdout
    assert "a shortest path from initial to commit_min[1]=1: 6 steps" in result.stdout
    assert out.exists()
    assert len(json.loads(answer.read_text())["path"]) == 6
    assert page.read_text(encoding="utf-8").count('class="step') == 6


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("core",), "core has more than 60 reachable states"),
        ((*SMALL[:1], "--out", "g.svg"), "must be one of .graphml, .dot, .json"),
        ((*SMALL[:1], "--html", "p.html"), "needs --to"),
        ((*SMALL[:1], "--to", "foo[1]=1"), "no variable foo"),
        ((*SMALL[:1], "--invariant", "I1"), "--invariant has no place here"),
    ],
)
def test_a_graph_that_cannot_be_is_refused(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    result = _run("export", "graph", *words, "--max-states", "60")
    assert result.exit_code == 2
    assert message in result.stderr


def test_what_a_size_never_meets_is_named_beside_what_holds() -> None:
    result = _run("check", "iggy", "--ops", "1")
    assert result.exit_code == 0
    [line] = [line for line in result.stdout.splitlines() if line.startswith("holds: ")]
    assert line.endswith("; but in this size never enabled: execute_evicting; vacuous: I3, I5, I7, I8, I10, I12")
    assert "but in this size" not in _run("check", "oxia", "--terms", "2", "--offsets", "2").stdout


@needs_browser
@pytest.mark.long
def test_in_a_browser_the_page_fits_every_width_and_its_steps_are_chosen_by_keys(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert _run("export", "html", "core", "--fault", "state.getstate_truncates", "--out", page).exit_code == 0
    with browser() as driver:
        driver.get(page.as_uri())
        assert flaws(driver) == []

        def heading() -> str:
            return str(driver.find_element("css selector", "#details h2").text)

        assert heading().startswith("8.")
        driver.find_element("tag name", "body").send_keys("kk")
        assert heading().startswith("6.")
        assert driver.current_url.endswith("#step=6")
        assert flaws(driver) == []
