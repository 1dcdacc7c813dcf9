"""The audit is no rubber stamp: single corruptions of lines that matter are rejected."""

from __future__ import annotations

import pytest

from tests.refinement.tigerbeetle.corruptions import CLASSES, Bench, table
from tests.refinement.tigerbeetle.logs import ACKS, CONFORMING, REJECTED, SOLO, shipped
from viewproof.refinement.verdict import AuditOptions

ALL = (*REJECTED, *CONFORMING)
ONE, OTHER = "tigerbeetle-2022-06/seed-12.log.zst", "tigerbeetle-2026-07/seed-118.log.zst"
RATE = 0.97
"""Of each log; of all together 98 % (docs/tigerbeetle.md has the table, and why the rest is accepted)."""


def rejected(name: str, count: int, seed: int) -> tuple[int, int]:
    """(rejected, tried)"""
    bench = Bench(shipped(name), AuditOptions("core", (ACKS, SOLO)))
    outcomes = bench.try_all(count, seed)
    assert {kind for kind, _, _ in table(outcomes)} == set(CLASSES)
    return sum(1 for o in outcomes if o.rejected_at), len(outcomes)


@pytest.mark.parametrize("name", [ONE, pytest.param(OTHER, marks=pytest.mark.long)])
def test_a_sample_of_corruptions(name: str) -> None:
    some, tried = rejected(name, 54, seed=3)
    assert some >= RATE * tried


@pytest.mark.long
def test_300_corruptions_of_each_log() -> None:
    counts = {name: rejected(name, 300, seed=11) for name in ALL}
    assert all(some >= RATE * tried for some, tried in counts.values()), counts
    assert sum(some for some, _ in counts.values()) >= 0.98 * sum(tried for _, tried in counts.values()), counts
