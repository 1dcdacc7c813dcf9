"""The flat memory of a replay, in the subset of Python that `llvm.machine` compiles: windows of 64-bit words.

`M` is the address of the run's words: 0 what went wrong (1 a cell that was let go, 2 no memory), 1 the last chunk, 2
the next free address, 3 its end, 4 bytes taken, 5 bytes that may be taken, 6 and 7 the caller's, 8 how many elements a
window may hold before it lets go of its first ones (0: any number), 9 the first of the small rows that were let go with
them, each of which begins with the address of the next; then numbers, cells and headers as the layout says. A *window*
holds the elements base .. base + size - 1 of a row, `w` words each; its header has four words: address, base, size, and
the floor below which elements were let go. Elements of four words are headers of other windows, and no others.
"""

# ruff: noqa: F821, N803, SIM102 - calloc and free are the C library's; connectives look at all their operands
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, load, lshr, store


def allocate(M: I64, words: I64) -> I64:
    """The address of so many words that are 0; 0 if there is no memory."""
    kept = load(M + 72)
    if words == 8 and kept != 0:
        store(M + 72, load(kept))
        for k in range(8):
            store(kept + 8 * k, 0)
        return kept
    size = words * 8
    at = load(M + 16)
    if at + size > load(M + 24):
        want = max(size + 16, 262144)
        if load(M + 32) + want > load(M + 40):
            return 0
        chunk = calloc(want, 1)
        if chunk == 0:
            return 0
        store(chunk, load(M + 8))
        store(M + 8, chunk)
        store(M + 24, chunk + want)
        store(M + 32, load(M + 32) + want)
        at = chunk + 16
    store(M + 16, at + size)
    return at


def release(M: I64) -> I64:
    """Give all chunks back."""
    chunk = load(M + 8)
    while chunk != 0:
        following = load(chunk)
        free(chunk)
        chunk = following
    store(M + 8, 0)
    store(M + 16, 0)
    store(M + 24, 0)
    store(M + 32, 0)
    store(M + 72, 0)
    return 0


def grow(M: I64, h: I64, i: I64, w: I64, init: I64) -> I64:
    """Let the window hold element i; its address, or 0."""
    floor = load(h + 24)
    if i < floor or i < 0:
        store(M, 1)
        return 0
    old = load(h)
    base = load(h + 8)
    size = load(h + 16)
    most = load(M + 64)
    if most != 0 and size >= most and i >= base + size:
        return slide(M, h, i, w, init)
    low = i - (i & 7)
    room = 8
    if size != 0:
        low = max(min(base, low), floor)
        room = max(base + size, i + 1) - low
        if room > size:
            room = max(room, 2 * size)
    if room > 268435456:
        store(M, 2)
        return 0
    fresh = allocate(M, room * w)
    if fresh == 0:
        store(M, 2)
        return 0
    if init != 0:
        for k in range(room * w):
            store(fresh + 8 * k, init)
    for k in range(max(0, low - base) * w, size * w):
        store(fresh + 8 * ((base - low) * w + k), load(old + 8 * k))
    store(h, fresh)
    store(h + 8, low)
    store(h + 16, room)
    return fresh + (i - low) * w * 8


def make(M: I64, h: I64, i: I64, w: I64, init: I64) -> I64:
    """The address of element i, which the window holds from now on; 0 if that cannot be."""
    k = i - load(h + 8)
    if k >= 0 and k < load(h + 16):
        return load(h) + k * w * 8
    return grow(M, h, i, w, init)


def missed(M: I64, h: I64, i: I64) -> I64:
    """The window does not hold element i: it was let go, or never written."""
    if i >= 0 and i < load(h + 24):
        store(M, 1)
    return 0


def find(M: I64, h: I64, i: I64, w: I64) -> I64:
    """The address of element i; 0 if the window does not hold it."""
    k = i - load(h + 8)
    if k >= 0 and k < load(h + 16):
        return load(h) + k * w * 8
    return missed(M, h, i)


def cell_of(at: I64, base: I64, size: I64, place: I64) -> I64:
    """The cell at a place, of so many that lie at an address, the first of them at `base`; 0 where there is none."""
    k = place - base
    if k < 0 or k >= size:
        return 0
    return load(at + 8 * k)


def clear(M: I64, h: I64, init: I64, depth: I64) -> I64:
    """All cells of a row, or of the rows of a window of rows, are as at first."""
    at = load(h)
    for k in range(load(h + 16)):
        if depth > 1:
            clear(M, at + 32 * k, init, depth - 1)
        else:
            store(at + 8 * k, init)
    return 0


def slide(M: I64, h: I64, i: I64, w: I64, init: I64) -> I64:
    """Let go of elements at the window's beginning, so that element i is in its middle; the address of that."""
    at = load(h)
    size = load(h + 16)
    low = i - lshr(size, 1)
    low = low - (low & 7)
    keep = max(load(h + 8) + size - low, 0)
    if w == 4:
        for n in range(size - keep):
            row = load(at + 32 * n)
            if row != 0:
                store(row, load(M + 72))
                store(M + 72, row)
    for n in range(keep * w):
        store(at + 8 * n, load(at + 8 * ((size - keep) * w + n)))
    for n in range(keep * w, size * w):
        store(at + 8 * n, init)
    store(h + 8, low)
    store(h + 24, low)
    return at + (i - low) * w * 8


def copy(M: I64, to: I64, of: I64, init: I64) -> I64:
    """Make the cells of a row those of another one (0: one that was never written); 0 if that cannot be."""
    clear(M, to, init, 1)
    if of == 0:
        return 1
    if load(of + 24) > 0:
        store(M, 1)
        return 0
    for k in range(load(of + 16)):
        value = load(load(of) + 8 * k)
        if value != init:
            at = make(M, to, load(of + 8) + k, 1, init)
            if at == 0:
                return 0
            store(at, value)
    return 1


def first_clear(M: I64, h: I64, top: I64, base: I64) -> I64:
    """The smallest op o in base+1 .. top+1 such that no op from o to top is set in the row."""
    while top > base:
        at = find(M, h, top, 1)
        if at != 0:
            if load(at) != 0:
                break
        top -= 1
    return top + 1


def mask(M: I64, h: I64) -> I64:
    """Bit f-1 for each f from 1 to 63 whose cell is not 0."""
    total = 0
    for f in range(1, 64):
        at = find(M, h, f, 1)
        if at != 0:
            if load(at) != 0:
                total = total | (1 << (f - 1))
    return total
