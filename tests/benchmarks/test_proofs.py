"""The recorded proofs of docs/proofs.md: a proof asks today what is written there."""

from __future__ import annotations

import json

import pytest

from benchmarks.figures import RECORDED
from benchmarks.proofs import INSTANCES, counted, proof_of

KEPT = json.loads((RECORDED / "proofs.json").read_text(encoding="utf-8"))
ROWS = {row[0].strip("`"): (row[1], row[2]) for row in KEPT["core-proofs"]["rows"]}
QUICK_MAX = 40_000
"""Goals of a proof that takes a second or two."""
COUNTS = [
    pytest.param(name, *row, marks=() if int(row[0].replace(",", "")) < QUICK_MAX else pytest.mark.long)
    for name, row in ROWS.items()
]


def test_what_is_recorded_is_what_the_benchmark_asks() -> None:
    assert tuple(ROWS) == INSTANCES


@pytest.mark.parametrize(("instance", "goals", "solved"), COUNTS)
def test_a_proof_has_as_many_goals_as_is_written(instance: str, goals: str, solved: str) -> None:
    proof = proof_of(instance)
    assert proof.verdict == "proved"
    assert counted(proof) == (goals, solved)
