"""Lines of JSON to columns of words, in the subset of Python that `llvm.machine` compiles.

Only plain lines are understood: one flat object of known keys, each once, whose values are whole numbers of 63 bits,
null, strings and lists of strings without escapes, of ASCII alone; each within what its column allows, and none missing
that is required. At anything else the reader of rows, which finds the words for it, takes over.
"""

# ruff: noqa: SIM102 - connectives look at all their operands
# mypy: ignore-errors

from __future__ import annotations

from viewproof.refinement.flat.text import Texts, byte, hashed, intern, same
from viewproof.spec.engines.llvm.machine import I64, I64P, Record, load


class Keys(Record):
    """The columns by name, as texts whose codes are places in a row. By place: `kinds` (0 number, 1 text, 2 texts),
    `least` and `greatest` of a number or code, `chosen` (0: any code; else where in `choices` the flags of codes up to
    `greatest` begin, + 1), `required`; `ends` says where the ends of lists lie; `after` is the key that came next last
    time.
    """

    slots: I64P
    mask: I64
    starts: I64P
    bytes: I64
    kinds: I64P
    least: I64P
    greatest: I64P
    chosen: I64P
    choices: I64P
    required: I64P
    needed: I64
    ends: I64P
    after: I64P
    stamps: I64P


class Rows(Record):
    """`words` holds a word per place and row, `rows` for each place; lists are two, first and end in `items`."""

    words: I64P
    rows: I64
    items: I64P
    items_most: I64


def place_of(keys: Keys, begin: I64, size: I64, guess: I64) -> I64:
    """The place of the column of that name, `guess` if it is that; -1 if there is none."""
    start = keys.starts[guess]
    if keys.starts[guess + 1] - start == size:
        if same(keys.bytes + start, begin, size) == 1:
            return guess
    at = hashed(begin, size) & keys.mask
    while True:
        code = keys.slots[at] - 1
        if code < 0:
            return -1
        start = keys.starts[code]
        if keys.starts[code + 1] - start == size:
            if same(keys.bytes + start, begin, size) == 1:
                return code
        at = (at + 1) & keys.mask


def string_end(at: I64) -> I64:
    """Where a string that begins at `at` ends; -1 if it is not plain. A line ends with a byte that no string has."""
    while True:
        x = load(at)
        quotes = x ^ 2459565876494606882
        slashes = x ^ 6655295901103053916
        low = 72340172838076673
        odd = (
            ((quotes - low) & (quotes ^ -1))
            | ((slashes - low) & (slashes ^ -1))
            | (x - 2314885530818453536)
            | x
            | (x + low)
        )
        if (odd & -9187201950435737472) != 0:
            break
        at += 8
    while True:
        c = byte(at)
        if c == 34:
            return at
        if c < 32 or c > 126 or c == 92:
            return -1
        at += 1


def spaces(at: I64) -> I64:
    while byte(at) == 32:
        at += 1
    return at


def allowed(keys: Keys, place: I64, code: I64) -> I64:
    """May the column have this number, or text?"""
    if code < keys.least[place] or code > keys.greatest[place]:
        return 0
    if keys.chosen[place] != 0 and keys.kinds[place] == 1:
        return keys.choices[keys.chosen[place] - 1 + code]
    return 1


def number_in(at: I64, place: I64, row: I64, keys: Keys, rows: Rows) -> I64:
    """A whole number into its cell; where it ends, or -2 if it is not plain or not allowed."""
    sign = 1
    if byte(at) == 45:
        sign = -1
        at += 1
    first = at
    number = 0
    d = byte(at) - 48
    while d >= 0 and d <= 9:
        number = number * 10 + d
        at += 1
        d = byte(at) - 48
    size = at - first
    if size == 0 or size > 19 or number < 0 or (byte(first) == 48 and (size > 1 or sign < 0)):
        return -2
    number = number * sign
    if allowed(keys, place, number) == 0:
        return -2
    rows.words[place * rows.rows + row] = number
    return at


