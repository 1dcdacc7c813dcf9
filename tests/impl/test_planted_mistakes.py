"""Mistakes without a switch, planted in the replica, that need rare situations: the audit meets each in a storm."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.interface.messages import DoViewChange, PrepareOk
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.view_change import ViewChange
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

RUNS_MAX = 20
LATE_STORM = replace(NAMED_PROFILES["storm"], late=0.6, late_ticks_max=150)
"""Views change often, and messages of older ones arrive."""


def rejected_runs(out: Path) -> list[int]:
    """The first seed whose run the audit rejects, if there is one."""
    for seed in range(RUNS_MAX):
        result = simulate(seed, profile=LATE_STORM, requests=80, out=out)
        assert result.trace is not None
        verdict = check_run(result.run, load(result.trace), AuditOptions())
        if verdict.verdict == "violates":
            return [seed]
        assert verdict.verdict == "conforms", verdict.missing
    return []


def test_the_log_chosen_by_op_before_log_view_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def longest(change: ViewChange) -> DoViewChange:
        return max(change.do_view_changes.values(), key=lambda offer: (offer.op, offer.log_view, -offer.replica))

    monkeypatch.setattr(ViewChange, "best_offer", longest)
    assert rejected_runs(tmp_path)


def test_acknowledgements_of_an_older_view_counted_are_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = CommitPath.on_prepare_ok

    def counting(path: CommitPath, message: PrepareOk) -> None:
        state = path.state
        if not state.is_normal_primary or message.view >= state.view:
            original(path, message)
        elif state.commit_max < message.op <= state.op:
            path.acknowledgements.count(message.op, message.replica)
            path.commit_acknowledged()

    monkeypatch.setattr(CommitPath, "on_prepare_ok", counting)
    assert rejected_runs(tmp_path)
