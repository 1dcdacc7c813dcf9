"""Columns of Arrow to words, in the subset of Python that `llvm.machine` compiles.

Values that are not there are `null`. `valid` is the address of the bits that say which are there (0: all are), `first`
the first element of the column in its buffers, which begin at multiples of eight bytes.
"""

# ruff: noqa: F821 - int64 is built in
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, I64P, U32P, load, lshr


def is_valid(valid: I64, n: I64) -> I64:
    return lshr(load(valid + 8 * lshr(n, 6)), n & 63) & 1


def numbers(values: I64P, valid: I64, first: I64, count: I64, out: I64P, least: I64, greatest: I64) -> I64:
    """Numbers to words; -1 if all are least .. greatest, else some other number."""
    null = -9223372036854775808
    if valid == 0:
        return shown(values, first, 0, count, out, least, greatest)
    n = 0
    while n < count:
        bits = lshr(load(valid + 8 * lshr(first + n, 6)), (first + n) & 63)
        end = min(n + 64 - ((first + n) & 63), count)
        every = lshr(-1, (first + n) & 63)
        if bits == 0:
            for k in range(n, end):
                out[k] = null
        elif bits == every and end - n == 64 - ((first + n) & 63):
            if shown(values, first, n, end, out, least, greatest) >= 0:
                return n
        else:
            for k in range(n, end):
                word = null
                if (lshr(bits, k - n) & 1) == 1:
                    word = values[first + k]
                    if word < least or word > greatest or word == null:
                        return k
                out[k] = word
        n = end
    return -1


def shown(values: I64P, first: I64, n: I64, end: I64, out: I64P, least: I64, greatest: I64) -> I64:
    """The same for numbers n .. end - 1, all of which are there."""
    null = -9223372036854775808
    wrong = 0
    for k in range(n, end):
        word = values[first + k]
        out[k] = word
        wrong += int64(word < least or word > greatest or word == null)
    return wrong - 1


def coded(indices: U32P, valid: I64, first: I64, count: I64, codes: I64P, out: I64P) -> I64:
    """Places in a dictionary to the codes of its strings."""
    null = -9223372036854775808
    if valid == 0:
        for n in range(count):
            out[n] = codes[indices[first + n]]
        return 0
    for n in range(count):
        word = null
        if is_valid(valid, first + n) == 1:
            word = codes[indices[first + n]]
        out[n] = word
    return 0
