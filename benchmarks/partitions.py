"""A partition of many messages: boot, polls and state transfer, with the memory that they take. One command, one table.

    python -m benchmarks.partitions --mib 64 --mib 1024      # 10 GB: --mib 10240, twice that on the disk
    python -m benchmarks.partitions --mib 10240 --no-transfer    # once

For each size two of three replicas have a partition of so many MiB below their checkpoint, in real files (closed
segments, which nobody writes to, are the same files in both); the third has nothing. `fill`: messages are appended and
checkpoints taken. `boot`: the data directory is opened and the replica made. `poll`: one that reads a place that is not
in memory (median of 200). `transfer`: the third replica installs the snapshot, which names the segments, and fetches
them; the messages go from replica to replica without a network. Memory is that of a process of its own for each column:
how far its largest resident size lies above that at its start.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from benchmarks.text import table
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import CLIENTS_PAPER, superblock_next
from viewproof.impl.interface.effects import (
    AppendPrepares,
    DrainJournal,
    Effect,
    Send,
    WriteSegment,
    WriteSnapshot,
    WriteSuperblock,
)
from viewproof.impl.interface.messages import CHECKSUM_NONE, Message, make_header
from viewproof.impl.machine.partition_log import SegmentRef
from viewproof.impl.machine.partitions import AppendMessages
from viewproof.impl.machine.snapshot import Contents, decode_snapshot, encode_snapshot
from viewproof.impl.machine.state_machine import StateMachine, decode_state, encode_operation
from viewproof.impl.replica import Replica, ReplicaConfig, Status
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.features import FeatureState
from viewproof.impl.storage.data_file import DataFile, format_data_file, open_data_file
from viewproof.impl.storage.file import RealFileSystem

ResultT = TypeVar("ResultT")

NAMESPACE = 7
MESSAGE = 1_000
CHECKPOINT_MIB = 16
"""So much is appended between two checkpoints."""

HEADER = (
    *("MiB", "segments", "snapshot KiB", "fill s", "+MiB", "boot ms", "+MiB"),
    *("poll ms", "+MiB", "transfer s", "MiB/s", "+MiB"),
)
CONFIG = ReplicaConfig(traced=False, plane=Plane.PARTITIONS, checkpoint_interval=1_000)


def fill(directory: Path, mib: int) -> tuple[int, int]:
    """Data directories of replicas 0 and 1 with so many MiB in one partition; how many segments, bytes of snapshot."""
    machine = StateMachine(Plane.PARTITIONS)
    files = RealFileSystem(synced=False)
    path = directory / "0"
    format_data_file(path, 1, 0, 3, clients=CLIENTS_PAPER, file_system=files)
    data = open_data_file(path, file_system=files)
    batch = tuple(random.Random(0).randbytes(MESSAGE) for _ in range(256))
    left, op = mib << 20, 0
    refs: Sequence[SegmentRef] = ()
    while left > 0:
        for _ in range(min(-(-left // (len(batch) * MESSAGE)), CHECKPOINT_MIB * 4)):
            machine.apply(encode_operation(AppendMessages(NAMESPACE, batch)))
            left -= len(batch) * MESSAGE
        op += 1
        header = make_header(parent=CHECKSUM_NONE, view=0, op=op, client=1, request=op, commit=0, body=b"")
        table_bytes = ClientTable(CLIENTS_PAPER).to_bytes()
        snapshot = encode_snapshot(1, Contents(header, machine.to_bytes(), table_bytes, FeatureState().to_bytes()))
        data.write_snapshot(op, snapshot.data, machine.partitions.held())
        block = superblock_next(
            data.superblock,
            view=0,
            log_view=0,
            head_op=op,
            head_checksum=header.checksum,
            clock=0,
            checkpoint=(op, snapshot.checksum),
        )
        data.write_superblock(block)
        data.drain(op)
        named = decode_state(decode_snapshot(snapshot.data).state_machine).partitions
        machine.partitions.release(named)
        refs = named[0][1]
    store = data.segments
    closed = {path for ref in refs[:-1] for path in (store.path(ref.key), store.index_path(ref.key))}
    data.close()
    other = directory / "1"
    format_data_file(other, 1, 1, 3, clients=CLIENTS_PAPER)
    second = open_data_file(other)
    second.write_superblock(replace(block, replica=1))
    second.close()
    shutil.copytree(
        path,
        other,
        ignore=shutil.ignore_patterns("superblock", "journal"),
        copy_function=lambda source, target: (os.link if source in closed else shutil.copy2)(source, target),
        dirs_exist_ok=True,
    )
    format_data_file(directory / "2", 1, 2, 3, clients=CLIENTS_PAPER)
    return len(refs), len(snapshot.data)


def opened(directory: Path, replica: int) -> tuple[DataFile, Replica]:
    """A replica over its data directory."""
    data = open_data_file(directory / str(replica), file_system=RealFileSystem(synced=False))
    return data, Replica(data.durable_state(), CONFIG, source=data.segments)


def boot(directory: Path) -> float:
    """Milliseconds until a replica takes messages."""
    began = time.perf_counter()
    data, replica = opened(directory, 1)
    replica.boot()
    spent = time.perf_counter() - began
    data.close()
    return spent * 1000


def poll(directory: Path) -> float:
    """Milliseconds of a poll of ten messages somewhere, the median."""
    data, replica = opened(directory, 1)
    partitions, chosen, spent = replica.state.state_machine.partitions, random.Random(1), []
    for _ in range(200):
        offset = chosen.randrange(partitions.end(NAMESPACE) - 10)
        began = time.perf_counter()
        found = partitions.poll(NAMESPACE, offset, 10)
        spent.append(time.perf_counter() - began)
        if len(found.messages) != 10:
            raise RuntimeError(f"{len(found.messages)} messages at offset {offset}")
    data.close()
    return statistics.median(spent) * 1000


class Network:
    """Three replicas over their files, their messages and writes carried out one after the other."""

    def __init__(self, directory: Path) -> None:
        self.replicas: list[tuple[DataFile, Replica]] = [opened(directory, node) for node in range(3)]
        self.queue: deque[tuple[int, Message]] = deque()
        for node, (_, replica) in enumerate(self.replicas):
            self.carry_out(node, replica.boot())

    def carry_out(self, node: int, effects: list[Effect]) -> None:
        """Sends, and writes at once."""
        data, replica = self.replicas[node]
        for effect in effects:
            if isinstance(effect, Send):
                self.queue.append((effect.to, effect.message))
                continue
            if isinstance(effect, WriteSegment):
                data.write_segment(effect.ref, effect.content)
            elif isinstance(effect, WriteSnapshot):
                data.write_snapshot(effect.op, effect.data, effect.held)
            elif isinstance(effect, WriteSuperblock):
                data.write_superblock(effect.superblock)
            elif isinstance(effect, AppendPrepares):
                data.append(effect.prepares, effect.repair)
            elif isinstance(effect, DrainJournal):
                data.drain(effect.op, effect.stale, effect.end)
            else:
                continue
            self.carry_out(node, replica.on_io_done(effect))

    def run(self, done: Callable[[], bool]) -> None:
        """Until it is done."""
        while not done():
            if not self.queue:
                for node, (_, replica) in enumerate(self.replicas):
                    self.carry_out(node, replica.on_tick())
                continue
            to, message = self.queue.popleft()
            self.carry_out(to, self.replicas[to][1].on_message(message))


def transfer(directory: Path) -> float:
    """Seconds until the third replica has what the others have."""
    began = time.perf_counter()
    network = Network(directory)
    first, last = network.replicas[0][1].state, network.replicas[2][1].state
    network.run(lambda: last.checkpoint == first.checkpoint > 0 and last.status is Status.NORMAL)
    if last.state_machine.to_bytes() != first.state_machine.to_bytes():
        raise RuntimeError("the replicas differ")
    return time.perf_counter() - began


def alone(step: Callable[..., ResultT], *arguments: object) -> tuple[ResultT, int]:
    """What the step returns, in a process of its own, and how many MiB its memory grew by."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(_measured, (step, arguments))


