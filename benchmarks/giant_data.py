"""One run of any length, as one file for each replica: a stretch of a simulated run, repeated with numbers that go on.

The stretch lies between two moments at which all replicas are equally far and no message is under way; each time it is
repeated, ops, sequence numbers, clocks and request numbers go on where they ended, and checksums and digests are new
ones. Without faults: no view changes, no restarts.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import simulate
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import ARROW_SCHEMA, INDEX, TABLE, Row

NODES = 3
INTERVAL = 20
PROFILE = SimProfile(
    loss=0, repeat=0, clog_interval_ticks=0, partition_interval_ticks=0, slow_write=0, crash_interval_ticks=0,
    crash_in_write=0, client_pause_ticks_mean=60, checkpoint_interval=INTERVAL, liveness_ticks_max=1 << 20,
    safety_ticks_max=1 << 20,
)  # fmt: skip
_OPS = ("op", "commit_min", "commit_max", "checkpoint", "m_op", "m_commit")


@dataclass(frozen=True)
class Moment:
    """All replicas are equally far: rows before it, the op, and the last sequence number of each node."""

    row: int
    op: int
    lead: int
    seqs: tuple[int, ...]


def giant(root: Path, events: int) -> Path:
    """The folder of a run of at least so many events, in Parquet; made unless it is there."""
    folder = root / f"giant-{events}"
    if folder.exists():
        return folder
    sys.stderr.write(f"making a run of {events:,} events in {folder}\n")
    draft = root / f"draft-giant-{events}"
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(parents=True)
    tile = _tile()
    for node in range(NODES):
        with pq.ParquetWriter(str(draft / f"replica-{node}.parquet"), ARROW_SCHEMA, compression="zstd") as writer:
            writer.write_table(tile.before(node))
            for number in range(tile.times(events)):
                writer.write_table(tile.table(node, number))
    return draft.rename(folder)


@cache
def _tile() -> Tile:
    with tempfile.TemporaryDirectory() as folder:
        result = simulate(1, replicas=NODES, requests=6000, profile=PROFILE, out=Path(folder) / "simulated")
        if not result.ok or result.trace is None:
            raise SystemExit("the simulator's own checkers failed")
        rows = [row for file in sorted(result.trace.iterdir()) for row in read_rows(str(file), ProblemLog())]
    rows.sort(key=lambda row: (row[INDEX["clock"]], row[INDEX["node"]]))
    return Tile(rows, *_ends(rows))


def _ends(rows: list[Row]) -> tuple[Moment, Moment]:
    """The first such moment after some hundred ops, and the last one that is like it."""
    found = list(_moments(rows))
    first = next(moment for moment in found if moment.op > 500)
    same = [m for m in found if (m.op - first.op) % INTERVAL == 0 and m.op > first.op and m.lead == first.lead]
    return first, same[-1]


def _moments(rows: list[Row]) -> Iterator[Moment]:
    shown = [INDEX[name] for name in ("op", "commit_min", "commit_max", "checkpoint")]
    far: dict[int, tuple[Any, ...]] = {}
    seqs, needed = [0] * NODES, [0] * NODES
    wanted = [[0] * NODES]
    for row in reversed(rows):  # the least sequence number of each node that is referred to from here on
        needed = list(wanted[-1])
        if row[INDEX["m_seq"]] is not None:
            sender, seq = row[INDEX["m_from"]], row[INDEX["m_seq"]]
            needed[sender] = min(needed[sender] or seq, seq)
        wanted.append(needed)
    wanted.reverse()
    for number, row in enumerate(rows):
        node = row[INDEX["node"]]
        far[node], seqs[node] = tuple(row[at] for at in shown), row[INDEX["seq"]]
        same = len(far) == NODES and len(set(far.values())) == 1 and len({*far[node][:3]}) == 1
        if same and all(not later or later > seq for later, seq in zip(wanted[number + 1], seqs, strict=True)):
            yield Moment(number + 1, far[node][0], far[node][0] - far[node][3], tuple(seqs))


class Tile:
    """The stretch between two moments, as columns that can be moved on."""

    def __init__(self, rows: list[Row], first: Moment, last: Moment) -> None:
        self.rows, self.first, self.last = rows, first, last
        self.ops = last.op - first.op
        self.clocks = rows[last.row - 1][INDEX["clock"]] - rows[first.row - 1][INDEX["clock"]]
        self.own = rows[first.row : last.row]
        self.requests = self._requests()
        self.followers = self._followers()
        self.parts = [self._part([row for row in self.own if row[INDEX["node"]] == node]) for node in range(NODES)]

    def times(self, events: int) -> int:
        """How often it is to be repeated for so many events."""
        return -(-(events - self.first.row) // len(self.own))

    def before(self, node: int) -> pa.Table:
        """A node's events before it."""
        some = [row for row in self.rows[: self.first.row] if row[INDEX["node"]] == node]
        return pa.Table.from_arrays([pa.array([r[i] for r in some], f.type) for i, f in enumerate(ARROW_SCHEMA)],
                                    schema=ARROW_SCHEMA)  # fmt: skip

    def table(self, node: int, number: int) -> pa.Table:
        """A node's events, repeated for the time `number` (from 0)."""
        arrays = []
        for field, (base, step) in zip(ARROW_SCHEMA, self.parts[node], strict=True):
            if step is None:
                arrays.append(base)
            elif isinstance(step, tuple):
                arrays.append(self._texts(base, step, number).cast(field.type))
            else:
                none = np.asarray(base.is_null())
                arrays.append(pa.array(base.fill_null(0).to_numpy() + step * number, field.type, mask=none))
        return pa.Table.from_arrays(arrays, schema=ARROW_SCHEMA)

    def _texts(self, base: Any, texts: tuple[str, ...], number: int) -> Any:
        said = [_stamped(self.followers[t], number - 1) if number and t in self.followers else
                t if t in self.followers else _stamped(t, number) for t in texts]  # fmt: skip
        return pa.DictionaryArray.from_arrays(base, pa.array(said, pa.string()))

    def _part(self, rows: list[Row]) -> list[tuple[Any, Any]]:
        part: list[tuple[Any, Any]] = []
        for at, column in enumerate(TABLE):
            values = [row[at] for row in rows]
            if column.kind == "int":
                part.append((pa.array(values, pa.int64()), np.array([self._step(column.name, row) for row in rows])))
            elif column.kind == "string" and not column.choices and column.name != "run":
                encoded = pa.array(values, pa.string()).dictionary_encode()
                part.append((encoded.indices, tuple(encoded.dictionary.to_pylist())))
            else:
                part.append((pa.array(values, ARROW_SCHEMA.field(at).type), None))
        return part

    def _step(self, name: str, row: Row) -> int:
        """By how much a column of an event goes on each time."""
        if row[INDEX[name]] is None:
            return 0
        if name in _OPS:
            return self.ops
        if name == "clock":
            return int(self.clocks)
        if name in ("seq", "m_seq"):
            node = row[INDEX["node" if name == "seq" else "m_from"]]
            return self.last.seqs[node] - self.first.seqs[node]
        return self.requests.get(row[INDEX["m_client"]], 0) if name == "m_request" else 0

    def _requests(self) -> dict[int, int]:
        last: list[dict[int, int]] = [{}, {}]
        for number, row in enumerate(self.rows[: self.last.row]):
            if row[INDEX["event"]] == "execute":
                for ends in last if number < self.first.row else last[1:]:
                    ends[row[INDEX["m_client"]]] = row[INDEX["m_request"]]
        return {client: request - last[0][client] for client, request in last[1].items()}

    def _followers(self) -> dict[str, str]:
        """Texts from before the stretch, and those that stand for them when it is repeated."""
        kinds = {"head": "op", "digest": "commit_min", "table": "commit_min", "m_checksum": "m_op"}
        at: dict[tuple[str, int], str] = {}
        earlier: dict[str, tuple[str, int]] = {}
        for number, row in enumerate(self.rows[: self.last.row]):
            for name, op in kinds.items():
                if row[INDEX[name]] is not None and row[INDEX[op]] is not None:
                    key = ("head" if name == "m_checksum" else name, row[INDEX[op]])
                    at[key] = row[INDEX[name]]
                    if number < self.first.row:
                        earlier[row[INDEX[name]]] = key
        return {text: at[kind, op + self.ops] for text, (kind, op) in earlier.items() if (kind, op + self.ops) in at}


def _stamped(text: str, number: int) -> str:
    return text if not number else f"x{number:05x}{text[6:]}"  # no text of the simulator has an x
