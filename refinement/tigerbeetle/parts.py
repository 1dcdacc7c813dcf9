"""Where the runs of a log begin and end, and the lines of one of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.reading import Lines, marked

INIT: Final = re.compile(
    rb"\[\w+\] \(replica\): \d+[a-zA-Z]?: init: replica_count=(?P<n>\d+) "
    rb"quorum_view_change=(?P<q_v>\d+) quorum_replication=(?P<q_r>\d+)(?P<release> release=\S+)?$",
    re.MULTILINE,
)
"""The line of a replica that starts: the first that tells family and configuration."""
_INIT: Final = b": init: replica_count="
PASSED: Final = b"          PASSED ("
_SEED: Final = b"          SEED="
_SIMULATOR: Final = b"[info] (simulator): \n"
_FIRST_2022: Final = b"[debug] (journal): 0: slot_count="
_SECOND_2022 = re.compile(rb"\[debug\] \(journal\): 1: slot_count=|\[debug\] \(vsr\): \d+: ping_timeout started\n")
"""Where a replica crashes, its memory is set up anew, too: the next line about it says so."""
_BOUNDS: Final = (PASSED, _SEED, _FIRST_2022)
"""The last line of a run, and the first ones of the next, where the one before was cut off."""


def init_line(head: bytes) -> re.Match[bytes] | None:
    """The first line of a replica that starts."""
    at = head.find(_INIT)
    while at >= 0:
        if found := INIT.match(head, head.rfind(b"\n", 0, at) + 1):
            return found
        at = head.find(_INIT, at + 1)
    return None


class Parts:
    """The lines of one run in blocks; `beyond` are those at hand that follow its end, `number` is that of the first."""

    def __init__(self, head: bytes, source: Iterator[bytes], lines: Lines, first: int) -> None:
        self.block: bytes | None = head
        self.source = source
        self.lines = lines
        self.number = first
        found = init_line(head)
        self.begun = found.start() if found else 0
        self.before = b""
        self.beyond: bytes | None = None

    def __iter__(self) -> Parts:
        return self

    def __next__(self) -> bytes:
        if self.block is None or self.beyond is not None:
            raise StopIteration
        end, lines = _end_of_run(self.block, self.begun, self.before)
        own, self.beyond = (self.block, None) if end is None else (self.block[:end], self.block[end:])
        self.begun, self.before = 0, self.block[-len(_SIMULATOR) - 1 :]
        self.number += lines
        self.block = next(self.source, None) if self.beyond is None else None
        return own

    def cut(self) -> str:
        """What is missing at the end; "" if nothing is, or another run follows."""
        return self.lines.cut if self.beyond is None else ""


def _end_of_run(block: bytes, begun: int, before: bytes) -> tuple[int | None, int]:
    """Where the lines of a run end (None: they do not end here), and how many they are.

    From `begun` on another run may start; `before` is what ends before the block.
    """
    lines, found = marked(block, _BOUNDS)
    for mark, at in found:
        end = at
        if _BOUNDS[mark] == PASSED:
            end = block.index(b"\n", at) + 1
        elif _BOUNDS[mark] == _FIRST_2022:
            third = at
            for _ in range(3):
                third = block.find(b"\n", third) + 1 or len(block)
            if not _SECOND_2022.match(block, third) or at < begun:
                continue
        elif not (b"\n" + (block[:at] or before)).endswith(b"\n" + _SIMULATOR) or at < begun:
            continue
        return end, marked(block[:end], ())[0]
    return None, lines


def blocks_after(segment: Segment, lines: Lines, skipped: int) -> Iterator[bytes]:
    """The lines of a segment in blocks, without the first so many."""
    for block in lines.blocks():
        if skipped:
            rest = block.split(b"\n", skipped)
            found = len(rest) - 1
            skipped, block = skipped - found, rest[-1] if found == skipped else b""
        if block:
            yield block


def parts_again(segment: Segment, number: int) -> Parts:
    """The lines, from that number on, of the run that begins there."""
    lines = Lines(segment)
    source = blocks_after(segment, lines, number - segment.first_line)
    head = b""
    while init_line(head) is None and (more := next(source, None)) is not None:
        head += more
    return Parts(head, source, lines, number)
