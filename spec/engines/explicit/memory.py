"""What a search keeps, inside a memory bound: the fingerprint table, rows of two levels, how each state was reached.

The table must stay in memory. Rows and the log of parents go to files, oldest segment first, when the bound is near.
"""

from __future__ import annotations

import bisect
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

REGIONS = 16
"""Parts of the table, by the top bits of a fingerprint; a worker owns some. `kernel.insert` knows their number."""
TABLE_MIN = 1 << 14
LOAD, LOAD_LAST = 0.5, 0.8
"""Fill of the table at which it doubles, and up to which it is used when it can no longer double."""
ROWS_MAX, LOG_MAX = 1 << 16, 1 << 20


def available_bytes() -> int:
    """Memory that can be had without swapping (Linux: MemAvailable, and the limit of the control group)."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            found = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with (
            open("/sys/fs/cgroup/memory.max", encoding="utf-8") as limit,
            open("/sys/fs/cgroup/memory.current", encoding="utf-8") as used,
        ):
            text = limit.read().strip()
            if text != "max":
                found = min(found, max(0, int(text) - int(used.read())))
    except (OSError, ValueError):
        pass
    return found


class Memory:
    """Bytes in use against a bound, and a directory for what does not fit."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.used = 0
        self.peak = 0
        self.spilled = 0
        self.spillers: list[Callable[[], bool]] = []
        self._folder: Path | None = None
        self._files = 0

    def fits(self, extra: int) -> bool:
        """Can so many more bytes be held? Segments are spilled until they can, or none is left."""
        while self.used + extra > self.bound:
            if not any(spill() for spill in self.spillers):
                return False
        return True

    def add(self, size: int) -> None:
        """So many bytes more (or, negative, fewer) are held."""
        self.used += size
        self.peak = max(self.peak, self.used)

    def write(self, *arrays: NDArray[Any]) -> list[Path]:
        """Put arrays into files of their own."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="vsr-explicit-", dir=os.environ.get("VSR_SPILL")))
        paths = []
        for array in arrays:
            self._files += 1
            paths.append(self._folder / f"{self._files}.bin")
            array.tofile(paths[-1])
            self.spilled += array.nbytes
        return paths

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


class Table:
    """Open-addressing table of 64-bit fingerprints."""

    def __init__(self, memory: Memory, functions: dict[str, Callable[..., int]]) -> None:
        self.memory = memory
        self.functions = functions
        self.slots: NDArray[np.int64] = np.zeros(TABLE_MIN, np.int64)
        self.tight = False
        memory.add(self.slots.nbytes)

    def reserve(self, wanted: int) -> bool:
        """Make room for so many fingerprints in all; False if the memory bound forbids it."""
        while wanted > self.slots.shape[0] * (LOAD_LAST if self.tight else LOAD):
            if self.tight:
                return False
            if not self.memory.fits(2 * self.slots.nbytes):
                self.tight = True
                continue
            self.resize(2 * self.slots.shape[0])
        return True

    def resize(self, size: int) -> None:
        """Move all fingerprints to a table of another size."""
        larger = np.zeros(size, np.int64)
        self.memory.add(larger.nbytes)
        old = self.slots
        self.functions["rehash"](old, old.shape[0], larger, size // REGIONS)
        self.slots = larger
        self.memory.add(-old.nbytes)

    def fill(self, fingerprints: NDArray[np.int64]) -> None:
        """Insert these fingerprints, and make room for as many again."""
        size = TABLE_MIN
        while fingerprints.shape[0] > size * LOAD:
            size *= 2
        self.resize(max(size, self.slots.shape[0]))
        self.functions["rehash"](fingerprints, fingerprints.shape[0], self.slots, self.slots.shape[0] // REGIONS)


class Segment:
    """Some rows: in memory, or in a file."""

    def __init__(self, rows: NDArray[np.int64]) -> None:
        self.rows: NDArray[np.int64] | None = rows
        self.count = 0
        self.path: Path | None = None


class Frontier:
    """The rows of one level, in order, as segments."""

    def __init__(self, memory: Memory, words: int) -> None:
        self.memory = memory
        self.words = words
        self.segments: deque[Segment] = deque()
        self.count = 0

    def room(self, rows: int) -> tuple[NDArray[np.int64], int]:
        """An array and the first of `rows` free rows in it; they count as taken."""
        if not rows:
            return np.empty((0, self.words), np.int64), 0
        last = self.segments[-1] if self.segments else None
        if last is None or last.rows is None or last.count + rows > last.rows.shape[0]:
            size = max(rows, min(ROWS_MAX, 2 * self.count, (self.memory.bound // 16) // (8 * self.words)), 16)
            last = Segment(np.empty((size, self.words), np.int64))
            assert last.rows is not None
            self.memory.add(last.rows.nbytes)
            self.segments.append(last)
        first = last.count
        last.count += rows
        self.count += rows
        assert last.rows is not None
        return last.rows, first

    def spill(self) -> bool:
        """Move the oldest segment that is in memory, and neither being read nor written, to a file."""
        for segment in list(self.segments)[1:-1]:
            if segment.rows is not None:
                (segment.path,) = self.memory.write(segment.rows[: segment.count])
                self.memory.add(-segment.rows.nbytes)
                segment.rows = None
                return True
        return False

    def filled_rows(self) -> Iterator[NDArray[np.int64]]:
        """The rows that are taken, a segment at a time."""
        for segment in self.segments:
            if segment.rows is not None:
                yield segment.rows[: segment.count]
            elif segment.path is not None:
                yield np.fromfile(segment.path, np.int64).reshape(-1, self.words)

    def fill(self, rows: NDArray[np.int64], counts: Iterable[int]) -> None:
        """Take these rows, in segments of so many."""
        at = 0
        for count in counts:
            space, start = self.room(count)
            space[start : start + count] = rows[at : at + count]
            at += count

    def first(self) -> tuple[NDArray[np.int64], int]:
        """Rows and their number of the first segment, read back if need be."""
        segment = self.segments[0]
        if segment.rows is None:
            assert segment.path is not None
            segment.rows = np.fromfile(segment.path, np.int64).reshape(-1, self.words)
            self.memory.add(segment.rows.nbytes)
            segment.path.unlink()
        return segment.rows, segment.count

    def drop(self) -> None:
        """Forget the first segment."""
        segment = self.segments.popleft()
        if segment.rows is not None:
            self.memory.add(-segment.rows.nbytes)


class Log:
    """Per state, by number, the number of the state it was reached from and the action instance."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.starts: list[int] = []
        self.parts: list[tuple[Any, Any]] = []
        self.filled = 0
        self.next_spill = 0

    def room(self, count: int) -> tuple[NDArray[np.uint32], NDArray[np.uint16], int]:
        """Two arrays and the first of `count` free places in them; they count as taken."""
        if not count:
            return np.empty(0, np.uint32), np.empty(0, np.uint16), 0
        size = self.parts[-1][0].shape[0] if self.parts else 0
        start = self.starts[-1] if self.starts else 0
        if not self.parts or self.filled - start + count > size:
            size = max(count, min(LOG_MAX, self.filled, self.memory.bound // 96), 64)
            self.parts.append((np.empty(size, np.uint32), np.empty(size, np.uint16)))
            self.starts.append(self.filled)
            self.memory.add(6 * size)
            start = self.filled
        first = self.filled - start
        self.filled += count
        parents, insts = self.parts[-1]
        return parents, insts, first

    def spill(self) -> bool:
        """Move the oldest full part that is in memory to files."""
        if self.next_spill + 1 >= len(self.parts):
            return False
        parents, insts = self.parts[self.next_spill]
        paths = self.memory.write(parents, insts)
        self.memory.add(-6 * parents.shape[0])
        self.parts[self.next_spill] = (np.memmap(paths[0], np.uint32, "r"), np.memmap(paths[1], np.uint16, "r"))
        self.next_spill += 1
        return True

    def filled_parts(self, number: int) -> Iterator[NDArray[Any]]:
        """The parents (0) or action instances (1) that are taken, a part at a time."""
        ends = [*self.starts[1:], self.filled]
        for part, start, end in zip(self.parts, self.starts, ends, strict=True):
            yield part[number][: end - start]

    def path(self, state: int) -> list[int]:
        """Action instances from the initial state to a state."""
        found: list[int] = []
        while state:
            part = bisect.bisect_right(self.starts, state) - 1
            parents, insts = self.parts[part]
            at = state - self.starts[part]
            found.append(int(insts[at]))
            state = int(parents[at])
        return found[::-1]
