"""Replicas over real data files in memory, one of which loses power at a chosen I/O."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

from tests.impl.link import Link
from viewproof.impl.interface.durable import CLIENTS_PAPER, DurableState
from viewproof.impl.interface.effects import (
    AppendPrepares,
    IoEffect,
    ReadSegment,
    WriteSegment,
    WriteSnapshot,
    WriteSuperblock,
)
from viewproof.impl.interface.messages import Message, Request
from viewproof.impl.machine.partition_log import SegmentLostError, SegmentSource
from viewproof.impl.machine.state_machine import Append, encode_operation
from viewproof.impl.replica import ReplicaConfig, Status
from viewproof.impl.storage.data_file import DataFile, format_data_file, open_data_file
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem, StorageError, WriteRefusedError
from viewproof.impl.storage.records import MARK_OFFSET
from viewproof.impl.storage.ring_file import Geometry
from viewproof.impl.storage.snapshots import SegmentsGoneError
from viewproof.impl.trace.events import encode_line

Choice = Callable[[int], int]
"""How many leading bytes of a pending write of so many bytes a power loss leaves; of pending renames, how many."""

SURVIVAL: dict[str, Choice] = {
    "nothing": lambda length: 0,
    "everything": lambda length: length,
    "half": lambda length: (length + 1) // 2,
}


class PowerLossError(BaseException):
    """Raised at an I/O; not an Exception, so that no storage code can take it for an I/O error."""


class Fuse:
    """Counts the I/Os of one file system; the power goes before the one numbered `at` (from 1; 0: never).

    With `error` that I/O fails with this number instead, and the power stays. While the disk is `full`, nothing grows.
    """

    def __init__(self) -> None:
        self.count = 0
        self.at = 0
        self.error = 0
        self.full = False
        self.what: list[str] = []

    def burn(self, what: str) -> None:
        """One more I/O is about to happen."""
        self.count += 1
        self.what.append(what)
        if self.full and what == "create":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if self.count == self.at and self.error:
            raise OSError(self.error, os.strerror(self.error))
        if self.count == self.at:
            raise PowerLossError


class PoweredFile(MemoryFile):
    """A file whose every change and sync may be the one at which the power goes."""

    fuse: Fuse

    def write_at(self, offset: int, data: bytes) -> None:
        try:
            self.fuse.burn("mark" if offset == MARK_OFFSET else "write")
        except OSError:
            super().write_at(offset, data[: len(data) // 2])
            raise
        if self.fuse.full and offset + len(data) > self.size():
            super().write_at(offset, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        super().write_at(offset, data)

    def sync(self) -> None:
        self.fuse.burn("sync")
        super().sync()

    def truncate(self, size: int) -> None:
        self.fuse.burn("truncate")
        super().truncate(size)


class PoweredFileSystem(MemoryFileSystem):
    """Files on one fuse."""

    def __init__(self) -> None:
        super().__init__()
        self.fuse = Fuse()

    def make_file(self, path: str) -> MemoryFile:
        file = PoweredFile(path)
        file.fuse = self.fuse
        return file

    def create(self, path: str) -> MemoryFile:
        self.fuse.burn("create")
        return super().create(path)

    def rename(self, source: str, target: str) -> None:
        self.fuse.burn("rename")
        super().rename(source, target)

    def remove(self, path: str) -> None:
        self.fuse.burn("remove")
        super().remove(path)

    def sync_directory(self, directory: str) -> None:
        self.fuse.burn("sync_directory")
        super().sync_directory(directory)


class FileStorage:
    """The storage that a link uses, over a data file."""

    def __init__(self, node: int, count: int, ring: Geometry | None = None) -> None:
        self.files = PoweredFileSystem()
        self.in_flight: list[IoEffect] = []
        self.data: DataFile | None = None
        format_data_file("d", 1, node, count, file_system=self.files, clients=CLIENTS_PAPER, ring=ring)

    def start(self, io: IoEffect) -> None:
        """Nothing happens until the link finishes it."""
        self.in_flight.append(io)

    def finish(self, io: IoEffect) -> None:
        """Does it. Raises PowerLossError."""
        self.in_flight.remove(io)
        data = self.data
        assert data is not None
        if isinstance(io, AppendPrepares):
            data.append(io.prepares, io.repair)
        elif isinstance(io, WriteSuperblock):
            data.write_superblock(io.superblock)
        elif isinstance(io, WriteSnapshot):
            data.write_snapshot(io.op, io.data, io.held)
        elif isinstance(io, WriteSegment):
            data.write_segment(io.ref, io.content)
        elif isinstance(io, ReadSegment):
            data.read_segment(io.ref)
        else:
            data.drain(io.op, io.stale, io.end)

    @property
    def segments(self) -> SegmentSource:
        """Where segments of messages are read."""
        assert self.data is not None
        return self.data.segments

    def recover(self) -> DurableState:
        """Opens the data file, that of a process that is gone. Raises PowerLossError."""
        self.files._locked.clear()
        self.data = open_data_file("d", file_system=self.files)
        return self.data.durable_state()


class PowerLink(Link):
    """Three replicas, each over data files. `victim` loses power at its I/O number `at`, and boots again at once.

    `survives` says what a power loss leaves of writes that were not synced. With `again` the power goes a second time,
    so many I/Os into the boot that follows. With `error` (errno) the I/O fails instead, a write half-way; a replica
    that cannot go on boots again. With `ring` the journals are rings.
    """

    def __init__(
        self,
        config: ReplicaConfig,
        victim: int = 0,
        at: int = 0,
        survives: Choice = SURVIVAL["nothing"],
        again: int = 0,
        error: int = 0,
        ring: Geometry | None = None,
    ) -> None:
        self.victim = victim
        self.survives = survives
        self.again = again
        self.cuts: list[str] = []
        self.number: dict[int, int] = {}
        self.answered: dict[tuple[int, int], int] = {}
        self.file_storages = [FileStorage(node, 3, ring) for node in range(3)]
        super().__init__(3, storages=self.file_storages, config=config, booted=False)
        fuse = self.file_storages[victim].files.fuse
        fuse.count, fuse.what = 0, []
        fuse.at, fuse.error = at, error
        self.outcomes: list[str] = []
        for node in range(3):
            self.start(node)
        self.run()

    def start(self, node: int) -> None:
        """Boots a replica; if the power goes meanwhile, boots it again."""
        while True:
            try:
                self.boot(node)
                return
            except PowerLossError:
                self._lose_power(node)
            except StorageError:
                self.outcomes.append("did not boot")

    def finish(self, node: int, io: IoEffect) -> None:
        """The write happens, unless the power goes."""
        self.held.remove((node, io))
        try:
            self.storages[node].finish(io)
        except PowerLossError:
            self.crash(node)
            self._lose_power(node)
            self.start(node)
        except WriteRefusedError as error:
            self.outcomes.append("went on")
            lost = error.refs if isinstance(error, SegmentsGoneError) else ()
            self.handle(node, self.replicas[node].on_io_failed(io, str(error), lost))
        except SegmentLostError as error:
            self.handle(node, self.replicas[node].on_io_failed(io, str(error), error.refs))
        except StorageError:
            self.outcomes.append("stopped")
            self.stop(node)
            self.start(node)
        else:
            self.handle(node, self.replicas[node].on_io_done(io))

    def stop(self, node: int) -> None:
        """The process is killed: what it wrote stays, also where it was not synced."""
        self.crash(node)
        self.file_storages[node].files.crash(lambda length: length)

    def _lose_power(self, node: int) -> None:
        files = self.file_storages[node].files
        fuse = files.fuse
        self.cuts.append(fuse.what[-1])
        files.crash(self.survives)
        fuse.at = fuse.count + self.again if self.again else 0
        self.again = 0

    def ask(self, client: int) -> None:
        """The client's next request, sent again to one replica after the other until it is answered."""
        number = self.number.get(client, 0) + 1
        self.number[client] = number
        body = self.body(client, number)
        known = len(self.replies)
        for attempt in range(200):
            view = max((replica.state.view for replica in self.replicas.values()), default=0)
            self.deliver((view + attempt) % 3, Request(client, number, body))
            self.run()
            for reply in self.replies[known:]:
                self.answered[reply.client, reply.request] = reply.op
            if (client, number) in self.answered:
                return
            self.tick(4)
        raise AssertionError(f"request {number} of client {client} is not answered")

    def body(self, client: int, number: int) -> bytes:
        """The operation of a request."""
        return encode_operation(Append(b"key", b"%d.%d;" % (client, number)))

    def settle(self) -> None:
        """Time passes until all replicas are normal in one view with all executed."""
        for _ in range(400):
            states = {
                (
                    replica.state.status,
                    replica.state.view,
                    replica.state.op,
                    replica.state.commit_min,
                    replica.state.commit_max,
                    replica.state.digest,
                )
                for replica in self.replicas.values()
            }
            if len(self.replicas) == 3 and len(states) == 1:
                status, _, op, commit_min, _, _ = next(iter(states))
                if status is Status.NORMAL and op == commit_min:
                    return
            self.tick(4)
        raise AssertionError("the replicas do not get level")

    def write_trace(self, directory: Path) -> Path:
        """The traces of all replicas, as files of one run."""
        directory.mkdir(parents=True, exist_ok=True)
        for node in range(3):
            lines = b"".join(encode_line(event) for event in self.events if event.node == node)
            (directory / f"replica-{node}.ndjson").write_bytes(lines)
        return directory


def isolate(node: int) -> Callable[[int, int, Message], bool]:
    """A filter for `lose`: nothing reaches the node, and nothing leaves it."""
    return lambda source, to, message: node in (source, to)
