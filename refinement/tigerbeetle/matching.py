"""Lines of a log matched with a table, in the subset of Python that `llvm.machine` compiles; `parse` makes the tables.

Patterns are programs of operations of three words: what it is, and two numbers. Text is given by address; sixteen
bytes after its end must be there to be read.
"""

# ruff: noqa: SIM102 - connectives look at all their operands
# mypy: ignore-errors

from __future__ import annotations

from viewproof.refinement.flat.text import Texts, byte, intern, same
from viewproof.spec.engines.llvm.machine import I64, I64P, Record, load, lshr, store


class Program(Record):
    """The compiled table. `heads`: by hash two words of a line's beginning, its prefixes; `prefixes`: where it lies,
    length, subsystem; `words`: by hash a key of subsystem and word, its candidates; `others`: those of a subsystem for
    any word, and whether it is of the protocol; `candidates`: patterns; `patterns`: where its operations and fields
    begin, number of fields (-1: it gives no row); `ops`; `fields`: what each is.
    """

    heads: I64P
    prefixes: I64P
    words: I64P
    others: I64P
    candidates: I64P
    patterns: I64P
    ops: I64
    fields: I64P
    literals: I64


def line_end(at: I64) -> I64:
    """Where the line ends that begins at `at`."""
    while True:
        x = load(at) ^ 723401728380766730
        if ((x - 72340172838076673) & (x ^ -1) & -9187201950435737472) != 0:
            break
        at += 8
    while byte(at) != 10:
        at += 1
    return at


def beginnings(begin: I64, end: I64, marks: I64P, count: I64, literals: I64, out: I64P, most: I64) -> I64:
    """Lines that begin with a mark (of each: its first word, where it lies, its length): how many there are, at most
    `most` of them as mark and place, from the second word of `out` on; the first is the number of lines.
    """
    at = begin
    number = 0
    found = 0
    while at < end:
        word = load(at)
        for n in range(count):
            if marks[3 * n] == word:
                if same(at, literals + marks[3 * n + 1], marks[3 * n + 2]) == 1:
                    if found < most:
                        out[1 + 2 * found] = n
                        out[2 + 2 * found] = at - begin
                    found += 1
        at = line_end(at) + 1
        number += 1
    out[0] = number
    return found


def in_word(c: I64) -> I64:
    if (c >= 97 and c <= 122) or (c >= 48 and c <= 57) or (c >= 65 and c <= 90) or c == 95 or c >= 128:
        return 1
    return 0


def in_name(c: I64) -> I64:
    return 1 if c == 46 or c == 64 or c == 124 or in_word(c) == 1 else 0


def in_hex(c: I64) -> I64:
    return 1 if (c >= 48 and c <= 57) or (c >= 97 and c <= 102) else 0


def put(spans: I64, slot: I64, begin: I64, end: I64) -> I64:
    store(spans + 16 * slot, begin)
    store(spans + 16 * slot + 8, end)
    return 1


def number_end(at: I64) -> I64:
    """Where a number of 1 to 39 digits ends; 0 if there is none."""
    first = at
    while byte(at) >= 48 and byte(at) <= 57:
        at += 1
    return at if at > first and at - first < 40 else 0


def span_end(kind: I64, at: I64, end: I64) -> I64:
    """Where a field ends of which the text alone tells the end; 0 if it is none."""
    stop = at
    if kind == 2:
        return number_end(at)
    if kind == 3:
        while in_hex(byte(stop)) == 1:
            stop += 1
        return stop if stop > at else 0
    if kind == 5:
        c = byte(at) | 32
        return at + 1 if c >= 97 and c <= 122 else at
    if kind == 8:
        if at >= end:
            return 0
        stop += 1
        while (byte(stop) & 192) == 128:
            stop += 1
        return stop
    if kind == 9:
        while in_word(byte(stop)) == 1:
            stop += 1
        return end if stop > at and (load(stop) & 65535) == 8315 and end - stop >= 3 and byte(end - 1) == 125 else 0
    stop = at + 4 if (load(at) & 4294967295) == 1702195828 else 0
    return at + 5 if (load(at) & 1099511627775) == 435728179558 else stop


