"""Message headers to rows of words, in the subset of Python that `llvm.machine` compiles; for `word_headers`.

`stores` are dictionaries of strings (`flat.text.Texts`), seven words each: all texts, names of headers, commands, then
those of `NAMED`. A span is two addresses. Text is read up to eight bytes beyond its end.
"""

# mypy: ignore-errors

from __future__ import annotations

from viewproof.refinement.flat.text import byte, intern, same
from viewproof.spec.engines.llvm.machine import I64, I64P, Record, load, store


class Tables(Record):
    """`shapes`: of each name of a header its first field, how many (-1: not plain), and which one is the command;
    `fields`: of each the text before its value: where it lies, length; `literals`; `plan_of`: of each name and command
    the plan + 1; `plans`, 16 words each: entries (first, end), unused fields (first, end), code of the command, kind,
    the fields checksum, client, operation, size, context, request, request_checksum (-1: none), is it a reply, bytes of
    a header; `entries`: place, field, store (0: a number); `unused`: fields; `places` of columns; `known`: how many
    names have a shape; `buffer`: room for a text.
    """

    shapes: I64P
    fields: I64P
    literals: I64
    plan_of: I64P
    plans: I64P
    entries: I64P
    unused: I64P
    places: I64P
    known: I64
    buffer: I64


def kept_in(stores: I64, which: I64, begin: I64, size: I64) -> I64:
    """The code of a string in one of the dictionaries; -1 where that has no more room."""
    at = stores + 56 * which
    return intern(
        load(at), load(at + 8), load(at + 16), load(at + 24), load(at + 32), load(at + 40), load(at + 48), begin, size
    )


def is_none(at: I64, end: I64) -> I64:
    """Is that a name of zeros, or "null"?"""
    while at < end and byte(at) == 48:
        at += 1
    while end > at and byte(end - 1) == 48:
        end -= 1
    if at == end:
        return 1
    return 1 if end - at == 4 and (load(at) & 4294967295) == 1819047278 else 0


def named(stores: I64, which: I64, begin: I64, end: I64) -> I64:
    """The number of a name, 0 if it is none; -1 where there is no more room. Checksums are numbered from 2 on."""
    if is_none(begin, end) == 1:
        return 0
    code = kept_in(stores, which, begin, end - begin)
    if code < 0:
        return -1
    return code + 2 if which == 3 else code + 1


def number(at: I64, end: I64) -> I64:
    """A number; the least word if it is none, -2 if it may be one that is too large."""
    value = 0
    if end - at > 18:
        return -2
    while at < end:
        c = byte(at)
        if c > 127:
            return -2
        if c < 48 or c > 57:
            return -9223372036854775808
        value = value * 10 + c - 48
        at += 1
    return value


def put_text(to: I64, at: I64, end: I64) -> I64:
    """Copy a text; where the copy ends."""
    while at < end:
        store(to, load(at))
        step = min(8, end - at)
        at += step
        to += step
    return to


def spans_of(at: I64, end: I64, shape: I64, tables: Tables, spans: I64) -> I64:
    """Where the values of all fields lie; 1 if the header has that shape."""
    first = tables.shapes[3 * shape]
    for k in range(tables.shapes[3 * shape + 1]):
        size = tables.fields[2 * (first + k) + 1]
        if end - at < size:
            return 0
        if same(at, tables.literals + tables.fields[2 * (first + k)], size) == 0:
            return 0
        at += size
        begin = at
        while at < end and byte(at) != 44 and byte(at) != 32:
            at += 1
        if at == begin:
            return 0
        store(spans + 16 * k, begin)
        store(spans + 16 * k + 8, at)
    return 1 if end - at == 2 and (load(at) & 65535) == 32032 else 0


def field_named(stores: I64, which: I64, spans: I64, field: I64) -> I64:
    """The number of what a field names; 0 if there is no such field."""
    if field < 0:
        return 0
    return named(stores, which, load(spans + 16 * field), load(spans + 16 * field + 8))


def content(at: I64, end: I64, spans: I64, field: I64, stores: I64, buffer: I64) -> I64:
    """The number of the header without its checksum, at its first place."""
    if field < 0:
        return named(stores, 4, at, end)
    begin = load(spans + 16 * field)
    size = load(spans + 16 * field + 8) - begin
    first = at
    while same(first, begin, size) == 0:
        first += 1
    to = put_text(put_text(buffer, at, first), first + size, end)
    return named(stores, 4, buffer, to)


def reply(at: I64, end: I64, plan: I64, tables: Tables, spans: I64, stores: I64) -> I64:
    """The number of what two copies of a reply share."""
    field = tables.plans[16 * plan + 10]
    begin = at
    stop = at
    if field >= 0:
        begin = load(spans + 16 * field)
        stop = load(spans + 16 * field + 8)
    while begin < stop and byte(begin) == 48:
        begin += 1
    while stop > begin and byte(stop - 1) == 48:
        stop -= 1
    if begin == stop:
        return named(stores, 8, at, end)
    to = put_text(tables.buffer, begin, stop)
    for k in range(3):
        field = tables.plans[16 * plan + (7 if k == 0 else 10 + k)]
        store(to, 32)
        to += 1
        if field >= 0:
            to = put_text(to, load(spans + 16 * field), load(spans + 16 * field + 8))
    return named(stores, 8, tables.buffer, to)


