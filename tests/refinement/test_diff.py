"""`vsr diff OLD NEW`: two versions of a specification, as directories or revisions, and the page about them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

VERSION = '''
from viewproof.spec.lang import (
    Instance, Schema, Sort, Spec, action, all_of, any_of, count, invariant, optional, require, some, up_to, witness,
    NONE,
)
from viewproof.spec.vsr.bounds import Bounds
Voter, Round = Sort("Voter"), Sort("Round")
MODELS = {"core": Bounds()}

@action
def vote(s, r: Voter):
    """A voter votes once."""
    require(s.voted[r] == NONE)
    s.voted[r] = some(s.round[r])

@action
def move(s, r: Voter):
    """A voter that has not voted goes on."""
    require(all_of(s.voted[r] == NONE, s.round[r] < 1))
    s.round[r] = s.round[r] + 1

@action
def decide(s, r: Voter):
    """Enough votes."""
    require(count(Voter, lambda q: s.voted[q] == some(s.round[r])) >= NEEDED)
    s.decided[r] = some(s.round[r])

@invariant("J1", "agreement")
def agreement(s):
    """No two voters decide differently."""
    return any_of(s.decided[0] == NONE, s.decided[1] == NONE, s.decided[0] == s.decided[1])

@witness("J1", "a decision")
def decision(s):
    """Somebody decides."""
    return s.decided[0] != NONE

def model(name, replicas=3, bounds=None):
    schema = Schema()
    schema.state("round", (Voter,), up_to(Round), doc="where it is")
    schema.state("voted", (Voter,), optional(Round), doc="its vote")
    schema.state("decided", (Voter,), optional(Round), doc="what it decided")
    limits = Instance({"Voter": replicas - 1, "Round": 1})
    return Spec("core", schema, None, (vote, move, decide), (agreement,), (decision,), limits)
'''
LEMMAS = """
from spec.vsr import agreement
def lemmas_of(cfg):
    return (agreement,)
"""


def version(folder: Path, needed: int) -> Path:
    for name, text in {
        "__init__.py": "",
        "lang/__init__.py": "",
        "lang/record.py": "from viewproof.spec.lang.record import record_predicate\n",
        "vsr/__init__.py": VERSION.replace("NEEDED", str(needed)),
        "vsr/lemmas.py": LEMMAS,
    }.items():
        file = folder / "spec" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["diff", *(str(word) for word in words)])


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes are kept apart; compiled code is not."""
    monkeypatch.setattr("viewproof.spec.engines.portfolio.outcome.cache_dir", lambda: tmp_path / "cache" / "explicit")


def test_a_smaller_quorum_is_told_as_text_as_a_behaviour_and_as_what_breaks(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 2), version(tmp_path / "new", 1)
    page, answer = tmp_path / "page.md", tmp_path / "answer.json"
    result = run(old, new, "--shapes", "1", "--page", page, "--json", answer)
    assert result.exit_code == 1, result.output
    assert page.read_text() == result.stdout
    assert "- require count(Voter, lambda q: s.voted[q] == some(s.round[r])) >= 2" in result.stdout
    assert "+ require count(Voter, lambda q: s.voted[q] == some(s.round[r])) >= 1" in result.stdout
    assert "**core: broken now**: J1." in result.stdout
    assert "The shortest behaviour that core has now and had not" in result.stdout
    assert "had and has no more" not in result.stdout
    assert "- `vsr prove core`: action decide" in result.stdout
    found = json.loads(answer.read_text())
    (sized,) = found["sized"]
    assert [step["action"] for step in sized["only_new"]["steps"]] == ["vote", "decide"]
    assert sized["only_old"]["steps"] == []
    assert sized["only_old"]["complete"]
    assert (sized["old"]["verdict"], sized["new"]["verdict"]) == ("holds", "violated")


AUDITS = """
import json, sys

def cli():
    run = {"run_id": "r1", "verdict": "VERDICT", "violations": [], "missing": []}
    report = {"verdicts": [run, {"run_id": "r2", "verdict": "conforms"}], "problems": PROBLEMS}
    open(sys.argv[-1], "w").write(json.dumps(report))
"""


def audits(folder: Path, verdict: str, problems: str = "[]") -> Path:
    """A version that gives this verdict on a run, whatever is audited."""
    file = version(folder, 2) / "refinement" / "cli" / "__init__.py"
    file.parent.mkdir(parents=True)
    (file.parent.parent / "__init__.py").touch()
    file.write_text(AUDITS.replace("VERDICT", verdict).replace("PROBLEMS", problems))
    return folder


