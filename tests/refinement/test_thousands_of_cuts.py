"""A large run whose audit is interrupted at thousands of places, and goes on from the state that was kept at each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.refinement.traces import change, simulated
from viewproof.refinement.going_on.in_value import InValue
from viewproof.refinement.going_on.kept import Kept
from viewproof.refinement.going_on.runs import Run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

OPTIONS = AuditOptions()
CUTS = 1000
TO_THE_END = 20
"""From so many of the states the audit also goes to the end in one piece."""


def gone_on(value: bytes, rows: Sequence[Row]) -> tuple[bytes, RunVerdict, Kept]:
    """What is kept, the verdict, and the state, after more events."""
    run_id, log = str(rows[0][INDEX["run"]]), ProblemLog()
    place = InValue(run_id, value, "this test", OPTIONS)
    verdict, errors = Run.load(run_id, place, OPTIONS).go_on(list(rows), log)
    assert verdict is not None
    kept = place.value.kept
    assert kept is not None
    assert (log.problems, errors) == ([], ())
    return place.bytes(), replace(verdict, seconds=0.0), kept


def as_kept(kept: Kept) -> Any:
    """What is kept, but for the time that it took."""
    return msgspec.to_builtins(msgspec.structs.replace(kept, verdict=replace(kept.verdict, seconds=0.0)))


def cut_everywhere(rows: list[Row], cuts: int, rng: random.Random) -> RunVerdict:
    """The verdict in one piece, after checking that cuts do not matter."""
    _, whole, end = gone_on(b"", rows)
    places = sorted(rng.sample(range(1, len(rows)), min(cuts, len(rows) - 1)))
    value = b""
    for number, (begin, stop) in enumerate(zip([0, *places], [*places, len(rows)], strict=True)):
        if begin and number % (cuts // TO_THE_END) == 0:
            _, verdict, kept = gone_on(value, rows[begin:])
            assert (verdict, as_kept(kept)) == (whole, as_kept(end)), begin
        value, verdict, kept = gone_on(value, rows[begin:stop])
    assert (verdict, as_kept(kept)) == (whole, as_kept(end))
    return whole


@pytest.mark.parametrize(
    ("kind", "says", "cuts"),
    [
        ("good", "conforms", 60),
        ("changed", "", 60),
        ("gaps", "inconclusive", 40),  # nothing is final after a gap: each time the run is judged from there
        pytest.param("good", "conforms", CUTS, marks=pytest.mark.long),
        pytest.param("changed", "", CUTS, marks=pytest.mark.long),
    ],
)
def test_wherever_an_audit_is_cut_it_ends_in_the_same_state(kind: str, says: str, cuts: int, tmp_path: Path) -> None:
    rng = random.Random(kind)
    rows = simulated(tmp_path / "run", 9, replicas=3, requests=cuts // 4)
    if kind == "changed":
        rows = change(rng, rows).rows
    if kind == "gaps":
        rows = [row for row in rows if rng.random() > 0.01]
    rows.sort(key=order_key)
    verdict = cut_everywhere(rows, cuts, rng)
    assert verdict.verdict == (says or verdict.verdict)
