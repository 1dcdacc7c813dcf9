"""The gate in another's repository: a pull request whose traces break the protocol is stopped at the right place, one
that breaks it as the baseline knows passes. The steps of the GitHub action and of the GitLab job run as they stand.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
GATE = ROOT / ".ci" / "gate"
TOY = ROOT / "tests" / "refinement" / "toy" / "replica.py"
VSR = Path(sys.executable).with_name("vsr")
ADAPTER = "--adapter\ntests.refinement.toy.adapter:TOY"
EXPRESSION = re.compile(r"\$\{\{ (?P<what>[a-z-]+(?:\.[a-z-]+)*) \}\}")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of a team with a replica of its own, which records a trace when it is tested."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copy(TOY, work / "replica.py")
    subprocess.run(["git", "init", "-q", "."], cwd=work, check=True)
    return work


def recorded(repository: Path, *words: str) -> None:
    """What the team's tests do: they run the replica."""
    (repository / "traces").mkdir(exist_ok=True)
    subprocess.run([sys.executable, "replica.py", "traces/run.toy", "3", *words], cwd=repository, check=True)


def runs(repository: Path, script: str, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """A step of a pipeline, in the repository."""
    full = {**os.environ, "PYTHONPATH": str(ROOT), "VIEWPROOF_VSR": str(VSR), **env}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", script], cwd=repository, env=full, text=True, capture_output=True, check=False
    )


def github(repository: Path, **given: str) -> tuple[int, str, str]:
    """The composite action with these inputs: its exit code, what it printed, and the job's summary."""
    action = yaml.safe_load((GATE / "action.yml").read_text())
    assert set(given) <= set(action["inputs"])
    values = {f"inputs.{name}": str(one.get("default", "")) for name, one in action["inputs"].items()}
    values |= {f"inputs.{name}": value for name, value in given.items()}
    output, summary = repository.parent / "output", repository.parent / "summary"
    printed, code = "", 0
    for step in action["runs"]["steps"]:
        if "uses" in step:
            continue
        output.write_text("")
        env = {name: EXPRESSION.sub(lambda m: values[m["what"]], text) for name, text in step["env"].items()}
        env |= {"GITHUB_ACTIONS": "true", "GITHUB_WORKSPACE": str(repository), "GITHUB_OUTPUT": str(output)}
        env |= {"GITHUB_STEP_SUMMARY": str(summary), "GITHUB_ACTION_PATH": str(GATE)}
        done = runs(repository, step["run"], env)
        printed += done.stdout + done.stderr
        for line in output.read_text().splitlines():
            name, _, value = line.partition("=")
            values[f"steps.{step['id']}.outputs.{name}"] = value
        if done.returncode:
            code = done.returncode
            break
    return code, printed, summary.read_text() if summary.exists() else ""


def annotations(printed: str, level: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith(f"::{level} ")]


def test_a_good_change_passes_and_a_mistake_is_stopped_at_its_line(repository: Path) -> None:
    recorded(repository)
    code, printed, summary = github(repository, paths="traces", options=ADAPTER)
    assert code == 0, printed
    assert not annotations(printed, "error")
    assert "### Audit: conforms" in summary
    recorded(repository, "--hasty")
    code, printed, summary = github(repository, paths="traces", options=ADAPTER)
    assert code == 1, printed
    (found,) = annotations(printed, "error")
    place = re.match(r"::error file=traces/run\.toy,line=(?P<line>[0-9]+),title=", found)
    assert place, found
    lines = (repository / "traces" / "run.toy").read_text().splitlines()
    assert int(place["line"]) == next(n for n, line in enumerate(lines, 1) if " agreed " in line), "the first of them"
    assert "### Audit: violates" in summary
    assert f" at traces/run.toy:{place['line']}: " in summary
    log = json.loads((repository / "viewproof-reports" / "audit.sarif").read_text())
    (result,) = log["runs"][0]["results"]
    primary = result["locations"][0]["physicalLocation"]
    assert (primary["artifactLocation"], primary["region"]) == (
        {"uri": "traces/run.toy"},
        {"startLine": int(place["line"])},
    )


def test_what_the_baseline_knows_passes_and_is_said(repository: Path) -> None:
    recorded(repository, "--hasty")
    words = [str(VSR), "audit", *ADAPTER.split("\n"), "traces", "--write-baseline", ".viewproof-baseline.json"]
    done = runs(repository, " ".join(words), {})
    assert done.returncode == 1, done.stderr
    code, printed, summary = github(repository, paths="traces", options=ADAPTER)
    assert code == 0, printed
    assert not annotations(printed, "error")
    assert len(annotations(printed, "warning")) == 1
    assert "1 known" in printed
    assert "### Audit: known" in summary
    recorded(repository)
    code, printed, _ = github(repository, paths="traces", options=ADAPTER)
    assert code == 0, printed
    assert "no run showed it" in printed


def test_malformed_input_is_named_in_the_summary_and_annotated_where_it_is(repository: Path) -> None:
    recorded(repository)
    trace = repository / "traces" / "run.toy"
    trace.write_text(re.sub(r" op=\d+ ", " op=x ", trace.read_text(), count=1))
    line = next(n for n, text in enumerate(trace.read_text().splitlines(), 1) if " op=x " in text)
    code, printed, summary = github(repository, paths="traces", options=ADAPTER)
    assert code == 2, printed
    (found,) = annotations(printed, "error")
    assert found.startswith(f"::error file=traces/run.toy,line={line},")
    assert "Malformed input: " in summary
    assert f"run.toy:{line}: op: " in summary


