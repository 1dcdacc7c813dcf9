"""What a replica asks its host to do; the host carries effects out strictly in the order of the list.

The host's duties:

* `Emit`: the event is written to the trace file before any later effect of the list leaves the process;
* `Send`, `SendClient`: best effort; loss, delay, repeat and reorder are allowed;
* `AppendPrepares`, `DrainJournal`, `WriteSuperblock`, `WriteSnapshot`, `WriteSegment`: start the write; when it is
  durable (after fsync) call `Replica.on_io_done(effect)` with the same effect, or, if nothing of it counts and the
  storage can go on, `Replica.on_io_failed(effect, error)`. At most one write to each of journal, superblock, snapshots
  and segments is in flight. They may complete in any order. The replica itself holds back everything that depends on
  them;
* `ReadSegment`: the same, though nothing is written.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.messages import Eviction, Message, Prepare, Reply
from viewproof.impl.machine.partition_log import Segment, SegmentRef
from viewproof.impl.trace.events import TraceEvent


class Send(msgspec.Struct, frozen=True, gc=False):
    """Send `message` to replica `to` (never the replica itself)."""

    to: int
    message: Message


class SendClient(msgspec.Struct, frozen=True, gc=False):
    """Send `message` to client `client`."""

    client: int
    message: Reply | Eviction


class AppendPrepares(msgspec.Struct, frozen=True):
    """Append the prepares to the journal, in order, with one flush.

    `repair` is false for entries that extend the log of log_view, true for bodies of a log that is still to be
    installed: those count only when reached backwards from the superblock's head (see `impl.interface.durable`). The
    flag is stored per record.
    """

    prepares: tuple[Prepare, ...]
    repair: bool = False


class WriteSuperblock(msgspec.Struct, frozen=True):
    """Make `superblock` durable, atomically."""

    superblock: SuperblockState


class WriteSnapshot(msgspec.Struct, frozen=True):
    """Make the snapshot at `op` durable, atomically, beside the one that the superblock refers to.

    `data` is what `impl.machine.snapshot` encoded, `checksum` its checksum. The segments that it names are durable
    before it is: what is not on the disk of them is in `held`. Those go on growing; what counts is named by size.
    """

    op: int
    checksum: str
    data: bytes
    held: tuple[Segment, ...] = ()


class WriteSegment(msgspec.Struct, frozen=True):
    """Make a segment that came from another replica durable, atomically, in place of what is on the disk of it."""

    ref: SegmentRef
    content: bytes


class ReadSegment(msgspec.Struct, frozen=True):
    """Read a segment from the disk. It has failed, with the segment as lost, if it is not what `ref` names."""

    ref: SegmentRef


class DrainJournal(msgspec.Struct, frozen=True):
    """Drop the journal's records at or below `op`, and all snapshots but the one that the superblock refers to.

    The superblock refers to the snapshot at `op`, durably. With `stale` also the records above `op` that are not part
    of the log that the superblock names, and with `end` those above it.
    """

    op: int
    stale: bool = False
    end: int | None = None


class Emit(msgspec.Struct, frozen=True, gc=False):
    """Write `event` to the trace."""

    event: TraceEvent


IoEffect: TypeAlias = AppendPrepares | DrainJournal | WriteSuperblock | WriteSnapshot | WriteSegment | ReadSegment
"""The effects whose completion the host reports."""

Effect: TypeAlias = Send | SendClient | IoEffect | Emit
