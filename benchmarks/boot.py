"""How long a replica takes to boot, against the sizes of its journal and its snapshot: one command, one table.

    python -m benchmarks.boot             # or: make bench, tools/dev bench
    python -m benchmarks.boot --record    # the table of docs/recovery.md

Each row is the median of several boots over real files. `open`: superblock read, journal scanned and synced; `restore`:
log and snapshot decoded, replica made, until it takes messages; `replay`: what lies above the snapshot is executed,
once the primary has said that it is committed. `MiB/s`: of journal and snapshot, over open and restore. The files are
in the page cache.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import record
from benchmarks.text import table
from viewproof.impl.interface.durable import CLIENTS_PAPER, superblock_next
from viewproof.impl.interface.messages import CHECKSUM_NONE, Commit, Prepare, make_header
from viewproof.impl.machine.snapshot import Contents, encode_snapshot
from viewproof.impl.machine.state_machine import Put, StateMachine, encode_operation
from viewproof.impl.replica import Replica, ReplicaConfig
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import format_data_file, open_data_file

CLUSTER, REPLICA, REPLICAS = 1, 1, 3
CLIENTS = 64
GROUP = 256
"""Prepares in one append."""

HEADER = (
    "journal ops",
    "bytes",
    "snapshot keys",
    "journal MiB",
    "snapshot MiB",
    "open ms",
    "restore ms",
    "replay ms",
    "MiB/s",
)


@dataclass(frozen=True, slots=True)
class Row:
    """Entries above the snapshot, bytes of each value, keys in the snapshot (0: there is none)."""

    ops: int
    value_bytes: int
    keys: int


ROWS = (
    *(Row(ops, 128, 0) for ops in (0, 1_000, 10_000, 100_000)),
    Row(1_000, 16_384, 0),
    *(Row(0, 128, keys) for keys in (1_000, 10_000, 100_000)),
    Row(10_000, 128, 100_000),
)


@dataclass(frozen=True, slots=True)
class Boot:
    """One boot: seconds of its parts, bytes of the files."""

    open_seconds: float
    restore_seconds: float
    replay_seconds: float
    journal_bytes: int
    snapshot_bytes: int


def prepare(parent: str, op: int, key: int, value: bytes) -> Prepare:
    """An entry that puts a value."""
    client, request = op % CLIENTS + 1, op // CLIENTS + 1
    body = encode_operation(Put(b"key-%d" % key, value))
    return Prepare(make_header(parent=parent, view=0, op=op, client=client, request=request, commit=0, body=body), body)


def make(directory: Path, row: Row) -> None:
    """A data directory of this size."""
    format_data_file(directory, CLUSTER, REPLICA, REPLICAS, clients=CLIENTS_PAPER)
    data = open_data_file(directory)
    value = b"v" * row.value_bytes
    base, parent = 0, CHECKSUM_NONE
    checkpoint = None
    if row.keys:
        entry = prepare(parent, 1, 0, value)
        base, parent = 1, entry.header.checksum
        machine = StateMachine()
        for key in range(row.keys):
            machine.apply(encode_operation(Put(b"key-%d" % key, value)))
        state = machine.to_bytes(), ClientTable(CLIENTS_PAPER).to_bytes(), FeatureState().to_bytes()
        snapshot = encode_snapshot(CLUSTER, Contents(entry.header, *state))
        data.write_snapshot(base, snapshot.data)
        checkpoint = (base, snapshot.checksum)
    data.write_superblock(
        superblock_next(
            data.superblock,
            view=0,
            log_view=0,
            head_op=base,
            head_checksum=parent,
            clock=0,
            checkpoint=checkpoint,
        )
    )
    group: list[Prepare] = []
    for op in range(base + 1, base + row.ops + 1):
        group.append(prepare(parent, op, op % 1_000, value))
        parent = group[-1].header.checksum
        if len(group) == GROUP:
            data.append(group)
            group = []
    data.append(group)
    data.close()


def boot(directory: Path) -> Boot:
    """Boots a replica as its server does, and has it execute its log."""
    gc.collect()
    started = time.perf_counter()
    data = open_data_file(directory)
    opened = time.perf_counter()
    durable = data.durable_state()
    replica = Replica(durable, ReplicaConfig(traced=False), source=data.segments)
    replica.boot()
    booted = time.perf_counter()
    journal_bytes, snapshot_bytes = data.journal_bytes, len(durable.snapshot)
    replica.on_message(Commit(0, replica.state.op, 0))
    replayed = time.perf_counter()
    if replica.state.commit_min != replica.state.op:
        raise RuntimeError(f"executed up to op {replica.state.commit_min} of {replica.state.op}")
    data.close()
    return Boot(opened - started, booted - opened, replayed - booted, journal_bytes, snapshot_bytes)


def measure(row: Row, repeat: int) -> tuple[str, ...]:
    """The cells of a row."""
    with tempfile.TemporaryDirectory(prefix="vsr-boot-") as directory:
        path = Path(directory) / "replica"
        make(path, row)
        boots = [boot(path) for _ in range(repeat)]
    opening, restoring, replaying = (
        statistics.median(getattr(each, f"{part}_seconds") for each in boots) for part in ("open", "restore", "replay")
    )
    journal, snapshot = boots[0].journal_bytes / (1 << 20), boots[0].snapshot_bytes / (1 << 20)
    return (
        f"{row.ops:,}",
        f"{row.value_bytes:,}",
        f"{row.keys:,}",
        f"{journal:.2f}",
        f"{snapshot:.2f}",
        f"{opening * 1000:.1f}",
        f"{restoring * 1000:.1f}",
        f"{replaying * 1000:.1f}",
        f"{(journal + snapshot) / (opening + restoring):.1f}",
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="Boot time against the sizes of journal and snapshot.")
    parser.add_argument("--repeat", type=int, default=3, help="boots of each row")
    parser.add_argument("--record", action="store_true", help="keep the table, and write docs/recovery.md")
    options = parser.parse_args(arguments)
    rows = [measure(row, options.repeat) for row in ROWS]
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        note = f"Medians of {options.repeat}; files in the page cache."
        record("boot", "boot", HEADER, rows, "python -m benchmarks.boot --record", note)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
