"""A model of one's own, `./file.py[:NAME]`: checked, proved and exported as those that are here."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

TEXT = '''
"""Voters decide what a quorum voted for."""

from viewproof.spec.lang import *

Voter, Round = Sort("Voter"), Sort("Round")


@action
def vote(s, r: Voter, x: Round):
    """A voter votes once."""
    require(s.voted[r] == NONE)
    s.voted[r] = some(x)


@action
def decide(s, r: Voter, x: Round):
    """Enough voted the same."""
    require(count(Voter, lambda q: s.voted[q] == some(x)) >= s.cfg)
    s.decided[r] = some(x)


@invariant("J1", "agreement")
def agreement(s):
    """No two voters decide differently."""
    return forall(Voter, lambda a: forall(Voter, lambda b: any_of(
        s.decided[a] == NONE, s.decided[b] == NONE, s.decided[a] == s.decided[b])))


@witness("J1", "a decision")
def decision(s):
    """Somebody decides."""
    return exists(Voter, lambda a: s.decided[a] != NONE)


def votes(voters=3, quorum=2):
    schema = Schema()
    schema.state("voted", (Voter,), optional(Round), doc="1 + what it voted for")
    schema.state("decided", (Voter,), optional(Round), doc="1 + what it decided")
    return Spec("votes", schema, quorum, (vote, decide), (agreement,), (decision,),
                Instance({"Voter": voters - 1, "Round": 1}))


small = votes()
'''


@pytest.fixture
def own(tmp_path: Path) -> str:
    file = tmp_path / "mine.py"
    file.write_text(TEXT)
    return str(file)


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


def test_it_is_checked_in_its_own_size_and_in_others(own: str, tmp_path: Path) -> None:
    assert "holds: J1" in run("check", own).stdout
    four = run("check", f"{own}:small", "--size", "Voter=4", "--json", str(tmp_path / "a.json"))
    assert four.exit_code == 1
    assert "violated: J1 agreement" in four.stdout
    assert json.loads((tmp_path / "a.json").read_text())["sizes"] == "Voter=4 (0 to 3), Round=2 (0 to 1)"
    assert run("check", f"{own}:votes", "--size", "voters=4", "--size", "quorum=3").exit_code == 0
    assert run("check", f"{own}:votes", "--size", "quorum=1", "--engine", "interp").exit_code == 1


def test_it_is_proved_and_exported(own: str, tmp_path: Path) -> None:
    failed = run("prove", f"{own}:votes", "--workers", "1", "--size", "quorum=1")
    assert failed.exit_code == 1
    assert "a real break:" in failed.stdout
    missing = run("prove", own, "--workers", "1", "--json", str(tmp_path / "p.json"))
    assert missing.exit_code == 4
    assert "That is the answer for this size" in missing.stdout
    assert "viewproof.prove(spec, lemmas=[…])" in missing.stdout
    assert json.loads((tmp_path / "p.json").read_text())["led"]["break"] is None
    assert run("export", "tla", own, "--out", str(tmp_path / "tla")).exit_code == 0
    assert (tmp_path / "tla" / "votes.tla").exists()


def test_its_mutants_are_hunted_in_its_size_and_reasons_are_read(own: str, tmp_path: Path) -> None:
    table = tmp_path / "t.json"
    open_ = run("mutate", own, "--json", str(table))
    assert open_.exit_code == 4, open_.output
    assert "\n  J1 after 4 steps (Voter=3 (0 to 2), Round=2 (0 to 1))" in open_.stdout
    assert "votes: 8 of 9 mutants are noticed, 0 are explained, 1 are open" in open_.stdout
    (row,) = [row for row in json.loads(table.read_text())["mutants"] if row["death"] is None]
    reasons = tmp_path / "reasons.toml"
    reasons.write_text(f'"{row["id"]}" = "no vote is below none"\n')
    explained = run("mutate", f"{own}:votes", "--part", "mine", "--reasons", str(reasons), "--json", str(table))
    assert explained.exit_code == 0, explained.output
    assert "\n  explained: no vote is below none" in explained.stdout
    assert [row["reason"] for row in json.loads(table.read_text())["mutants"] if row["death"] is None] == [
        "no vote is below none"
    ]


def test_two_of_its_versions_are_compared_as_files_and_from_a_revision(own: str, tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org")
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    subprocess.run((*git, "add", "."), check=True)
    subprocess.run((*git, "commit", "-q", "-m", "votes"), check=True)
    Path(own).write_text(TEXT.replace(">= s.cfg", ">= s.cfg - 1"))
    answer = tmp_path / "a.json"
    here = ("--repository", str(tmp_path), "--no-mutants", "--json", str(answer))
    result = run("diff", "HEAD:mine.py:small", f"{own}:small", *here)
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith(f"# HEAD:mine.py:small → {own}:small")
    assert "**votes: broken now**: J1." in result.stdout
    assert "+ require count(Voter, lambda q: s.voted[q] == some(x)) >= s.cfg - 1" in result.stdout
    (sized,) = json.loads(answer.read_text())["sized"]
    assert [step["action"] for step in sized["only_new"]["steps"]] == ["vote", "decide"]
    other = run("diff", f"{own}:small", f"{own}:votes", "--size", "voters=3", *here)
    assert other.exit_code == 2  # the one has sorts, the other parameters
    lacking = run("diff", "HEAD:other.py", own, "--repository", str(tmp_path))
    assert lacking.exit_code == 2
    assert "HEAD has no file other.py" in " ".join(lacking.output.split())


@pytest.mark.parametrize(
    ("words", "refused"),
    [
        (["mutate", "{own}", "--record"], "--record keeps tables of the models that are here"),
        (["mutate", "{own}", "--reasons", "{own}"], "is not TOML"),
        (["mutate", "core", "--size", "View=2"], "--size is for a model of one's own"),
        (["mutate", "core", "--reasons", "{own}"], "--reasons is for a model of one's own"),
        (["mutate", "{own}", "--action", "nothing"], "no action nothing in"),
        (["diff", "{own}", "HEAD"], "are not of a kind"),
        (["diff", "{own}", "{own}", "--model", "core"], "--model is about the models that are here"),
        (["diff", "HEAD", "HEAD", "--size", "View=2"], "--size is for a model of one's own"),
        (["check", "nothing.py"], "there is no file nothing.py"),
        (["check", "{own}:other"], "has no specification other"),
        (["check", "{own}", "--size", "Voters=3"], "votes has no sort Voters; there are: Voter, Round"),
        (["check", "{own}:votes", "--size", "Voter=3"], "votes has no size Voter; there are: voters, quorum"),
        (["check", "{own}", "--size", "Voter"], "is not NAME=NUMBER"),
        (["check", "{own}", "--views", "3"], "--views is no size of"),
        (["check", "{own}", "--fault", "commit.out_of_order"], "--fault is about the models that are here"),
        (["check", "{own}", "--always"], "--always asks for the goals of the models that are here"),
        (["check", "core", "--views", "2", "--size", "View=2"], "--size is for a model of one's own"),
        (["check", "mine"], "nor a file of one's own"),
        (["check", "fence"], "'fence' is an optional part that has no model of its own"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(words: list[str], refused: str, own: str) -> None:
    result = run(*(word.replace("{own}", own) for word in words))
    assert result.exit_code == 2
    assert refused in " ".join(result.output.split())


def test_a_file_that_cannot_be_run_is_an_error_with_its_text(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    result = run("check", str(tmp_path / "broken.py"))
    assert result.exit_code == 2
    assert "cannot be run: ModuleNotFoundError: No module named 'no_such_module'" in " ".join(result.output.split())


def test_a_fault_without_a_model_takes_the_one_in_which_it_shows() -> None:
    result = run("check", "--fault", "commit.apply_at_replicate")
    assert result.exit_code == 1
    assert "violated: I4" in result.stdout
    assert "name a MODEL" in run("check").output


@pytest.mark.parametrize("where", ["at its end", "in a step"])
def test_a_model_that_ends_the_program_does_not_hold(own: str, where: str) -> None:
    """A script's usual last line: before, the exit code was that of a model that holds."""
    ending = TEXT + "\nimport sys\nsys.exit(0)\n"
    step = TEXT.replace("    s.voted[r] = some(x)\n", "    s.voted[r] = some(x)\n    raise SystemExit(0)\n")
    Path(own).write_text(ending if where == "at its end" else step)
    for command in ("check", "prove", "mutate"):
        result = run(command, own)
        assert (result.exit_code, "SystemExit" in result.output or "exit 0" in result.output) == (2, True), command


def test_a_part_that_there_is_not_is_refused_before_anything_is_searched(own: str) -> None:
    result = run("mutate", own, "--part", "nope")
    assert (result.exit_code, "no mutant of" in result.output) == (2, True)
