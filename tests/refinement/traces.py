"""Traces for tests: simulated runs as rows, and single changes of them."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from viewproof.impl.sim.run import simulate
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import COLUMNS, INDEX, MESSAGE_TYPES, OPERATIONS, OUTCOMES, STATUSES, Row

NODE, SEQ, CLOCK, EVENT = (INDEX[name] for name in ("node", "seq", "clock", "event"))
M_FROM, M_SEQ = INDEX["m_from"], INDEX["m_seq"]


def load(directory: Path) -> list[Row]:
    """All events below a directory, in replay order."""
    rows: list[Row] = []
    log = ProblemLog()
    for file in sorted(directory.rglob("*.ndjson")):
        rows += list(read_rows(str(file), log))
    assert not log.problems, log.problems
    return sorted(rows, key=lambda row: (row[CLOCK], row[NODE], row[SEQ]))


def simulated(directory: Path, seed: int, **options: Any) -> list[Row]:
    """Rows of one simulated run."""
    result = simulate(seed, out=directory, **options)
    assert result.ok or options.get("faults"), result.failures
    return load(directory)


def put(row: Row, **values: Any) -> Row:
    """The row with some columns changed."""
    changed = list(row)
    for name, value in values.items():
        changed[INDEX[name]] = value
    return tuple(changed)


@dataclass(frozen=True)
class Change:
    """One single change of a trace: what was done, where it stood (seq, node), and the changed trace."""

    kind: str
    event: str
    column: str
    node: int
    seq: int
    rows: list[Row]


def change(rng: random.Random, rows: list[Row]) -> Change:
    """A random single change: mostly one column of one event, sometimes an event dropped (and the rest renumbered)."""
    at = rng.randrange(len(rows))
    row = rows[at]
    if rng.random() < 0.25:
        return Change("drop", row[EVENT], "", row[NODE], row[SEQ], without(rows, at))
    column = rng.choice([name for name in COLUMNS[5:] if row[INDEX[name]] is not None])
    changed = put(row, **{column: other_value(rng, column, row[INDEX[column]], rows)})
    return Change("column", row[EVENT], column, row[NODE], row[SEQ], [*rows[:at], changed, *rows[at + 1 :]])


def other_value(rng: random.Random, column: str, value: Any, rows: list[Row]) -> Any:
    """Another value of the column's kind: a near one, or one seen elsewhere in the trace."""
    if isinstance(value, int):
        return rng.choice([v for v in (value - 1, value + 1, value + 2) if v >= 0 and v != value])
    if isinstance(value, (list, tuple)):
        log = list(value) or [""]
        log[rng.randrange(len(log))] = "ab" * 16
        return log
    choices = {"status": STATUSES, "m_type": MESSAGE_TYPES, "m_outcome": OUTCOMES, "m_operation": OPERATIONS}.get(
        column
    )
    if choices:
        return rng.choice([v for v in choices if v != value])
    seen = [v for row in rows if (v := row[INDEX[column]]) not in (None, value)]
    return rng.choice(seen) if seen and rng.random() < 0.5 else "cd" * 16


def without(rows: list[Row], at: int) -> list[Row]:
    """The trace as if that event had never been written: later seqs of its node, and references to them, close the
    gap.
    """
    node, seq = rows[at][NODE], rows[at][SEQ]

    def closed(row: Row) -> Row:
        if row[NODE] == node and row[SEQ] > seq:
            row = put(row, seq=row[SEQ] - 1)
        if row[M_FROM] == node and row[M_SEQ] is not None and row[M_SEQ] > seq:
            row = put(row, m_seq=row[M_SEQ] - 1)
        return row

    return [closed(row) for row in [*rows[:at], *rows[at + 1 :]]]
