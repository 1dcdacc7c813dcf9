"""Arrays that grow by doubling inside a memory bound."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spec.engines.explicit import kernel

LOAD, LOAD_LAST = 0.5, 0.85
"""Fill of the fingerprint table at which it doubles, and up to which it is used when it can no longer double."""


def available_bytes() -> int:
    """Memory that can be had without swapping (Linux: MemAvailable, and the limit of the control group)."""
    try:
        with open("/proc/meminfo") as lines:
            found = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        found = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        with open("/sys/fs/cgroup/memory.max") as limit, open("/sys/fs/cgroup/memory.current") as used:
            text = limit.read().strip()
            if text != "max":
                found = min(found, max(0, int(text) - int(used.read())))
    except (OSError, ValueError):
        pass
    return found


class Store:
    """All that the search keeps: fingerprints, how each state was reached, this level's rows and the next one's."""

    def __init__(self, row_words: int, instances: int, bound: int) -> None:
        self.bound = bound
        self.row_words = row_words
        self.table: NDArray[np.uint64] = np.zeros(1 << 12, np.uint64)
        self.parents: NDArray[np.uint32] = np.zeros(1 << 11, np.uint32)
        kind: Any = np.uint16 if instances < 1 << 16 else np.uint32
        self.insts: NDArray[Any] = np.zeros(1 << 11, kind)
        rows = max(64, 2 * instances)
        self.level: NDArray[np.uint64] = np.zeros((rows, row_words), np.uint64)
        self.following: NDArray[np.uint64] = np.zeros((rows, row_words), np.uint64)
        self.peak = self.used
        self._tight = False

    @property
    def used(self) -> int:
        """Bytes held now."""
        arrays: tuple[NDArray[Any], ...] = (self.table, self.parents, self.insts, self.level, self.following)
        return sum(a.nbytes for a in arrays)

    @property
    def capacity(self) -> int:
        """Number of distinct states that fit without growing."""
        return min(int(self.table.shape[0] * (LOAD_LAST if self._tight else LOAD)), int(self.parents.shape[0]))

    def _fits(self, extra: int) -> bool:
        if self.used + extra > self.bound:
            return False
        self.peak = max(self.peak, self.used + extra)
        return True

    def grow(self, distinct: int, waiting: int, branching: int) -> bool:
        """Make room for the successors of one more state; False if that would pass the memory bound."""
        if distinct + branching > self.parents.shape[0]:
            size = _larger(self.parents.shape[0], distinct + branching)
            if distinct + branching >= 1 << 32 or not self._fits(size * (4 + self.insts.itemsize)):
                return False
            self.parents, self.insts = _copied(self.parents, size, distinct), _copied(self.insts, size, distinct)
        while distinct + branching > self.table.shape[0] * (LOAD_LAST if self._tight else LOAD):
            if self._tight:
                return False
            if not self._fits(2 * self.table.nbytes):
                self._tight = True
                continue
            larger = np.zeros(2 * self.table.shape[0], np.uint64)
            kernel.rehash(self.table, larger)
            self.table = larger
        if waiting + branching > self.following.shape[0]:
            size = _larger(self.following.shape[0], waiting + branching)
            if not self._fits(size * self.row_words * 8):
                return False
            self.following = _copied(self.following, size, waiting)
        return True

    def swap(self) -> None:
        """The next level becomes the current one; its old rows are reused."""
        self.level, self.following = self.following, self.level


def _larger(now: int, needed: int) -> int:
    return max(2 * now, needed) if now < 1 << 24 else max(now + now // 2, needed)


def _copied(old: NDArray[Any], size: int, filled: int) -> NDArray[Any]:
    new = np.empty((size, *old.shape[1:]), old.dtype)
    new[:filled] = old[:filled]
    return new
