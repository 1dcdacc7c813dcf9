"""Along the simulator's logs: what they show is a state of the core in which the catalogue's invariants hold."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refinement.real_logs import IGGY, needs
from viewproof.refinement.adapter import adapter
from viewproof.refinement.checker import Judge, Plain
from viewproof.refinement.checker.state import Missing
from viewproof.refinement.joined.judging import rows_of
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AuditOptions
from viewproof.spec.engines.interp import holds
from viewproof.spec.lang import Instance, Spec
from viewproof.spec.lang.concrete import State

STATES = 4
"""How many states of a log are looked at, the last one included."""
HELD = ("I1", "I2", "I8", "I10", "I12")
"""The catalogue's: not I3 and I11, which the build breaks (docs/iggy.md), nor I4 to I7, which are of steps, nor I9, as
lines of the table are held to it.
"""
WHOLE = ("calm-3-s11", "crash-3-s12", "evict-3-s17", "one-1-s22", "crash-5-s14", "two-2-s21", "loss-3-s27")
"""Logs that conform, in which all is known, or all up to a crash."""


def states(file: Path) -> Iterator[tuple[Spec, State]]:
    """States of the replay, with the specification in the bounds that they reach."""
    iggy, options = adapter("iggy"), AuditOptions(adapter="iggy")
    assert iggy.joined is not None
    reading = iggy.joined.read((str(file),), False)
    rows = rows_of(reading.runs[0], iggy, options, ProblemLog())
    plain = Judge(reading.runs[0].run_id, rows, rows[0], options, "replay", iggy.system, None, rows).plain(rows[0])
    for part in range(STATES):
        begin, end = (len(rows) * at // STATES for at in (part, part + 1))
        known = all(takes(plain, row) for row in rows[begin:end])
        replay = plain.program.replay
        state = replay.layout.to_state(plain.store)
        yield replace(replay.spec, instance=bounds(state, plain.replicas)), state
        if not known:
            return


def takes(plain: Plain, row: Row) -> bool:
    """Judge an event; False where something is not known, as after a crash: the state is that before it."""
    try:
        plain.take(row)
    except Missing:
        return False
    return True


def bounds(state: State, replicas: int) -> Instance:
    """How far each index reaches."""

    def top(*names: str) -> int:
        return max((n for name in names for n in state.tables.get(name, {}).values()), default=1) or 1

    client = top("prepare_client")
    return Instance(
        {
            "Replica": replicas - 1, "View": top("view"), "Op": top("op", "commit_max"), "Client": client,
            "Request": top("prepare_request"), "Incarnation": top("prepare_incarnation"), "Restart": top("restarts"),
        }
    )  # fmt: skip


@needs(IGGY)
@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n == "one-1-s22" else pytest.mark.long) for n in WHOLE])
def test_a_log_goes_through_states_of_the_core(name: str) -> None:
    for spec, state in states(IGGY / f"simulator/{name}.log.zst"):
        found = [one for one in spec.invariants if one.id in HELD]
        assert {one.id for one in found} >= {"I1", "I2", "I8", "I10"}
        assert [one.id for one in found if not holds(spec, one, state)] == []
