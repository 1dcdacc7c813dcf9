"""The lines of a log file: plain, gzip or Zstandard, streamed; a file may hold several runs, one after the other."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import zstandard

CHUNK: Final = 1 << 20
END_OF_RUN: Final = b"          PASSED ("
"""How the last line of a run begins."""

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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


def open_log(file: str) -> BinaryIO:
    """The content of a file, unpacked by what it starts with."""
    raw = open(file, "rb", buffering=CHUNK)  # noqa: SIM115 - closed by the caller
    start = raw.read(4)
    raw.seek(0)
    if start.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=raw))
    if start == _ZSTD:
        reader = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)
        return cast(BinaryIO, io.BufferedReader(cast(io.RawIOBase, reader), CHUNK))
    return raw


def is_packed(file: str) -> bool:
    """Is the file compressed?"""
    with open(file, "rb") as raw:
        start = raw.read(4)
    return start.startswith(_GZIP) or start == _ZSTD


class Lines:
    """The lines of a segment in chunks; `cut` says afterwards what is missing at the end, "" if nothing is."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.cut = ""

    def chunks(self) -> Iterator[list[str]]:
        """Lists of whole lines, without their ends; a last line that is not ended is left out."""
        left = self.segment.end - self.segment.start if self.segment.end else -1
        with open_log(self.segment.file) as stream:
            if self.segment.start:
                stream.seek(self.segment.start)
            rest = b""
            while left:
                data = self._read(stream, CHUNK if left < 0 else min(CHUNK, left))
                if not data:
                    break
                left -= len(data) if left > 0 else 0
                end = data.rfind(b"\n")
                if end < 0:
                    rest += data
                    continue
                whole, rest = rest + data[:end], data[end + 1 :]
                text = whole.decode("utf-8", "replace")
                yield (text.replace("\r\n", "\n").removesuffix("\r") if "\r" in text else text).split("\n")
            if rest and not self.cut:
                self.cut = "its last line is cut off and not judged"

    def _read(self, stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
        try:
            return stream.read1(size) if isinstance(stream, gzip.GzipFile) else stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            self.cut = f"its compressed data ends early or is damaged ({error})"
            return b""


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
