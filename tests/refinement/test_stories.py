"""Runs with a mistake that somebody else planted: the verdict, the right rule, the values that decide, and reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from viewproof.refinement.cli import cli
from viewproof.refinement.verdict import EXIT_INCONCLUSIVE, EXIT_VIOLATES

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"


def folder(name: str) -> str:
    """Where a case is; the test is skipped where the cases are not at hand."""
    path = CASES / f"trace-{name}"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return str(path)


@pytest.mark.parametrize(
    ("case", "told"),
    [
        (
            "best-by-op-bad",
            ("replica-2.ndjson:17: start_view/", "1 of 3 (q = 2), at least 2 needed", "dvc_log_view[2, 0] = 1"),
        ),
        ("chain-reset-bad", ("replica-0.ndjson:16: I10: ", "992e9a9748fd370d132b54d3b73d5c20", 'observed: "" (no')),
        (
            "late-start-view-silent-bad",
            ("replica-2.ndjson:18: on_prepare/", "op[2] = 3", "on this line: op fell back from 3 to 2"),
        ),
    ],
)
def test_a_planted_mistake_is_told_with_its_rule_and_the_values_that_decide(case: str, told: tuple[str, ...]) -> None:
    result = CliRunner().invoke(cli, ["audit", folder(case)])
    assert result.exit_code == EXIT_VIOLATES
    assert all(text in result.stdout for text in told), result.stdout


@pytest.mark.parametrize(
    ("case", "column"),
    [
        ("chain-reset-no-m_parent-bad", "m_parent"),
        ("chain-reset-no-m_parent-ok", "m_parent"),
        ("x-missing-m_commit", "m_commit"),
    ],
)
def test_a_column_that_decides_and_is_not_there_is_named(case: str, column: str) -> None:
    result = CliRunner().invoke(cli, ["audit", folder(case)])
    assert result.exit_code == EXIT_INCONCLUSIVE
    assert f"missing: {column} of on_request at " in result.stdout


def test_sarif_and_junit_tell_the_story(tmp_path: Path) -> None:
    """The guard is related, the rule, what changed, and the steps of each replica as code flows."""
    names = ("r.sarif", "r.xml")
    options = ["--sarif", str(tmp_path / names[0]), "--junit", str(tmp_path / names[1])]
    assert CliRunner().invoke(cli, ["audit", folder("late-start-view-silent-bad"), *options]).exit_code == 1
    (result,) = json.loads((tmp_path / names[0]).read_text())["runs"][0]["results"]
    where = result["relatedLocations"][0]["physicalLocation"]
    source = Path(where["artifactLocation"]["uri"]).read_text().splitlines()
    assert source[where["region"]["startLine"] - 1].strip() == "require(o == state.op[r] + 1)"
    assert result["properties"]["changes"] == ["op fell back from 3 to 2"]
    assert result["properties"]["rule"].startswith("A backup takes the next prepare")
    flows = result["codeFlows"][0]["threadFlows"]
    assert [flow.get("id") for flow in flows] == ["node 0", "node 1", "node 2", None]
    assert len(result["properties"]["story"]) == sum(len(flow["locations"]) for flow in flows[:3])
    body = (tmp_path / names[1]).read_text()
    assert all(text in body for text in ("what led there:", "op fell back from 3 to 2", "A backup takes the next"))
