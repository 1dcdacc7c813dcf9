"""Evidence taken away from good runs: lines, blocks, heads, tails, files, columns, values, and clocks shifted."""

from __future__ import annotations

import random
from collections.abc import Callable

from tests.refinement.traces import CLOCK, NODE, SEQ, put
from viewproof.refinement.ordering import order_key
from viewproof.refinement.schema import COLUMNS, INDEX, Row

Removal = Callable[[random.Random, list[Row]], list[Row]]

ALWAYS_SHOWN = 5
"""The columns that every event has."""
BOOT_COLUMNS = ("replicas", "quorum_replication", "quorum_view_change")


def _a_node(rng: random.Random, rows: list[Row]) -> tuple[int, int]:
    node = rng.choice(sorted({row[NODE] for row in rows}))
    return node, max(row[SEQ] for row in rows if row[NODE] == node)


def without_seqs(rows: list[Row], node: int, seqs: range) -> list[Row]:
    """Without some events of a node."""
    return [row for row in rows if row[NODE] != node or row[SEQ] not in seqs]


def one_line(rng: random.Random, rows: list[Row]) -> list[Row]:
    """One line."""
    node, last = _a_node(rng, rows)
    at = rng.randint(1, last)
    return without_seqs(rows, node, range(at, at + 1))


def lines(rng: random.Random, rows: list[Row]) -> list[Row]:
    """A share of all lines."""
    share = rng.choice((0.01, 0.1, 0.5))
    return [row for row in rows if rng.random() >= share]


def block(rng: random.Random, rows: list[Row]) -> list[Row]:
    """A block of lines of one replica."""
    node, last = _a_node(rng, rows)
    at = rng.randint(1, last)
    return without_seqs(rows, node, range(at, at + rng.randint(2, 50)))


def head(rng: random.Random, rows: list[Row]) -> list[Row]:
    """What a replica wrote first."""
    node, last = _a_node(rng, rows)
    return without_seqs(rows, node, range(1, rng.randint(1, last) + 1))


def tail(rng: random.Random, rows: list[Row]) -> list[Row]:
    """What a replica wrote last."""
    node, last = _a_node(rng, rows)
    return without_seqs(rows, node, range(rng.randint(1, last), last + 1))


def heads(rng: random.Random, rows: list[Row]) -> list[Row]:
    """All before some clock: a log kept by retention."""
    begin = rng.choice(rows)[CLOCK]
    return [row for row in rows if row[CLOCK] >= begin]


def file(rng: random.Random, rows: list[Row]) -> list[Row]:
    """All of a replica."""
    node, last = _a_node(rng, rows)
    return without_seqs(rows, node, range(1, last + 1))


def column(rng: random.Random, rows: list[Row]) -> list[Row]:
    """A column, everywhere."""
    names = [name for name in COLUMNS[ALWAYS_SHOWN:] if any(row[INDEX[name]] is not None for row in rows)]
    gone = rng.choice(names)
    return [put(row, **{gone: None}) for row in rows]


def columns(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Several columns, everywhere."""
    for _ in range(rng.randint(2, 5)):
        rows = column(rng, rows)
    return rows


def values(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Single values."""
    rows = list(rows)
    for _ in range(rng.choice((1, 1, 5, 50))):
        at = rng.randrange(len(rows))
        shown = [name for name in COLUMNS[ALWAYS_SHOWN:] if rows[at][INDEX[name]] is not None]
        rows[at] = put(rows[at], **dict.fromkeys(rng.sample(shown, min(len(shown), rng.randint(1, 4)))))
    return rows


def clock(rng: random.Random, rows: list[Row]) -> list[Row]:
    """Nothing is taken away: the clock of one replica is wrong."""
    node, _ = _a_node(rng, rows)
    by = rng.choice((-1000, -100, -10, 10, 100, 1000))
    first = min(row[CLOCK] for row in rows if row[NODE] == node)
    by = max(by, 1 - first)
    return sorted((put(row, clock=row[CLOCK] + by) if row[NODE] == node else row for row in rows), key=order_key)


REMOVALS: dict[str, Removal] = {
    kind.__name__: kind for kind in (one_line, lines, block, head, tail, heads, file, column, columns, values, clock)
}
