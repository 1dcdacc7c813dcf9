"""Text, and strings by code, in the subset of Python that `llvm.machine` compiles: the kernel of all that reads text.

Texts are given by their address; eight bytes after their end must be there to be read.
"""

# ruff: noqa: SIM102 - connectives look at all their operands
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, I64P, Record, load, lshr, store


class Texts(Record):
    """Strings by code: `slots` is a table of code + 1 by hash, of mask + 1 places; string n is
    bytes[starts[n] .. starts[n + 1] - 1]; `used` is their number; of `most` and of `room` bytes there is place.
    """

    slots: I64P
    mask: I64
    starts: I64P
    bytes: I64
    used: I64P
    most: I64
    room: I64


def byte(at: I64) -> I64:
    return load(at) & 255


def hashed(at: I64, size: I64) -> I64:
    h = size * 1099511628211
    left = size
    while left >= 8:
        h = (h ^ load(at)) * 7046029254386353131
        h = h ^ lshr(h, 32)
        at += 8
        left -= 8
    if left > 0:
        h = (h ^ (load(at) & ((1 << (8 * left)) - 1))) * 7046029254386353131
        h = h ^ lshr(h, 32)
    return h ^ lshr(h, 29)


def same(a: I64, b: I64, size: I64) -> I64:
    while size >= 8:
        if load(a) != load(b):
            return 0
        a += 8
        b += 8
        size -= 8
    if size > 0 and ((load(a) ^ load(b)) & ((1 << (8 * size)) - 1)) != 0:
        return 0
    return 1


def intern(texts: Texts, begin: I64, size: I64) -> I64:
    """The code of a string; -1 where there is no more room."""
    at = hashed(begin, size) & texts.mask
    while True:
        code = texts.slots[at] - 1
        if code < 0:
            break
        start = texts.starts[code]
        if texts.starts[code + 1] - start == size:
            if same(texts.bytes + start, begin, size) == 1:
                return code
        at = (at + 1) & texts.mask
    code = texts.used[0]
    start = texts.starts[code]
    if code >= texts.most or start + size + 8 > texts.room:
        return -1
    k = 0
    while k < size:
        store(texts.bytes + start + k, load(begin + k))
        k += 8
    texts.starts[code + 1] = start + size
    texts.used[0] = code + 1
    texts.slots[at] = code + 1
    return code


def intern_all(texts: Texts, text: I64, offsets: I64P, first: I64, count: I64, codes: I64P) -> I64:
    """Codes of strings first .. count - 1, which lie between offsets; how many were done before there was no room."""
    for n in range(first, count):
        code = intern(texts, text + offsets[n], offsets[n + 1] - offsets[n])
        if code < 0:
            return n
        codes[n] = code
    return count


def find_all(texts: Texts, text: I64, offsets: I64P, count: I64, codes: I64P) -> I64:
    """Codes of strings, -1 of those that are not there."""
    for n in range(count):
        size = offsets[n + 1] - offsets[n]
        at = hashed(text + offsets[n], size) & texts.mask
        code = texts.slots[at] - 1
        while code >= 0:
            start = texts.starts[code]
            if texts.starts[code + 1] - start == size:
                if same(texts.bytes + start, text + offsets[n], size) == 1:
                    break
            at = (at + 1) & texts.mask
            code = texts.slots[at] - 1
        codes[n] = code
    return 0


def hash_all(text: I64, offsets: I64P, count: I64, hashes: I64P) -> I64:
    """Hashes of strings: equal ones have equal hashes."""
    for n in range(count):
        hashes[n] = hashed(text + offsets[n], offsets[n + 1] - offsets[n])
    return 0


def recode(words: I64P, count: I64, codes: I64P) -> I64:
    """Other codes in a column."""
    null = -9223372036854775808
    for n in range(count):
        if words[n] != null:
            words[n] = codes[words[n]]
    return 0
