"""Mistakes planted in the replica that need rare situations: the audit meets each in the default draw of seeds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from impl.messages import DoViewChange, PrepareOk
from impl.replica import Replica
from impl.sim import simulate
from refinement.checker import check_run
from refinement.verdict import AuditOptions
from tests.refinement.traces import load

RUNS_MAX = 100


def rejected_runs(out: Path) -> list[int]:
    """The first seed whose run the audit rejects, if there is one in the first hundred."""
    for seed in range(RUNS_MAX):
        result = simulate(seed, requests=200, out=out)
        assert result.trace is not None
        verdict = check_run(result.run, load(result.trace), AuditOptions())
        if verdict.verdict == "violates":
            return [seed]
        assert verdict.verdict == "conforms", verdict.missing
    return []


def test_the_log_chosen_by_op_before_log_view_is_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def longest(replica: Replica) -> DoViewChange:
        return max(replica.do_view_changes.values(), key=lambda offer: (offer.op, offer.log_view, -offer.replica))

    monkeypatch.setattr(Replica, "_best_offer", longest)
    assert rejected_runs(tmp_path)


def test_acknowledgements_kept_across_views_are_rejected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def keeping_acks(method: Callable[..., None]) -> Callable[..., None]:
        def wrapped(replica: Replica, *arguments: Any) -> None:
            acks = replica.acks
            method(replica, *arguments)
            replica.acks |= acks

        return wrapped

    for name in ("_enter_view_change", "enter_normal"):
        monkeypatch.setattr(Replica, name, keeping_acks(getattr(Replica, name)))
    assert rejected_runs(tmp_path)


def test_acknowledgements_of_an_older_view_counted_are_rejected(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    original = Replica.on_prepare_ok

    def counting(replica: Replica, message: PrepareOk) -> None:
        if not replica.is_normal_primary or message.view >= replica.view:
            original(replica, message)
        elif replica.commit_max < message.op <= replica.op:
            replica._count_ack(message.op, message.replica)
            replica.commit_acknowledged()

    monkeypatch.setattr(Replica, "on_prepare_ok", counting)
    assert rejected_runs(tmp_path)