def text_in(at: I64, place: I64, row: I64, texts: Texts, keys: Keys, rows: Rows) -> I64:
    """A string's code into its cell; where it ends, -1 if there is no more room, -2 if it is not plain or allowed."""
    if byte(at) != 34:
        return -2
    stop = string_end(at + 1)
    if stop < 0:
        return -2
    code = intern(texts, at + 1, stop - at - 1)
    if code < 0:
        return -1
    if allowed(keys, place, code) == 0:
        return -2
    rows.words[place * rows.rows + row] = code
    return stop + 1


def texts_in(at: I64, place: I64, row: I64, texts: Texts, keys: Keys, rows: Rows, out: I64P) -> I64:
    """A list of strings into the items, out[2] of which are there; the result is that of `text_in`."""
    if byte(at) != 91:
        return -2
    items = out[2]
    rows.words[place * rows.rows + row] = items
    at = spaces(at + 1)
    another = 1
    if byte(at) == 93:
        another = 0
        at += 1
    while another == 1:
        if byte(at) != 34:
            return -2
        stop = string_end(at + 1)
        if stop < 0:
            return -2
        code = intern(texts, at + 1, stop - at - 1)
        if code < 0 or items >= rows.items_most:
            return -1
        rows.items[items] = code
        items += 1
        at = spaces(stop + 1)
        if byte(at) == 44:
            at = spaces(at + 1)
        elif byte(at) == 93:
            another = 0
            at += 1
        else:
            return -2
    rows.words[keys.ends[place] * rows.rows + row] = items
    out[2] = items
    return at


def key_at(at: I64, stamp: I64, keys: Keys, out: I64P) -> I64:
    """The place of the key at `at`, into out[4]; where its value begins, or -2: not plain, unknown, or there twice."""
    if byte(at) != 34:
        return -2
    stop = string_end(at + 1)
    if stop < 0:
        return -2
    place = place_of(keys, at + 1, stop - at - 1, keys.after[out[4]])
    if place < 0:
        return -2
    if keys.stamps[place] == stamp:
        return -2
    keys.stamps[place] = stamp
    keys.after[out[4]] = place
    out[4] = place
    at = spaces(stop + 1)
    if byte(at) != 58:
        return -2
    return spaces(at + 1)


def line(at: I64, row: I64, texts: Texts, keys: Keys, rows: Rows, out: I64P) -> I64:
    """One line to its row; where the next begins, or -1, -2 as in `text_in`."""
    stamp = out[3] + 1
    out[3] = stamp
    needed = 0
    if row >= rows.rows or byte(at) != 123:
        return -2
    at = spaces(at + 1)
    more = 1
    while more == 1:
        at = key_at(at, stamp, keys, out)
        if at < 0:
            return at
        place = out[4]
        if byte(at) == 110:
            if (load(at) & 4294967295) != 1819047278:
                return -2
            at += 4
        else:
            if keys.kinds[place] == 0:
                at = number_in(at, place, row, keys, rows)
                needed += keys.required[place]
            elif keys.kinds[place] == 1:
                at = text_in(at, place, row, texts, keys, rows)
                needed += keys.required[place]
            else:
                at = texts_in(at, place, row, texts, keys, rows, out)
            if at < 0:
                return at
        at = spaces(at)
        if byte(at) == 44:
            at = spaces(at + 1)
        elif byte(at) == 125:
            more = 0
            at += 1
        else:
            return -2
    if byte(at) == 13:
        at += 1
    if byte(at) != 10 or needed != keys.needed:
        return -2
    return at + 1


def lines(begin: I64, end: I64, row: I64, texts: Texts, keys: Keys, rows: Rows, out: I64P) -> I64:
    """Lines to rows from `row` on. `out`: 0 the line that was begun last, 1 its row, 2 items so far, 3 stamps so far,
    4 the place of the last key. Returns 0 at the end; 1 where texts or items need more room, 2 at a line that is not
    plain.
    """
    at = begin
    out[4] = 0
    while at < end:
        items = out[2]
        out[0] = at
        out[1] = row
        at = line(at, row, texts, keys, rows, out)
        if at < 0:
            out[2] = items
            return -at
        row += 1
        out[1] = row
    return 0
