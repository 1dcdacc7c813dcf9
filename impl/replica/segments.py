"""Segments of messages that are not on the own disk: fetched from the others, verified, written; served to them.

Who needs some: a replica that installs a snapshot, one that lost some before it booted, and one that finds, when it
answers a poll, serves another, or writes a snapshot, that a file of its own is gone or rotten. A segment is known by
what it holds (`SegmentRef`), and it only grows, so any replica that executed as much has those bytes, in memory or on
its disk. They come in chunks; the whole is verified against the checksum in the snapshot before it is written. What is
here of it in memory is not fetched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from viewproof.impl.interface.effects import WriteSegment
from viewproof.impl.interface.messages import RequestSegment, SegmentChunk, checksum_chunk
from viewproof.impl.machine.partition_log import Key, SegmentLostError, SegmentRef, SegmentSource, checksum_segment
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import LONG_AGO, State, Status

QUESTIONS_PER_REPLICA = 3
"""Questions to each replica without an answer, after which nobody may have the segment."""

READS_PER_STEP = 8
"""Segments that are read from the own disk at once to see if they are those that are wanted."""


@dataclass(slots=True)
class Fetch:
    """A segment on its way: what is here of it. `own`: it began with what was in memory."""

    ref: SegmentRef
    received: bytearray = field(default_factory=bytearray)
    own: bool = False
    unanswered: int = 0
    asked: int = 0
    asked_at: int = LONG_AGO


class SegmentFetch:
    """Brings segments onto the own disk, one at a time. `lost`: those that this replica should have and has not.

    `here`: those known to be on the disk. `notes`: what its host is to log.
    """

    def __init__(self, state: State, out: Outbox, source: SegmentSource) -> None:
        self.state = state
        self.out = out
        self.source = source
        self.lost: dict[Key, SegmentRef] = {}
        self.here: set[SegmentRef] = set()
        self.fetch: Fetch | None = None
        self.writing: WriteSegment | None = None
        self.notes: list[str] = []
        self._required: Sequence[SegmentRef] = ()
        self._found = 0
        self._asked_last = -1

    # What others want

    def on_request_segment(self, message: RequestSegment) -> None:
        """Sends the chunk asked for, if the segment is here as it is named."""
        content = self._content(message.ref)
        data = content[message.offset : message.offset + self.state.config.snapshot_chunk_bytes]
        if not data:
            self.out.ignore("request_segment: it is not here")
            return
        checksum = checksum_chunk(0, message.offset, data)
        fields = (message.ref, message.offset, data, checksum, self.state.node, self.state.clock)
        self.out.send(message.replica, SegmentChunk(*fields))

    def _content(self, ref: SegmentRef) -> bytes:
        """The bytes of a segment from memory or the disk; empty if it is not here."""
        begun = self._in_memory(ref)
        if begun and checksum_segment(begun) == ref.checksum:
            return begun
        try:
            return self.state.state_machine.partitions.cache.read(ref)
        except SegmentLostError as error:
            log = self.state.state_machine.partitions.logs.get(ref.namespace)
            if log is not None and log.is_sealed(ref):
                self.on_lost(error)
            return b""

    def _in_memory(self, ref: SegmentRef) -> bytes:
        """How the segment begins, up to its size, as far as that is in memory."""
        log = self.state.state_machine.partitions.logs.get(ref.namespace)
        held = None if log is None else log.held(ref.base)
        return b"" if held is None else bytes(held.content[: ref.size])

    # What this replica wants

    def on_lost(self, error: SegmentLostError) -> None:
        """Segments of the own state cannot be read. Raises the error if there is nobody to fetch them from."""
        if not self.state.others and not all(self._in_memory(ref) for ref in error.refs):
            raise error
        refs = [ref for ref in error.refs if ref.key not in self.lost]
        if refs:
            self.notes.append(f"{error}: fetched from the other replicas")
        self.lost |= {ref.key: ref for ref in refs}
        self.forget(refs)
        self.advance()

    def assume(self, refs: Sequence[SegmentRef]) -> None:
        """These were found on the disk when it was opened."""
        self.here.update(refs)

    def forget(self, refs: Sequence[SegmentRef]) -> None:
        """These are not on the disk."""
        self.here.difference_update(refs)
        self._required, self._found = (), 0

    def require(self, refs: Sequence[SegmentRef]) -> bool:
        """True once all of these are on the own disk; else the next step towards that is taken.

        Who asks again gives the same sequence: those that were found are not looked for again.
        """
        if self.fetch is not None or self.writing is not None:
            self.ask()
            return False
        if refs is not self._required:
            self._required, self._found = refs, 0
        reads = 0
        while self._found < len(refs):
            ref = refs[self._found]
            if ref not in self.here and not self._is_own(ref):
                if reads == READS_PER_STEP:
                    return False
                reads += 1
                if not self._is_on_disk(ref):
                    self._begin(ref)
                    return False
                self.here.add(ref)
            self._found += 1
        return True

    def _is_own(self, ref: SegmentRef) -> bool:
        """True if the segment is one of the executed state, and on the disk."""
        log = self.state.state_machine.partitions.logs.get(ref.namespace)
        return ref.key not in self.lost and log is not None and log.is_sealed(ref)

    def _is_on_disk(self, ref: SegmentRef) -> bool:
        try:
            self.source.read(ref)
        except SegmentLostError:
            return False
        return True

    def advance(self) -> None:
        """Fetches the next one that is lost, if nothing else is on its way."""
        if self.fetch is None and not self.lost:
            return
        if self.state.target is None and self.state.status is not Status.RECOVERING and self.is_given_up:
            self.lost = dict([*list(self.lost.items())[1:], *list(self.lost.items())[:1]])
        if self.fetch is None and self.writing is None and self.lost:
            self._begin(next(iter(self.lost.values())))
        else:
            self.ask()

    def _begin(self, ref: SegmentRef) -> None:
        begun = self._in_memory(ref)
        self.fetch = Fetch(ref, bytearray(begun), own=bool(begun), asked=self._asked_last)
        if len(begun) == ref.size:
            self._end(self.fetch)
        self.ask()

    @property
    def is_given_up(self) -> bool:
        """True if nobody answers: others may have nothing to do with what is being fetched. It is dropped then."""
        fetch = self.fetch
        given_up = fetch is not None and fetch.unanswered > QUESTIONS_PER_REPLICA * len(self.state.others)
        if given_up:
            self.fetch = None
        return given_up

    def ask(self) -> None:
        """Asks for the next chunk: the one who answered last, after a repair timeout the next replica in turn."""
        fetch, state = self.fetch, self.state
        if fetch is None or self.writing is not None or not state.others:
            return
        if state.ticks - fetch.asked_at < state.config.repair_timeout_ticks:
            return
        if fetch.unanswered or fetch.asked < 0:
            fetch.asked += 1
        fetch.unanswered += 1
        fetch.asked_at = state.ticks
        to = state.others[fetch.asked % len(state.others)]
        self.out.send(to, RequestSegment(fetch.ref, len(fetch.received), state.node, state.clock))

    def on_segment_chunk(self, message: SegmentChunk) -> None:
        """The next bytes of the segment that is being fetched."""
        fetch = self.fetch
        if fetch is None or fetch.ref != message.ref or self.writing is not None:
            self.out.ignore("segment_chunk: not of a segment that is being fetched")
            return
        right = checksum_chunk(0, message.offset, message.data)
        fits = 0 < len(message.data) <= fetch.ref.size - len(fetch.received)
        if message.offset != len(fetch.received) or not fits or message.data_checksum != right:
            self.out.ignore("segment_chunk: not the next one")
            return
        fetch.received += message.data
        fetch.unanswered, fetch.asked_at = 0, LONG_AGO
        self._asked_last = fetch.asked
        if self.state.target is not None:
            self.state.timers.heard_at = self.state.ticks
        if len(fetch.received) == fetch.ref.size:
            self._end(fetch)
        self.ask()

    def _end(self, fetch: Fetch) -> None:
        """All of it is here: it is verified and written; a bad one is fetched anew, from the next replica."""
        content = bytes(fetch.received)
        if checksum_segment(content) == fetch.ref.checksum:
            self.writing = WriteSegment(fetch.ref, content)
            self.out.effects.append(self.writing)
            return
        self.out.ignore("segment_chunk: the segment is bad")
        self.fetch = Fetch(fetch.ref, asked=fetch.asked if fetch.own else fetch.asked + 1)

    def on_written(self, io: WriteSegment) -> None:
        """A segment is durable."""
        self.fetch = self.writing = None
        self.here.add(io.ref)
        if self.lost.pop(io.ref.key, None) is not None:
            self.notes.append(f"segment {io.ref.base} of namespace {io.ref.namespace} is whole again")
        self.advance()