def test_another_mistake_than_the_known_one_is_stopped(repository: Path) -> None:
    recorded(repository, "--hasty")
    runs(
        repository, f"{VSR} audit {ADAPTER.replace(chr(10), ' ')} traces --write-baseline .viewproof-baseline.json", {}
    )
    recorded(repository)
    trace = repository / "traces" / "run.toy"
    trace.write_text(re.sub(r"( tells told=)2 ", r"\g<1>3 ", trace.read_text(), count=1))
    code, printed, _ = github(repository, paths="traces", options=ADAPTER)
    assert code == 1, printed
    assert len(annotations(printed, "error")) == 1


@pytest.mark.parametrize(("policy", "code"), [("fail", 4), ("pass", 0), ("maybe", 2)])
def test_missing_evidence_stops_unless_it_may(repository: Path, policy: str, code: int) -> None:
    recorded(repository)
    trace = repository / "traces" / "run.toy"
    lines = trace.read_text().splitlines(keepends=True)
    trace.write_text("".join(lines[:20] + lines[21:]))
    got, printed, _ = github(repository, paths="traces", options=ADAPTER, inconclusive=policy)
    assert got == code, printed


def test_no_traces_and_shell_text_in_an_input_are_refused(repository: Path) -> None:
    assert github(repository, paths="")[0] == 2
    code, printed, _ = github(repository, paths="$(touch stolen); `touch stolen`")
    assert code == 2
    assert "Traceback" not in printed
    assert not (repository / "stolen").exists()


def test_the_gitlab_job_runs_the_same_gate(repository: Path) -> None:
    job: dict[str, Any] = yaml.safe_load((GATE / "gitlab.yml").read_text())[".viewproof"]
    recorded(repository, "--hasty")
    origin = repository.parent / "origin"
    origin.mkdir()
    shutil.copytree(GATE, origin / ".ci" / "gate")
    identity = "-c user.name=t -c user.email=t@example.org"
    subprocess.run(
        ["bash", "-ec", f"git init -q -b main . && git add . && git {identity} commit -qm gate"], cwd=origin, check=True
    )
    env = {name: str(value) for name, value in job["variables"].items()}
    env |= {"VIEWPROOF_REPOSITORY": str(origin), "VIEWPROOF_REVISION": "main", "VIEWPROOF_PATHS": "traces"}
    env |= {"VIEWPROOF_OPTIONS": ADAPTER, "CI_BUILDS_DIR": str(repository.parent), "CI_PROJECT_DIR": str(repository)}
    done = runs(repository, "\n".join(job["script"]), env)
    assert done.returncode == 1, done.stderr
    report = repository / job["artifacts"]["reports"]["junit"]
    assert "<failure" in report.read_text()


PYTHON = """#!/bin/sh
[ "$1 $2" = "-m venv" ] || exec {python} "$@"
mkdir -p "$4/bin"
printf '#!/bin/sh\\necho installs "$3"\\n' > "$4/bin/pip"
printf '#!/bin/sh\\necho audits: "$0"\\n' > "$4/bin/vsr"
chmod +x "$4/bin/pip" "$4/bin/vsr"
"""
"""Stands in for `python3`: what it makes is an environment whose `pip` and `vsr` say what they do."""


def test_each_revision_has_an_environment_of_its_own_that_nobody_else_can_have_put_there(
    repository: Path, tmp_path: Path
) -> None:
    stand_in = tmp_path / "bin" / "python3"
    stand_in.parent.mkdir()
    stand_in.write_text(PYTHON.format(python=sys.executable))
    planted = tmp_path / "tmp" / "viewproof" / "bin" / "vsr"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\necho planted\n")
    for script in (stand_in, planted):
        script.chmod(0o755)
    (tmp_path / "home").mkdir()
    env = {"PATH": f"{stand_in.parent}:{os.environ['PATH']}", "HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": ""}
    env |= {"TMPDIR": str(tmp_path / "tmp"), "RUNNER_TEMP": "", "VIEWPROOF_VSR": "", "VIEWPROOF_PATHS": "traces"}

    def gate(source: str, **more: str) -> list[str]:
        done = runs(repository, str(GATE / "gate.sh"), {**env, "VIEWPROOF_SOURCE": source, **more})
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    first, again, other = gate("viewproof==1"), gate("viewproof==1"), gate("viewproof==2")
    assert first == ["installs viewproof==1", again[0]]
    assert (len(again), other[0]) == (1, "installs viewproof==2")
    assert again[0].startswith(f"audits: {tmp_path}/home/.cache/viewproof-gate/")
    assert other[1] != again[0]
    commit = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m")
    for number in range(2):
        subprocess.run(["git", "add", "."], cwd=repository, check=True)
        subprocess.run(["git", *commit, str(number)], cwd=repository, check=True)
        assert [len(gate(str(repository))) for _ in range(2)] == [2, 1], "a commit is installed once"
    (repository / "new").touch()
    assert [len(gate(str(repository))) for _ in range(2)] == [2, 2], "what is changed has no name"
    assert [len(gate("a-branch")) for _ in range(2)] == [2, 2]
    assert os.listdir(tmp_path / "tmp") == ["viewproof"]
    (tmp_path / "runner").mkdir()
    assert [len(gate("a-branch", RUNNER_TEMP=str(tmp_path / "runner"))) for _ in range(2)] == [2, 1]


def test_hooks_name_commands_that_exist() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    for hook in hooks:
        done = subprocess.run([VSR, *hook["entry"].split()[1:], "--help"], capture_output=True, text=True, check=False)
        assert done.returncode == 0
        assert hook["language"] == "python"