def test_runs_whose_verdict_differs_are_told_of_each_corpus(tmp_path: Path) -> None:
    (tmp_path / "corpus").mkdir()
    answer = tmp_path / "answer.json"
    words = (tmp_path / "old", tmp_path / "new", "--shapes", "1", "--corpus", tmp_path / "corpus", "--json", answer)
    audits(tmp_path / "old", "conforms")
    audits(tmp_path / "new", "violates")
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert json.loads(answer.read_text())["audits"] == {str(tmp_path / "corpus"): {"r1": ["conforms", "violates"]}}
    assert "r1" in result.stdout
    problem = '[{"file": "t.ndjson", "line": 3, "field": "view", "expected": "a number", "got": "x"}]'
    audits(tmp_path / "broken", "conforms", problem)
    result = run(tmp_path / "broken", *words[1:])
    assert result.exit_code == 2
    assert "not all of the traces were judged: t.ndjson:3: view: expected a number, got x" in result.stderr


def test_a_model_that_only_one_version_has_is_told_by_what_it_is_made_of(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 2), version(tmp_path / "new", 2)
    file = new / "spec" / "vsr" / "__init__.py"
    file.write_text(file.read_text().replace('{"core": Bounds()}', '{"core": Bounds(), "larger": Bounds()}'))
    result = run(old, new, "--shapes", "1")
    assert result.exit_code == 0, result.output
    assert "**model `larger`** (new)" in result.stdout
    assert "+ actions: 3 that other models have" in result.stdout
    assert "+ invariants: 1 that other models have" in result.stdout


def test_a_model_that_is_new_is_searched_as_it_stands(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 2), version(tmp_path / "new", 1)
    file = old / "spec" / "vsr" / "__init__.py"
    file.write_text(file.read_text().replace('{"core": Bounds()}', '{"earlier": Bounds()}'))
    result = run(old, new, "--shapes", "1")
    assert result.exit_code == 1, result.output
    assert "**core: broken now**: J1." in result.stdout
    assert "| no such size | J1 broken after " in result.stdout


PROTOCOLS = """
from types import SimpleNamespace as Of
FAULTS = {"vote.twice": Of(doc="a voter votes twice")}
def portfolio_of(name):
    return Of(sizes=[Of(name=size, max_states=1 << 32) for size in SIZES])
"""


def test_sizes_that_a_check_searches_and_known_mistakes_are_told(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 2), version(tmp_path / "new", 2)
    for folder, sizes in ((old, ["small"]), (new, ["small", "large"])):
        (folder / "spec" / "protocols.py").write_text(PROTOCOLS.replace("SIZES", str(sizes)))
    file = new / "spec" / "protocols.py"
    file.write_text(file.read_text().replace("FAULTS = {", 'FAULTS = {"vote.late": Of(doc="a vote comes late"), '))
    result = run(old, new)
    assert result.exit_code == 0, result.output
    assert "**portfolio `core`** (in core)\n\n```diff\n+ large\n```" in result.stdout
    assert "**mistake `vote.late`** (new)\n\n```diff\n+ a vote comes late\n```" in result.stdout


def test_a_larger_quorum_is_no_break_and_its_mutants_are_told(tmp_path: Path) -> None:
    old, new = version(tmp_path / "old", 2), version(tmp_path / "new", 3)
    result = run(old, new, "--shapes", "1")
    assert result.exit_code == 0, result.output
    assert "The shortest behaviour that core had and has no more" in result.stdout
    assert "Mutants of the changed actions" in result.stdout
    assert "Survive now, and did not before:\n\n- `decide | quorum <= count(" in result.stdout


def test_a_version_without_a_name_is_refused_by_its_place(tmp_path: Path) -> None:
    for words, which in ((("", tmp_path), "OLD"), ((tmp_path, " "), "NEW")):
        result = run(*words)
        assert result.exit_code == 2
        assert f"{which} is empty; expected a directory" in result.stderr


def test_two_equal_versions_differ_in_nothing(tmp_path: Path) -> None:
    result = run(version(tmp_path / "old", 2), version(tmp_path / "new", 2))
    assert result.exit_code == 0
    assert "Nothing that is recorded differs" in result.stdout


def test_revisions_of_a_repository_are_compared(tmp_path: Path) -> None:
    git = ("git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=e@example.org")
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    for needed in (2, 1):
        version(tmp_path, needed)
        subprocess.run((*git, "add", "."), check=True)
        subprocess.run((*git, "commit", "-q", "-m", f"quorum {needed}"), check=True)
    result = run("HEAD~1", "HEAD", "--repository", tmp_path, "--shapes", "1", "--no-mutants")
    assert result.exit_code == 1, result.output
    assert result.stdout.startswith("# HEAD~1 → HEAD")


def test_what_is_no_version_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    result = run(tmp_path / "empty", tmp_path / "empty")
    assert result.exit_code == 2
    assert "there is no spec/vsr in it" in result.stderr
    result = run("no-such-revision", "HEAD", "--repository", tmp_path)
    assert result.exit_code == 2
    assert "no-such-revision is no directory, and no revision of" in result.stderr
    broken = version(tmp_path / "broken", 2)
    (broken / "spec/vsr/__init__.py").write_text("raise ValueError('not today')")
    result = run(broken, broken)
    assert result.exit_code == 2
    assert "the specification cannot be recorded: ValueError: not today" in result.stderr
