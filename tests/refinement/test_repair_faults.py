"""Simulated runs over disks that rot, lose and misdirect writes conform."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX
from viewproof.refinement.verdict import AuditOptions


@pytest.mark.parametrize("replicas", [2, 3, 5])
def test_runs_over_rotten_disks_conform(replicas: int, tmp_path: Path) -> None:
    met: Counter[str] = Counter()
    for seed in range(3):
        result = simulate(seed, replicas=replicas, profile=NAMED_PROFILES["rot"], requests=60, out=tmp_path)
        assert result.ok, result.failures
        assert result.trace is not None
        verdict = check_run(result.run, load(result.trace), AuditOptions())
        assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
        met.update(result.statistics)
    for situation in ("boots_damaged", "decision_eql", "decision_fix", "decision_vsr", "decision_cut", "rot_prepare"):
        assert met[situation], situation


@pytest.mark.parametrize("replicas", [1, 3, pytest.param(5, marks=pytest.mark.long)])
@pytest.mark.parametrize("name", NAMED_PROFILES)
def test_runs_of_every_named_profile_conform(name: str, replicas: int, tmp_path: Path) -> None:
    profile = NAMED_PROFILES[name]
    if profile.may_shut_out and replicas == 1:
        with pytest.raises(
            ConfigurationError, match="one replica may be shut out under this profile: of 1, 1 are needed"
        ):
            simulate(100, replicas=replicas, profile=profile)
        return
    for seed in range(100, 102):
        result = simulate(seed, replicas=replicas, profile=profile, requests=60, out=tmp_path)
        assert result.ok, result.failures
        assert result.trace is not None
        rows = load(result.trace)
        verdict = check_run(result.run, rows, AuditOptions())
        silent = set(range(replicas)) - {row[INDEX["node"]] for row in rows}
        assert not silent or profile.misconfigured, "only who is shut out from the start shows nothing"
        expected = f"node {min(silent)} has no event in the input" if silent else None
        assert verdict.verdict == ("inconclusive" if silent else "conforms"), (verdict.missing, verdict.violations)
        assert expected is None or all(reason.startswith(expected) for reason in verdict.missing), verdict.missing