def matches(op: I64, literals: I64, at: I64, end: I64, spans: I64) -> I64:
    """Does the text from `at` to `end` match the operations from `op` on? The spans of fields are put down."""
    while True:
        kind = load(op)
        a = load(op + 8)
        b = load(op + 16)
        op += 24
        if kind == 0:
            return 1 if at == end else 0
        if kind == 1:
            if end - at < b:
                return 0
            if same(at, literals + a, b) == 0:
                return 0
            at += b
        elif kind == 4 or kind == 7:
            stop = end
            least = at
            if kind == 4:
                stop = at
                least = at + 1
                while in_name(byte(stop)) == 1:
                    stop += 1
            while stop >= least:
                if matches(op, literals, stop, end, spans) == 1:
                    return put(spans, a, at, stop)
                stop -= 1
            return 0
        elif kind == 6:
            if load(op) == 0:
                return 1
            while at <= end:
                if matches(op, literals, at, end, spans) == 1:
                    return 1
                at += 1
            return 0
        else:
            if b >= 1:
                while byte(at) == 32 or (b == 2 and byte(at) == 95):
                    at += 1
            stop = span_end(kind, at, end)
            if stop == 0:
                return 0
            put(spans, a, at, stop)
            at = stop


def is_odd(at: I64, end: I64) -> I64:
    """Does a line begin like "panic" or "thread", or may some of it be no text?"""
    c = byte(at)
    if c == 112 or c == 116:
        return 1
    while at < end:
        c = byte(at)
        if c < 9 or (c > 13 and c < 32) or c > 127:
            return 1
        at += 1
    return 0


def value_of(texts: Texts, kind: I64, begin: I64, end: I64) -> I64:
    """A number, 0 or 1 of a truth value, or of a text its code as -1 - code; -1 << 62 where there is no more room."""
    if kind == 10:
        return 1 if byte(begin) == 116 else 0
    if kind == 2 and end - begin <= 18:
        number = 0
        while begin < end:
            number = number * 10 + byte(begin) - 48
            begin += 1
        return number
    code = intern(texts, begin, end - begin)
    return -1 - code if code >= 0 else -4611686018427387904


def subsystem_at(at: I64, program: Program) -> I64:
    """The number of the prefix that the line has, -1 if none that is known."""
    a = load(at)
    b = load(at + 8)
    place = lshr((a ^ (b * 7046029254386353131)) * 7046029254386353131, 56)
    while program.heads[4 * place + 3] != 0:
        if program.heads[4 * place] == a and program.heads[4 * place + 1] == b:
            first = program.heads[4 * place + 2]
            for n in range(first, first + program.heads[4 * place + 3]):
                if same(at, program.literals + program.prefixes[3 * n], program.prefixes[3 * n + 1]) == 1:
                    return n
        place = (place + 1) & 255
    return -1


def word_key(at: I64, end: I64, subsystem: I64) -> I64:
    """What candidates are looked up by: the subsystem, and the first word after a node's number."""
    c = byte(at)
    begin = at
    if (c >= 48 and c <= 57) or (load(at) & 281474976710655) == 35435299239278:
        while begin < end and (load(begin) & 65535) != 8250:
            begin += 1
        begin = begin + 2 if begin < end else at
    key = subsystem
    c = byte(begin)
    while (c >= 97 and c <= 122) or c == 95:
        key = (key ^ c) * 1099511628211
        begin += 1
        c = byte(begin)
    return key


def candidates_at(key: I64, program: Program) -> I64:
    """Where the word's entry lies; -1 if it has none."""
    place = lshr(key * 7046029254386353131, 54)
    while program.words[3 * place + 2] != 0:
        if program.words[3 * place] == key:
            return place
        place = (place + 1) & 1023
    return -1


def explained(at: I64, end: I64, first: I64, count: I64, program: Program, spans: I64) -> I64:
    """The first of these candidates that the text matches; -1 if none does."""
    for n in range(first, first + count):
        pattern = program.candidates[n]
        if matches(program.ops + 8 * program.patterns[3 * pattern], program.literals, at, end, spans) == 1:
            return pattern
    return -1


