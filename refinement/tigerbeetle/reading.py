"""The runs of a log file, one after the other, and their lines."""

from __future__ import annotations

import os
from typing import Final

from viewproof.refinement.text_lines import CHUNK, Segment, TextLines, is_packed

END_OF_RUN: Final = b"          PASSED ("
"""How the last line of a run begins."""


class Lines(TextLines):
    """The lines of a segment."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.file, segment.start, segment.end)
        self.segment = segment


def segments(file: str) -> list[Segment]:
    """The runs of a file: a plain file is searched for ends of runs; a packed one is one segment, split when read."""
    if is_packed(file):
        return [Segment(file)]
    starts, lines = [(0, 1)], [1]
    size = os.path.getsize(file)
    with open(file, "rb") as stream:
        position, carry = 0, b""
        while data := stream.read(CHUNK << 3):
            block = carry + data
            base = position - len(carry)
            found = block.find(END_OF_RUN)
            counted = 0
            while found >= 0:
                end = block.find(b"\n", found)
                if end < 0:
                    break
                lines[0] += block.count(b"\n", counted, end + 1)
                counted = end + 1
                starts.append((base + end + 1, lines[0]))
                found = block.find(END_OF_RUN, end)
            keep = max(block.rfind(b"\n") + 1, counted)
            lines[0] += block.count(b"\n", counted, keep)
            position += len(data)
            carry = block[keep:]
    ends = [start for start, _ in starts[1:]] + [size]
    parts = [(s, e, n) for (s, n), e in zip(starts, ends, strict=True) if not _blank(file, s, e)]
    several = len(parts) > 1
    return [Segment(file, s, e, n, i if several else 0) for i, (s, e, n) in enumerate(parts, 1)] or [Segment(file)]


def _blank(file: str, start: int, end: int) -> bool:
    if end - start > 4096:
        return False
    with open(file, "rb") as stream:
        stream.seek(start)
        return not stream.read(end - start).strip()
