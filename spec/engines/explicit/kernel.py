"""The model-independent inner loops: fingerprint table, packing and hashing of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

_OPTIONS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


@njit(**_OPTIONS)
def insert(table: Any, fingerprint: Any) -> bool:
    """Put a fingerprint into the open-addressing table (0 = free); True if it was not there."""
    if fingerprint == np.uint64(0):
        fingerprint = np.uint64(1)
    mask = np.uint64(table.shape[0] - 1)
    i = fingerprint & mask
    while True:
        entry = table[i]
        if entry == np.uint64(0):
            table[i] = fingerprint
            return True
        if entry == fingerprint:
            return False
        i = (i + np.uint64(1)) & mask


@njit(**_OPTIONS)
def fail(ctl: Any, m: int, site: int, instance: int) -> int:
    """An action instance left a declared range: note where; the successors before it stand."""
    ctl[0] = m
    ctl[2] = site
    ctl[3] = instance
    return 0


@njit(**_OPTIONS)
def rehash(old: Any, new: Any) -> None:
    """Move all fingerprints to a larger table."""
    for entry in old:
        if entry != np.uint64(0):
            insert(new, entry)


@njit(**_OPTIONS)
def unpack(rows: Any, at: int, s: Any, t: Any, word: Any, shift: Any, mask: Any) -> None:
    """Packed row `at` → working row s, and t as its copy."""
    for cell in range(word.shape[0]):
        value = np.int64((rows[at, word[cell]] >> shift[cell]) & mask[cell])
        s[cell] = value
        t[cell] = value


@njit(**_OPTIONS)
def pack(s: Any, rows: Any, at: int, word: Any, shift: Any, zobrist: Any) -> None:
    """Working row s → packed row `at`, with its fingerprint in word 0."""
    rows[at, :] = np.uint64(0)
    for cell in range(word.shape[0]):
        rows[at, word[cell]] |= np.uint64(s[cell]) << shift[cell]
        rows[at, 0] ^= zobrist[cell, s[cell]]


@njit(**_OPTIONS)
def hash_writes(
    fingerprint: Any, s: Any, cells: Any, values: Any, ends: Any, n: int, zobrist: Any, hashes: Any
) -> None:
    """Fingerprints of the n successors whose writes are listed."""
    begin = 0
    for j in range(n):
        h = fingerprint
        for k in range(begin, ends[j]):
            cell = cells[k]
            h ^= zobrist[cell, s[cell]] ^ zobrist[cell, values[k]]
        hashes[j] = h
        begin = ends[j]


@njit(**_OPTIONS)
def apply(t: Any, cells: Any, values: Any, begin: int, end: int) -> None:
    """Write a successor's cells into t."""
    for k in range(begin, end):
        t[cells[k]] = values[k]


@njit(**_OPTIONS)
def undo(t: Any, s: Any, cells: Any, begin: int, end: int) -> None:
    """Make t the copy of s again."""
    for k in range(begin, end):
        t[cells[k]] = s[cells[k]]


@njit(**_OPTIONS)
def store(
    rows: Any, at: int, s: Any, cells: Any, values: Any, begin: int, end: int, fingerprint: Any,
    following: Any, to: int, word: Any, shift: Any,
) -> None:  # fmt: skip
    """Packed row of a successor: the parent's with the written fields exchanged."""
    for w in range(1, rows.shape[1]):
        following[to, w] = rows[at, w]
    following[to, 0] = fingerprint
    for k in range(begin, end):
        cell = cells[k]
        following[to, word[cell]] ^= np.uint64(s[cell] ^ values[k]) << shift[cell]
