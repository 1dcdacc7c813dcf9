"""The lines of text files: plain, gzip or Zstandard, streamed."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final, cast

import zstandard

from viewproof.refinement.bounds import LINE_MAX, LineTooLongError

CHUNK: Final = 1 << 20
BYTE_ORDER: Final = b"\xef\xbb\xbf"
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


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


@dataclass(frozen=True, slots=True)
class Segment:
    """One run's part of a file: bytes start..end (0: to the end) of its content, and the number of its first line.

    `ordinal` says which run of the file it is, from 1 (0: the only one); `part` which of those that follow one that was
    cut off.
    """

    file: str
    start: int = 0
    end: int = 0
    first_line: int = 1
    ordinal: int = 0
    part: int = 0

    @property
    def run_id(self) -> str:
        """The file's name, with the run's number where there are several."""
        name = self.file if not self.ordinal else f"{self.file}#{self.ordinal}"
        return f"{name}.{self.part}" if self.part else name


class TextLines:
    """The lines of a file in chunks, or of bytes start..end (0: to the end) of its content; `cut` says afterwards what
    is missing at the end, "" if nothing is.
    """

    def __init__(self, file: str, start: int = 0, end: int = 0) -> None:
        self.file = file
        self.start = start
        self.end = end
        self.cut = ""

    def chunks(self) -> Iterator[list[str]]:
        """Lists of whole lines, without their ends; a last line that is not ended is left out."""
        for block in self.blocks():
            yield block.decode("utf-8", "replace").removesuffix("\n").split("\n")

    def blocks(self) -> Iterator[bytes]:
        """The same as bytes, each line with its end, which is that of one system; without a mark of the byte order."""
        mark = b"" if self.start else BYTE_ORDER
        left = self.end - self.start if self.end else -1
        with open_log(self.file) as stream:
            if self.start:
                stream.seek(self.start)
            rest = b""
            while left:
                data = self._read(stream, CHUNK if left < 0 else min(CHUNK, left))
                if not data:
                    break
                left -= len(data) if left > 0 else 0
                end = data.rfind(b"\n") + 1
                if not end:
                    rest += data
                    if len(rest) > LINE_MAX:
                        self.cut = f"it has {LineTooLongError()}, and is not read from there on"
                        break
                    continue
                whole, rest = (rest + data[:end]).removeprefix(mark), data[end:]
                mark = b""
                yield whole.replace(b"\r\n", b"\n") if b"\r" in whole else whole
            if rest and not self.cut:
                self.cut = "its last line is cut off and not judged"

    def _read(self, stream: BinaryIO | gzip.GzipFile, size: int) -> bytes:
        try:
            return stream.read1(size) if isinstance(stream, gzip.GzipFile) else stream.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError) as error:
            self.cut = f"its compressed data ends early or is damaged ({error})"
            return b""
