"""Look into the partitions of a data directory without changing it: segments, indexes, stored offsets, damage.

What is shown is the checkpoint's: entries above it in the journal are executed again at the next start.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.machine.snapshot import SnapshotError, checksum_snapshot, decode_snapshot
from viewproof.impl.machine.state_machine import State, StateError, decode_state
from viewproof.impl.storage.data_file import SUPERBLOCK_NAME, DataFileError
from viewproof.impl.storage.file import FileSystem, MemoryFile, RealFileSystem
from viewproof.impl.storage.segments import SEGMENT_PREFIX, FoundSegment, SegmentFileError, SegmentStore
from viewproof.impl.storage.snapshots import SNAPSHOT_PREFIX
from viewproof.impl.storage.superblock import Superblock

__all__ = ["PartitionInspection", "PartitionView", "SegmentView", "StoredOffset", "inspect_partitions"]


@dataclass(frozen=True, slots=True)
class SegmentView:
    """One segment: offsets base .. end - 1 as the snapshot says, `readable` those up to where its file is good.

    `reason`: why the file is not what the snapshot says, or "". `indexed`: entries of the index that are right;
    `index_reason`: what is wrong with it, or "". An index is rebuilt at the next start.
    """

    name: str
    base: int
    end: int
    size: int
    readable: int
    reason: str
    indexed: int
    index_reason: str


@dataclass(frozen=True, slots=True)
class StoredOffset:
    """What a reader, a consumer or a consumer group (`group`), has stored. `above_end`: more than can be read."""

    reader: int
    group: bool
    offset: int
    above_end: bool


@dataclass(frozen=True, slots=True)
class PartitionView:
    """One partition. Its next message gets offset `end`; the messages below `durable_end` can be read."""

    namespace: int
    end: int
    durable_end: int
    segments: tuple[SegmentView, ...]
    offsets: tuple[StoredOffset, ...]


@dataclass(frozen=True, slots=True)
class PartitionInspection:
    """The partitions at the checkpoint. `problems`: what a start would repair, fetch or refuse."""

    path: str
    checkpoint: int
    partitions: tuple[PartitionView, ...]
    problems: tuple[str, ...]
    replica_count: int

    @property
    def whole(self) -> bool:
        """True if every message of the checkpoint can be read."""
        return not any(segment.reason for view in self.partitions for segment in view.segments)

    @property
    def remedy(self) -> str:
        """What a start does about damaged segments, or what to do; "" if there are none."""
        if self.whole:
            return ""
        if self.replica_count > 1:
            return "start the replica: it fetches the snapshot with its messages from the others"
        return "restore the files from a backup, or give up what is lost: start with --accept-loss"


def inspect_partitions(path: str | os.PathLike[str], file_system: FileSystem | None = None) -> PartitionInspection:
    """Reads superblock, snapshot and segments. Raises DataFileError, SuperblockError or SegmentFileError."""
    files = file_system or RealFileSystem()
    directory = os.fspath(path)
    superblock = _superblock(files, os.path.join(directory, SUPERBLOCK_NAME))
    left = {name for name in files.names(directory) if name.startswith(SEGMENT_PREFIX)}
    checkpoint = superblock.checkpoint
    state = _state(files, os.path.join(directory, f"{SNAPSHOT_PREFIX}{checkpoint}"), superblock) if checkpoint else None
    views: tuple[PartitionView, ...] = ()
    problems: list[str] = []
    if state is not None:
        store = SegmentStore(files, directory)
        named = [ref for _, refs in state.partitions for ref in refs]
        try:
            found = list(store.find(named, thorough=True))
        except OSError as error:
            raise SegmentFileError(f"{directory}: cannot read its segments: {error}") from error
        views = _views(store, found, state)
        left -= {os.path.basename(path(ref.key)) for ref in named for path in (store.path, store.index_path)}
        problems = [text for item in found for text in (item.problem, item.index_problem) if text]
    problems += [_above_end(view, stored) for view in views for stored in view.offsets if stored.above_end]
    problems += [
        f"{os.path.join(directory, name)}: of entries above the checkpoint, written anew" for name in sorted(left)
    ]
    return PartitionInspection(directory, checkpoint, views, tuple(problems), superblock.replica_count)


def _state(files: FileSystem, path: str, superblock: SuperblockState) -> State:
    """The state in the snapshot in use."""
    content = _content(files, path)
    try:
        if checksum_snapshot(content) != superblock.snapshot:
            raise SnapshotError("its checksum is not the one in the superblock: it is damaged")
        return decode_state(decode_snapshot(content).state_machine)
    except (SnapshotError, StateError) as error:
        raise SegmentFileError(f"{path}: {error}. `vsr inspect` and `vsr recover` say what to do") from error


def _above_end(view: PartitionView, stored: StoredOffset) -> str:
    reader = f"{'group' if stored.group else 'consumer'} {stored.reader}"
    return (
        f"namespace {view.namespace}: the stored offset {stored.offset} of {reader} is above the end of what can be"
        f" read, {view.durable_end}"
    )


def _views(store: SegmentStore, found: list[FoundSegment], state: State) -> tuple[PartitionView, ...]:
    views: list[PartitionView] = []
    for namespace in [namespace for namespace, refs in state.partitions if refs]:
        segments = [_segment_view(store, item) for item in found if item.ref.namespace == namespace]
        end = segments[-1].end
        durable = next((segment.readable for segment in segments if segment.readable < segment.end), end)
        offsets = tuple(
            StoredOffset(reader, group, offset, offset > durable)
            for its_namespace, group, reader, offset in state.offsets
            if its_namespace == namespace
        )
        views.append(PartitionView(namespace, end, durable, tuple(segments), offsets))
    return tuple(views)


def _segment_view(store: SegmentStore, item: FoundSegment) -> SegmentView:
    ref = item.ref
    name = os.path.basename(store.path(ref.key))
    readable = min(item.segment.end, ref.end) if item.problem and item.segment is not None else ref.end
    return SegmentView(name, ref.base, ref.end, ref.size, readable, item.problem, item.indexed, item.index_problem)


def _superblock(files: FileSystem, path: str) -> SuperblockState:
    return Superblock.open(MemoryFile(path, _content(files, path))).state


def _content(files: FileSystem, path: str) -> bytes:
    try:
        file = files.open(path)
        try:
            return file.read_at(0, file.size())
        finally:
            file.close()
    except OSError as error:
        raise DataFileError(f"{path}: cannot read: {error.strerror or error}") from error