def _measured(step: Callable[..., ResultT], arguments: tuple[object, ...]) -> tuple[ResultT, int]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = step(*arguments)
    return result, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) >> 10


def measure(mib: int, *, transfers: bool) -> tuple[str, ...]:
    """The cells of a row."""
    with tempfile.TemporaryDirectory(prefix="vsr-partitions-") as name:
        directory = Path(name)
        began = time.perf_counter()
        (segments, size), filling = alone(fill, directory, mib)
        filled = time.perf_counter() - began
        booted, booting = alone(boot, directory)
        polled, polling = alone(poll, directory)
        moved, moving = alone(transfer, directory) if transfers else (0.0, 0)
    return (
        f"{mib:,}",
        f"{segments:,}",
        f"{size / 1024:.0f}",
        f"{filled:.1f}",
        f"{filling:,}",
        f"{booted:.1f}",
        f"{booting:,}",
        f"{polled:.2f}",
        f"{polling:,}",
        *((f"{moved:.1f}", f"{mib / moved:.0f}", f"{moving:,}") if transfers else ("–", "–", "–")),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table."""
    parser = argparse.ArgumentParser(description="A partition of many messages: time and memory.")
    parser.add_argument("--mib", type=int, action="append", help="size of the partition, MiB; repeat for more rows")
    parser.add_argument("--no-transfer", action="store_true", help="the third replica stays as it is")
    options = parser.parse_args(arguments)
    rows = [measure(mib, transfers=not options.no_transfer) for mib in options.mib or (64, 1024)]
    sys.stdout.write(table(HEADER, rows) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