def ends_in_register(begin: I64, end: I64) -> I64:
    """Does an operation's name end in ".register"?"""
    if end - begin < 9:
        return 0
    return 1 if load(end - 9) == 7310594991672619566 and byte(end - 1) == 114 else 0


def fill(at: I64, end: I64, plan: I64, tables: Tables, spans: I64, stores: I64, out: I64) -> I64:
    """The columns of a header; 0, or -1 where there is no more room, or -2 where it is not plain."""
    base = 16 * plan
    for k in range(tables.plans[base], tables.plans[base + 1]):
        field = tables.entries[3 * k + 1]
        which = tables.entries[3 * k + 2]
        begin = load(spans + 16 * field)
        stop = load(spans + 16 * field + 8)
        value = number(begin, stop) if which == 0 else 0
        if which != 0:
            value = named(stores, which, begin, stop)
        if value == -1 or value == -2:
            return value
        store(out + 8 * tables.entries[3 * k], value)
    field = tables.plans[base + 9]
    size = -2
    if field >= 0:
        size = number(load(spans + 16 * field), load(spans + 16 * field + 8))
    width = tables.plans[base + 14]
    if size < width or size > 16777216:
        return -2
    rest = (size - width) % width
    whole = 0
    left = size - width - rest
    while left > 0:
        whole += 1
        left -= width
    unused = 0
    for k in range(tables.plans[base + 2], tables.plans[base + 3]):
        field = tables.unused[k]
        p = load(spans + 16 * field)
        while p < load(spans + 16 * field + 8):
            if byte(p) != 48:
                unused = 1
            p += 1
    operation = tables.plans[base + 8]
    register = 0
    if operation >= 0:
        register = ends_in_register(load(spans + 16 * operation), load(spans + 16 * operation + 8))
    a = content(at, end, spans, tables.plans[base + 6], stores, tables.buffer)
    b = field_named(stores, 3, spans, tables.plans[base + 6])
    c = field_named(stores, 5, spans, tables.plans[base + 7])
    d = field_named(stores, 7, spans, operation)
    e = 0
    if tables.plans[base + 13] == 1:
        e = reply(at, end, plan, tables, spans, stores)
        store(out + 8 * tables.places[10], e)
    if a < 0 or b < 0 or c < 0 or d < 0 or e < 0:
        return -1
    store(out + 8 * tables.places[1], a)
    store(out + 8 * tables.places[2], tables.plans[base + 4])
    store(out + 8 * tables.places[3], tables.plans[base + 5])
    store(out + 8 * tables.places[4], b)
    store(out + 8 * tables.places[5], c)
    store(out + 8 * tables.places[6], d)
    store(out + 8 * tables.places[7], register)
    store(out + 8 * tables.places[8], whole)
    store(out + 8 * tables.places[9], rest)
    store(out + 8 * tables.places[11], unused)
    return 0


def header(at: I64, end: I64, tables: Tables, spans: I64, stores: I64, out: I64) -> I64:
    """One header; as `fill`."""
    if end - at > 32768:
        return -2
    stop = at
    while stop < end and byte(stop) != 123:
        stop += 1
    shape = kept_in(stores, 1, at, stop - at)
    if shape < 0:
        return -1
    if shape >= tables.known:
        return -2
    if tables.shapes[3 * shape + 1] < 0:
        return -2
    if spans_of(at, end, shape, tables, spans) == 0:
        return -2
    field = tables.shapes[3 * shape + 2]
    begin = load(spans + 16 * field + 8)
    stop = begin
    while begin > load(spans + 16 * field) and byte(begin - 1) != 46:
        begin -= 1
    command = kept_in(stores, 2, begin, stop - begin)
    if command < 0:
        return -1
    if command >= 64:
        return -2
    plan = tables.plan_of[64 * shape + command] - 1
    if plan < 0:
        return -2
    return fill(at, end, plan, tables, spans, stores, out)


def headers_of(
    codes: I64P, first: I64, count: I64, tables: Tables, spans: I64, stores: I64, out: I64, row: I64, width: I64,
    done: I64P,
) -> I64:  # fmt: skip
    """Headers, of which the texts have these codes, to rows of `width` words from `row` on; a message's number is that
    of its row + 1. `done` is the first that was not done: -1 where there is no more room, -2 where it is not plain.
    """
    starts = load(stores + 16)
    bytes = load(stores + 24)
    for n in range(first, count):
        done[0] = n
        to = out + 8 * width * (row + n)
        for k in range(width):
            store(to + 8 * k, -9223372036854775808)
        begin = bytes + load(starts + 8 * codes[n])
        end = bytes + load(starts + 8 * codes[n] + 8)
        found = header(begin, end, tables, spans, stores, to)
        if found < 0:
            return found
        store(to, row + n + 1)
    done[0] = count
    return 0
