"""The runs of a log file, one after the other, and their lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from viewproof.refinement.bounds import LINE_MAX
from viewproof.refinement.flat import text as text_source
from viewproof.refinement.text_lines import CHUNK, Segment, TextLines, is_packed
from viewproof.refinement.tigerbeetle import heading, matching
from viewproof.spec.engines.llvm.objects import loaded, unit_of

END_OF_RUN: Final = b"          PASSED ("
"""How the last line of a run begins."""
PADDING: Final = bytes(16)


@cache
def _functions() -> tuple[dict[str, Callable[..., int]], Any]:
    """The compiled functions, and what keeps them."""
    return loaded(unit_of("lines to rows", text_source, matching, heading))


def call(name: str, *given: Any) -> int:
    """What a compiled function returns."""
    functions, _ = _functions()
    return functions[name](*given)


def marked(block: bytes, marks: Sequence[bytes], most: int = 64) -> tuple[int, list[tuple[int, int]]]:
    """How many lines there are, and those that begin with a mark: which, and where."""
    text, literals = (np.frombuffer(part + PADDING, np.uint8) for part in (block, b"".join(marks)))
    ends = np.cumsum([len(mark) for mark in marks])
    table = np.array([(int.from_bytes(m[:8], "little"), e - len(m), len(m)) for m, e in zip(marks, ends, strict=True)])
    out = np.zeros(1 + 2 * most, np.int64)
    begin = text.ctypes.data
    found = call("beginnings", begin, begin + len(block), table, len(marks), literals, out, most)
    if found > most:
        return marked(block, marks, found)
    return int(out[0]), [(int(mark), int(at)) for mark, at in out[1 : 1 + 2 * found].reshape(-1, 2)]


class Lines(TextLines):
    """The lines of a segment."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(segment.file, segment.start, segment.end)
        self.segment = segment


def segments(file: str) -> list[Segment]:
    """The runs of a file: a plain file is searched for ends of runs; a packed one is one segment, split when read."""
    if is_packed(file):
        return [Segment(file)]
    starts, line, begin = [(0, 1)], 1, 0
    with open(file, "rb") as stream:
        carry = b""
        while data := stream.read(CHUNK):
            whole, newline, rest = data.rpartition(b"\n")
            if not newline:
                carry += data
                if len(carry) > LINE_MAX:  # whoever reads the lines refuses this one
                    break
                continue
            block = carry + whole + newline
            lines, ends = marked(block, (END_OF_RUN,))
            for _, at in ends:
                end = block.index(b"\n", at) + 1
                starts.append((begin + end, line + marked(block[:end], ())[0]))
            begin, line, carry = begin + len(block), line + lines, rest
    ends_of = [start for start, _ in starts[1:]] + [os.path.getsize(file)]
    parts = [(s, e, n) for (s, n), e in zip(starts, ends_of, strict=True) if not _blank(file, s, e)]
    several = len(parts) > 1
    return [Segment(file, s, e, n, i if several else 0) for i, (s, e, n) in enumerate(parts, 1)] or [Segment(file)]


def _blank(file: str, start: int, end: int) -> bool:
    if end - start > 4096:
        return False
    with open(file, "rb") as stream:
        stream.seek(start)
        return not stream.read(end - start).strip()
