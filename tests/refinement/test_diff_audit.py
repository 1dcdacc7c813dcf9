"""`vsr diff-audit OLD NEW TRACES`: whose verdict changes, and by which guard; nothing is judged twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

STEADY = Path("traces/recorded/steady")


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(cli, ["diff-audit", *map(str, words)])


def report(tmp_path: Path, name: str, traces: Path, *words: str) -> Path:
    file = tmp_path / f"{name}.json"
    CliRunner().invoke(cli, ["audit", str(traces), "--json", str(file), *words])
    return file


def without_ack(folder: Path) -> Path:
    """The shipped run with a wrong digest in one event."""
    shutil.copytree(STEADY, folder)
    lines = (folder / "replica-1.ndjson").read_text().splitlines()
    at = [n for n, line in enumerate(lines) if '"execute"' in line][20]
    lines[at] = json.dumps(json.loads(lines[at]) | {"digest": "x" * 16})
    (folder / "replica-1.ndjson").write_text("\n".join(lines) + "\n")
    return folder


def test_reports_are_compared_and_the_guard_is_named(tmp_path: Path) -> None:
    good, bad = report(tmp_path, "good", STEADY), report(tmp_path, "bad", without_ack(tmp_path / "bad"))
    answer = tmp_path / "answer.json"
    done = run(good, bad, STEADY, "--json", answer)
    assert done.exit_code == 1, done.output
    found: dict[str, Any] = json.loads(answer.read_text())
    [changed], [cause] = found["changed"], found["causes"]
    assert (changed["run_id"], changed["old"]["verdict"], changed["new"]["verdict"]) == (
        "steady",
        "conforms",
        "violates",
    )
    assert (cause["verdicts"], cause["runs"]) == ("conforms -> violates", ["steady"])
    assert cause["by"] == changed["new"]["by"] != ""
    assert changed["new"]["at"].startswith(str(tmp_path / "bad" / "replica-1.ndjson"))
    assert found["judged"] == {"old": 0, "new": 0}
    assert "conforms -> violates: 1 run:" in done.stdout
    back = run(bad, good, STEADY)
    assert (back.exit_code, "violates -> conforms" in back.stdout) == (0, True)
    assert run(bad, good, STEADY, "--keep-violations").exit_code == 1
    assert run(bad, bad, STEADY, "--keep-violations").exit_code == 0


def test_settings_are_compared_and_the_same_is_not_judged_again(tmp_path: Path) -> None:
    good = report(tmp_path, "good", STEADY)
    done = run(good, ":without=m_commit", STEADY)
    assert (done.exit_code, done.stderr) == (0, "auditing by :without=m_commit\n")
    assert "conforms -> inconclusive: 1 run: missing: m_commit of on_request" in done.stdout
    answer = tmp_path / "answer.json"
    same = run(":", ".", STEADY, "--json", answer)
    assert (same.exit_code, json.loads(answer.read_text())["judged"]) == (0, {"old": 1, "new": 0})
    assert "no run changes its verdict" in same.stdout


def test_what_cannot_be_compared_is_refused_by_name(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("{}")
    broken = tmp_path / "broken"
    broken.mkdir()
    (broken / "t.ndjson").write_text("{\n")
    malformed = report(tmp_path, "malformed", broken)
    for words, text in (
        ((":colour=red", ":"), "expected KEY=VALUE with a KEY of input, profile"),
        ((other, ":"), "other.json: expected a report of vsr audit --json"),
        ((malformed, ":"), "not all of the traces were judged"),
        (("no such version", ":"), "no such version is no directory, and no revision"),
        ((".", ":", "--engine", "spark", "--master", "spark://host:7077"), "have the version that is installed there"),
    ):
        done = run(*words[:2], STEADY, *words[2:])
        assert done.exit_code == 2, done.output
        assert text in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"\xff\xfe", "report.json: expected a report of vsr audit --json: "),
        (b'{"verdicts": [', "report.json: expected a report of vsr audit --json: Input data was truncated"),
        (b"[]", "expected a report of vsr audit --json: Expected `object`, got `array`"),
        (b'{"verdicts": [{"run_id": "a"}]}', "missing required field `verdict` - at `$.verdicts[0]`"),
        (b'{"verdicts": [{"run_id": "a", "verdict": "fine"}]}', "Invalid enum value 'fine'"),
        (
            b'{"verdicts": [{"run_id": "a", "verdict": "violates", "violations": [{}]}]}',
            "missing required field `rule_id` - at `$.verdicts[0].violations[0]`",
        ),
        (b'{"verdicts": [], "stopped": "stopped after 3 events"}', "not all of the traces were judged: stopped after"),
    ],
)
def test_a_report_that_is_none_is_refused_by_its_field(content: bytes, text: str, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    file.write_bytes(content)
    for words in ((file, ":"), (":", file)):
        done = run(*words, tmp_path)
        assert done.exit_code == 2, done.output
        assert text in done.stderr, done.stderr
        assert "auditing" not in done.stderr, "it is read before anything is audited"


def test_traces_and_revisions_that_cannot_be_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "t.ndjson").write_text('{"hello": 1}\n')
    (tmp_path / "empty").mkdir()
    good = report(tmp_path, "good", STEADY)
    kept = good.read_bytes()
    out = tmp_path / "out"
    for words, code, text in (
        ((":", ":", tmp_path / "nothing"), 2, "nothing' does not exist"),
        ((":", ":", tmp_path / "odd"), 2, "t.ndjson:1: run: expected a string"),
        ((":", ":set=x", STEADY), 2, "'x' is not COLUMN=N"),
        (("HEAD~1000000", ":", STEADY), 2, "HEAD~1000000 is no directory, and no revision of ."),
        (("HEAD", ":", STEADY, "--repository", tmp_path), 2, f"HEAD is no directory, and no revision of {tmp_path}"),
        (("--", f"--output={out}", ":", STEADY), 2, f"--output={out} is no directory, and no revision"),
        ((tmp_path, ":", STEADY), 2, "there is no spec/vsr in it"),
        ((":", ":", tmp_path / "empty"), 4, f"nothing is compared: there is no run in {tmp_path / 'empty'}"),
        ((good, ":", STEADY, "--json", good), 2, "is an input"),
        ((":", ":", tmp_path / "odd", "--json", tmp_path / "odd" / "t.ndjson"), 2, "is an input"),
        ((":", ":", tmp_path / "odd", "--json", tmp_path / "odd" / "u.ndjson"), 2, "lies among traces"),
    ):
        done = run(*words)
        assert done.exit_code == code, done.output
        assert text in done.output, done.output
        assert "Traceback" not in done.output
    assert not out.exists()
    assert good.read_bytes() == kept


def test_interrupted_it_ends_and_leaves_no_copy(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "viewproof", "diff-audit", ".", ":without=m_commit", "traces/recorded"]
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True)
    assert process.stderr is not None
    assert process.stderr.readline() == "auditing by .\n"
    os.killpg(process.pid, signal.SIGINT)
    assert process.communicate(timeout=60)[1].endswith("stopped\n")
    assert process.returncode == 4
    # tempfile itself writes an empty file, of eight letters, where it looks for a place: the signal may come just then
    assert not [path for path in tmp_path.iterdir() if path.is_dir() or path.stat().st_size]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_changed_guard_is_named_and_other_runs_are_left_alone(engine: str, tmp_path: Path) -> None:
    """A copy of the program in which a backup takes no prepare above op 50."""
    new = tmp_path / "new"
    for part in ("spec", "refinement", "impl", "viewproof"):
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(part, new / part, symlinks=True, ignore=skip)
    file = new / "spec" / "vsr" / "core" / "normal.py"
    text = file.read_text()
    at = text.index("def on_prepare(")
    guard = text.index("    require(", at)
    file.write_text(text[:guard] + "    require(o <= 50)\n" + text[guard:])
    traces = tmp_path / "traces"
    shutil.copytree(STEADY, traces / "steady")
    shutil.copytree("traces/recorded/kill-primary", traces / "kill-primary")
    answer = tmp_path / "answer.json"
    words = ["--engine", "spark", "--master", "local[2]"] if engine == "spark" else []
    done = run(".", new, traces, "--json", answer, *words)
    assert done.exit_code == 1, done.output
    found = json.loads(answer.read_text())
    assert {one["new"]["action"] for one in found["changed"]} == {"on_prepare"}
    changed = {one["run_id"]: [one["old"]["verdict"], one["new"]["verdict"]] for one in found["changed"]}
    searched = ["--model", "core", "--shapes", "1", "--states", "2000", "--no-mutants", "--json", answer]
    done = CliRunner().invoke(cli, ["diff", ".", *map(str, (new, "--corpus", traces, *searched))])
    assert done.exit_code == 0, done.output
    assert json.loads(answer.read_text())["audits"] == {str(traces): changed}
