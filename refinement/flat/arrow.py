"""Columns of Arrow to words, in the subset of Python that `llvm.machine` compiles.

Values that are not there are `null`. `valid` is the address of the bits that say which are there (0: all are), `first`
the first element of the column in its buffers, which begin at multiples of eight bytes.
"""

# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, I64P, U32P, load, lshr


def is_valid(valid: I64, n: I64) -> I64:
    return lshr(load(valid + 8 * lshr(n, 6)), n & 63) & 1


def numbers(values: I64P, valid: I64, first: I64, count: I64, out: I64P, least: I64, greatest: I64) -> I64:
    """Numbers to words; the first that is not least .. greatest, -1 if all are."""
    null = -9223372036854775808
    if valid == 0:
        for n in range(count):
            word = values[first + n]
            out[n] = word
            if word < least or word > greatest or word == null:
                return n
        return -1
    for n in range(count):
        word = null
        if is_valid(valid, first + n) == 1:
            word = values[first + n]
            if word < least or word > greatest or word == null:
                return n
        out[n] = word
    return -1


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
