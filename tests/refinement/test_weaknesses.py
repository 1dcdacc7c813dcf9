"""The document's own client table, from end to end: what it does not promise by design is said with each verdict."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from tests.refinement.traces import load
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.cli import cli
from viewproof.refinement.verdict import AuditOptions

TEXT = "by design: slots without sessions forget a client whose slot is taken"


def test_simulated_runs_conform_and_are_said_to_forget(tmp_path: Path) -> None:
    for profile, slots in (("slots", 2), ("crashes", 0)):
        result = simulate(1, requests=60, profile=NAMED_PROFILES[profile], out=tmp_path / profile)
        assert result.ok, result.failures
        assert result.trace is not None
        verdict = check_run(result.run, load(result.trace), AuditOptions())
        assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
        assert [note.startswith(TEXT) and f"({slots} slots)" in note for note in verdict.notes] == [True] * bool(slots)
        assert bool(verdict.coverage.get("execute_evicting")) == bool(slots)


def test_the_model_says_it_on_its_last_line() -> None:
    for model, said in (("slots", True), ("iggy", False)):
        shown = CliRunner().invoke(cli, ["check", model, "--ops", "3", "--requests", "1"])
        assert shown.exit_code == 0, shown.output
        assert (TEXT in shown.stdout.splitlines()[-1]) == said


def test_a_recorded_cluster_without_sessions(tmp_path: Path) -> None:
    words = ["record", str(tmp_path), "--no-sessions", "--client-slots", "2", "--requests", "80", "--no-kill"]
    recorded = CliRunner().invoke(cli, [*words, "--json", str(tmp_path / "result.json")])
    assert TEXT in recorded.output
    assert recorded.exit_code == json.loads((tmp_path / "result.json").read_text())["exit_code"]
    assert recorded.exit_code in (0, 1), "a retry may run again, and a client may see it"
    audited = CliRunner().invoke(cli, ["audit", str(tmp_path / "run")])
    assert (audited.exit_code, TEXT in audited.output) == (0, True), audited.output
