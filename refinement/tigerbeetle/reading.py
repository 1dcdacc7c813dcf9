"""The lines of a log file: plain, gzip or Zstandard, streamed; a file may hold several runs, one after the other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from viewproof.refinement.text_lines import CHUNK, TextLines, is_packed

END_OF_RUN: Final = b"          PASSED ("
"""How the last line of a run begins."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One run's part of a file: bytes start..end (0: to the end) of its content, and the number of its first line."""

    file: str
    start: int = 0
    end: int = 0
    first_line: int = 1
    ordinal: int = 0
    """Which run of the file it is, from 1; 0: the only one."""
    part: int = 0
    """Which of the runs that follow one that was cut off."""

    @property
    def run_id(self) -> str:
        """The file's name, with the run's number where there are several."""
        name = self.file if not self.ordinal else f"{self.file}#{self.ordinal}"
        return f"{name}.{self.part}" if self.part else name


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
