"""Reads the segments on the own disk one after the other, at a bounded rate, though nobody asks for them.

Rot that nobody reads would stay until it is needed, and the last good copy may be gone by then. A segment that is not
what names it is fetched from the others as if a poll had met it (`impl.replica.segments`); of one that is in memory the
next checkpoint writes the file again.
"""

from __future__ import annotations

from collections import deque

from viewproof.impl.interface.effects import ReadSegment
from viewproof.impl.machine.partition_log import Key, SegmentLostError, SegmentRef
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.segments import SegmentFetch
from viewproof.impl.replica.state import LONG_AGO, State, Status


class Scrub:
    """One segment at a time is read, `reading`, and as many bytes a tick as the configuration says, on average.

    Since the boot: `passes` over all segments, `segments_read` and their `bytes_read`, `found`: those that were not
    right. `alone`: what is wrong with segments that there is no other replica to fetch from.
    """

    def __init__(self, state: State, out: Outbox, segments: SegmentFetch) -> None:
        self.state = state
        self.out = out
        self.segments = segments
        self.reading: ReadSegment | None = None
        self.passes = self.segments_read = self.bytes_read = self.found = 0
        self.alone: dict[Key, str] = {}
        self._left: deque[SegmentRef] = deque()
        self._credit = 0
        self._began_at = LONG_AGO * self.state.config.scrub_pass_ticks_min

    def on_tick(self) -> None:
        """Reads the next segment, if it is time."""
        state = self.state
        rate = state.config.scrub_bytes_per_tick
        waits = state.status is not Status.NORMAL or state.target is not None
        if not rate or waits or self.reading is not None:
            return
        if not self._left:
            self._begin_pass()
        if not self._left:
            return
        self._credit = min(self._credit + rate, self._left[0].size)
        if self._credit < self._left[0].size:
            return
        ref, self._credit = self._left.popleft(), 0
        if ref.key not in self.segments.lost:
            self.reading = ReadSegment(ref)
            self.out.effects.append(self.reading)

    def _begin_pass(self) -> None:
        """All segments again, from another one on in each process, so that those at the end have their turn, too."""
        state, config = self.state, self.state.config
        if state.ticks - self._began_at < config.scrub_pass_ticks_min:
            return
        logs = [log for _, log in sorted(state.state_machine.partitions.logs.items())]
        refs = [ref for log in logs for ref in (*log.sealed, *log.durable)]
        if refs:
            self._began_at = state.ticks
            self._left.extend(refs)
            self._left.rotate(-(config.nonce % len(refs)))

    def on_read(self, io: ReadSegment) -> None:
        """It is what names it."""
        self.alone.pop(io.ref.key, None)
        self._end(io)

    def on_rotten(self, io: ReadSegment, reason: str) -> None:
        """It is gone, or something else."""
        ref = io.ref
        self.found += 1
        log = self.state.state_machine.partitions.logs.get(ref.namespace)
        if log is None or not log.is_sealed(ref):
            self.segments.notes.append(f"{reason}: it is in memory, and the next checkpoint writes it again")
        elif self.state.others:
            self.segments.on_lost(SegmentLostError((ref,), reason))
        else:
            text = f"{reason}: there is no other replica to fetch it from; restore the file from a backup"
            if self.alone.get(ref.key) != text:
                self.segments.notes.append(text)
            self.alone[ref.key] = text
        self._end(io)

    def _end(self, io: ReadSegment) -> None:
        self.reading = None
        self.segments_read += 1
        self.bytes_read += io.ref.size
        self.passes += not self._left