def found_in(at: I64, stop: I64, program: Program, spans: I64) -> I64:
    """The pattern that explains a line; -1: none, and it is of the protocol; -2: of no subsystem, and odd; -3: else."""
    if byte(at) != 91:
        return -2 if is_odd(at, stop) == 1 else -3
    prefix = subsystem_at(at, program)
    if prefix < 0:
        return -3
    subsystem = program.prefixes[3 * prefix + 2]
    text = at + program.prefixes[3 * prefix + 1]
    place = candidates_at(word_key(text, stop, subsystem + 1), program)
    if place >= 0:
        found = explained(text, stop, program.words[3 * place + 1], program.words[3 * place + 2], program, spans)
        if found >= 0:
            return found
    found = explained(text, stop, program.others[3 * subsystem], program.others[3 * subsystem + 1], program, spans)
    if found < 0 and program.others[3 * subsystem + 2] == 0:
        return -3
    return found


def rows_of_lines(
    begin: I64, end: I64, program: Program, texts: Texts, out: I64P, width: I64, most: I64, counts: I64P, spans: I64,
    done: I64P,
) -> I64:  # fmt: skip
    """Lines to rows of `width` words: what was found, number of the line, where it begins, and its fields. `done`: 0
    the next line, 1 its number, 2 rows so far. Returns 0 at the end, 1 where texts need more room, 2 where there is no
    more place for rows.
    """
    at = begin
    number = done[1]
    row = 0
    while at < end:
        done[0] = at
        done[1] = number
        done[2] = row
        if row >= most:
            return 2
        stop = line_end(at)
        found = found_in(at, stop, program, spans)
        fields = 0
        if found >= 0:
            fields = program.patterns[3 * found + 2]
            first = program.patterns[3 * found + 1]
            for n in range(fields):
                value = value_of(texts, program.fields[first + n], load(spans + 16 * n), load(spans + 16 * n + 8))
                if value == -4611686018427387904:
                    return 1
                out[width * row + 3 + n] = value
            counts[found] = counts[found] + 1
        if found >= -2 and fields >= 0:
            out[width * row] = found
            out[width * row + 1] = number
            out[width * row + 2] = at
            row += 1
        at = stop + 1
        number += 1
    done[0] = at
    done[1] = number
    done[2] = row
    return 0


def unknown_texts(
    found: I64P, width: I64, count: I64, plans: I64P, entries: I64P, meanings: I64P, room: I64, out: I64P
) -> I64:  # fmt: skip
    """Texts of rows whose meaning is not known yet, as kind of field and code, each once; how many there are.

    `plans`: of each pattern its first entry and their number; `entries`: of each the field, the column (-1: it is a
    header), and the kind of field; `meanings`: of each kind and code the meaning + 1, 0 where it is not known.
    """
    missing = 0
    for row in range(count):
        pattern = found[width * row]
        first = plans[2 * pattern]
        for k in range(first, first + plans[2 * pattern + 1]):
            value = found[width * row + entries[3 * k]]
            if value < 0:
                at = room * entries[3 * k + 2] - 1 - value
                if meanings[at] == 0:
                    meanings[at] = -1
                    out[2 * missing] = entries[3 * k + 2]
                    out[2 * missing + 1] = -1 - value
                    missing += 1
    return missing


def rows_of_words(
    found: I64P, width: I64, count: I64, plans: I64P, entries: I64P, meanings: I64P, room: I64, events: I64P,
    headers: I64P, size: I64, begin: I64, out: I64P, columns: I64,
) -> I64:  # fmt: skip
    """Rows of an event's columns: run, node, seq, clock, event and the others; those of a header, `size` of them, from
    `begin` on. `events`: of each pattern the number of its event.
    """
    null = -9223372036854775808
    for row in range(count):
        base = columns * row
        for k in range(columns):
            out[base + k] = null
        pattern = found[width * row]
        out[base + 1] = -1
        out[base + 2] = found[width * row + 1]
        out[base + 3] = found[width * row + 1]
        out[base + 4] = events[pattern]
        first = plans[2 * pattern]
        for k in range(first, first + plans[2 * pattern + 1]):
            value = found[width * row + entries[3 * k]]
            if value < 0:
                value = meanings[room * entries[3 * k + 2] - 1 - value] - 1
            column = entries[3 * k + 1]
            if column >= 0:
                out[base + column] = value
            else:
                for h in range(size):
                    out[base + begin + h] = headers[size * value + h]
    return 0
