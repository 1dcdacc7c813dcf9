"""`vsr prove`: exit codes, certificates that are confirmed or stale, counterexamples in words."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

SMALL = ["--views", "2", "--ops", "1", "--requests", "1", "--restarts", "1", "--workers", "1"]


def run(*words: str) -> Result:
    """Run `vsr prove`."""
    return CliRunner().invoke(cli, ["prove", *words])


def test_a_proof_gives_a_certificate_that_is_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    result = run("core_restart", "--induction", *SMALL, "--json", str(file))
    assert result.exit_code == 0
    assert "proved: all of them hold in every reachable state of this instance, at any depth" in result.stdout
    certificate = json.loads(file.read_text())
    assert (certificate["format"], certificate["verdict"]) == ("viewproof.proof/1", "proved")
    assert {"instance", "parts", "specification", "solver", "seconds", "lemmas"} <= set(certificate)
    again = run("--recheck", str(file), "--workers", "1")
    assert again.exit_code == 0
    assert "confirmed: proved" in again.stdout


def test_a_change_of_the_specification_makes_a_certificate_stale(tmp_path: Path) -> None:
    file = tmp_path / "proof.json"
    run("core_restart", "--induction", *SMALL, "--json", str(file))
    certificate = json.loads(file.read_text())
    certificate["parts"]["action on_prepare"] = "0"
    file.write_text(json.dumps(certificate))
    result = run("--recheck", str(file))
    assert result.exit_code == 4
    assert "stale: the specification has changed since: action on_prepare" in result.stdout


def test_a_file_that_is_no_certificate_is_a_usage_error(tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    for text in ("nonsense", "{}", '{"format": "viewproof.proof/1"}', "[]"):
        file.write_text(text)
        assert run("--recheck", str(file)).exit_code == 2


def test_a_failed_proof_is_told_in_words_and_inconclusive(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    words = ["--fault", "state.getstate_truncates", "--reach", "0", "--show", "1", "--json", str(file)]
    result = run("core_restart", "--induction", *SMALL, *words)
    assert result.exit_code == 4
    assert "on_get_state(r=0, v=1) may break I3[v=0, r=0, o=1]: honest_ack" in result.stdout
    assert "    ack[0, 0, 1] = v0\n" in result.stdout
    assert "was not asked" in result.stdout
    (example,) = json.loads(file.read_text())["counterexamples"]
    assert (example["lemma"], example["before"]) == ("I3", "not asked")


@pytest.mark.long
def test_a_failed_proof_from_a_reachable_state_is_a_violation() -> None:
    result = run("core_restart", "--induction", *SMALL, "--fault", "state.getstate_truncates", "--show", "1")
    assert result.exit_code == 1
    assert "I3 really breaks" in result.stdout
    assert "first of all: I3 really breaks: the specification is wrong." in result.stdout


def test_bounded_search_shows_the_behaviour(tmp_path: Path) -> None:
    file = tmp_path / "r.json"
    result = run("core_restart", "--bmc", "2", "--fault", "commit.apply_at_replicate", "--json", str(file))
    assert result.exit_code == 1
    assert "violated: I4 commit_in_order, after 2 steps" in result.stdout
    assert [s["action"] for s in json.loads(file.read_text())["behaviour"]] == ["on_request", "execute"]
    nothing = run("core_restart", "--bmc", "1", *SMALL)
    assert nothing.exit_code == 4
    assert "no break in 1 rounds" in nothing.stdout


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        ([], "name a MODEL, or one --fault"),
        (["--induction"], "name a MODEL"),
        (["core", "--induction", "--bmc", "1"], "--induction and --bmc are one question each"),
        (["core", "--bmc", "1", "--used"], "--used does not apply to --bmc; it is for a proof without a mode and"),
        (["core", "--induction", "--invariant", "I1"], "--invariant does not apply to --induction; it is for --bmc"),
        (["core", "--houdini", "--rounds", "3"], "--rounds does not apply to --houdini; it is for --witness"),
    ],
)
def test_what_is_to_be_done_is_said_once_and_with_its_own_options(words: list[str], refused: str) -> None:
    result = run(*words)
    assert result.exit_code == 2
    assert refused in " ".join(result.output.split())


def test_a_proof_without_a_mode_is_by_induction(tmp_path: Path) -> None:
    result = run("core", *SMALL, "--json", str(tmp_path / "p.json"))
    assert result.exit_code == 0
    assert "proved: all of them hold" in result.stdout


def test_a_proof_that_fails_leads_on_to_a_real_break(tmp_path: Path) -> None:
    file = tmp_path / "p.json"
    result = run("core", *SMALL, "--fault", "commit.apply_at_replicate", "--reach", "0", "--json", str(file))
    assert result.exit_code == 1
    assert "a real break:" in result.stdout
    assert "violated: I4" in result.stdout
    led = json.loads(file.read_text())["led"]
    assert (led["break"], [step["action"] for step in led["behaviour"]]) == ("I4", ["on_request", "execute"])


def test_an_unknown_invariant_is_a_usage_error() -> None:
    assert run("core", "--bmc", "1", "--invariant", "I99").exit_code == 2
