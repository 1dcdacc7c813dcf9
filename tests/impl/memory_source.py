"""Segments in memory, as a source of segments."""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.impl.machine.partition_log import Segment, SegmentRef


class MemorySource(dict[SegmentRef, bytes]):
    """What the segments hold now, by what names them."""

    def __init__(self, segments: Iterable[Segment]) -> None:
        super().__init__({segment.ref: bytes(segment.content) for segment in segments})

    def read(self, ref: SegmentRef) -> bytes:
        """Raises `KeyError` if there is no such segment."""
        return self[ref]
