"""The engine's inner loops, the same for every model, in the subset of Python that `machine` compiles.

`expand`, `unpack`, `steps`, `visit` and `stutter` are the model's own functions, linked to these when a model is
loaded. A round of the search is three passes over chunks of the frontier: `expand_chunk` lists all successors with
their fingerprints, `insert_chunk` decides in order which of them are new, and `keep_chunk` stores those and asks the
invariants. The passes of different chunks may run at once: only `insert_chunk` shares memory, and there each caller
has regions of the table of its own.

The control words of a chunk: 0 successors, 1 writes, 2 site of a range error, 3 its instance, 4 deadlocks, 5 broken
transition invariant, 6 the successor that broke it, 7 states expanded, 8 new states kept, 9 event, 10 its detail,
11 the successor at which it happened, 12 the first row without a successor.
"""

# ruff: noqa: F821 - the model's functions are linked in
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, I64P, U8P, U16P, U32P, Record, lshr, prefetch


class Work(Record):
    """Working rows of the state before and after, of so many cells."""

    s: U8P
    t: U8P
    cells: I64


class Packing(Record):
    """Where a cell lies in a packed row: word, shift, and mask."""

    word: I64P
    shift: I64P
    mask: I64P


class Hashes(Record):
    """Per permutation under which states are one, cell and value a random number; `bases`: fingerprints per order."""

    zobrist: I64P
    width: I64
    orders: I64
    bases: I64P


class Asked(Record):
    """The action of an instance; by action the bit sets of predicates that it can change; all of the steps'."""

    act_of: U32P
    step_rel: I64P
    inv_rel: I64P
    wit_rel: I64P
    all_steps: I64


class Part(Record):
    """Rows of the frontier from `begin` on; `words` each; `first` is the number of the first row of them all."""

    rows: I64P
    words: I64
    begin: I64
    first: I64


class Successors(Record):
    """Successors as writes (cell, value) up to `we`, instance, row they come from, fingerprint, and are they new."""

    wo: U16P
    wv: U8P
    we: U32P
    wi: U32P
    of: U32P
    fps: I64P
    fresh: U8P


class Room(Record):
    """Where new states go: rows and log with the first free place of each, how many may come, and their depth."""

    following: I64P
    row: I64
    parents: U32P
    insts: U16P
    log: I64
    allowed: I64
    depth: I64


class Tally(Record):
    """What is counted: steps by action, depth by witness, first false guards; and the control words."""

    counts: I64P
    wit: I64P
    blk: I64P
    ctl: I64P


def fail(ctl: I64P, m: I64, n: I64, site: I64, inst: I64) -> I64:
    """An action instance left a declared range: note where; the successors before it stand."""
    ctl[0] = m
    ctl[1] = n
    ctl[2] = site
    ctl[3] = inst
    return 0


def insert(table: I64P, slots: I64, fingerprint: I64) -> I64:
    """Put a fingerprint into its region of the open-addressing table (0 = free): 1 if it was not there, else 0.

    -1 if the region is full, which uniform fingerprints at the loads of `memory` do not let happen.
    """
    base = lshr(fingerprint, 60) * slots
    at = fingerprint & (slots - 1)
    for _ in range(slots):
        entry = table[base + at]
        if entry == fingerprint:
            return 0
        if entry == 0:
            table[base + at] = fingerprint
            return 1
        at = (at + 1) & (slots - 1)
    return -1


def rehash(old: I64P, size: I64, table: I64P, slots: I64) -> I64:
    """Move all fingerprints to another table."""
    for i in range(size):
        if old[i] != 0:
            insert(table, slots, old[i])
    return 0


def spread(h: I64) -> I64:
    """A one-to-one map after which smallest fingerprints are spread over all regions again."""
    h = (h ^ lshr(h, 32)) * -7046029254386353131
    return h ^ lshr(h, 29)


def canonical(work: Work, hashes: Hashes) -> I64:
    """The fingerprint of a state's class: the smallest of those of its permutations, spread."""
    least = 0
    for p in range(hashes.orders):
        h = 0
        for c in range(work.cells):
            h = h ^ hashes.zobrist[(p * work.cells + c) * hashes.width + work.s[c]]
        if p == 0:
            least = h
        least = min(least, h)
    return spread(least)


def pack(work: Work, part: Part, packing: Packing, hashes: Hashes) -> I64:
    """Working row → packed row number `begin`, with its fingerprint in word 0."""
    at = part.begin * part.words
    for w in range(part.words):
        part.rows[at + w] = 0
    for cell in range(work.cells):
        word = at + packing.word[cell]
        part.rows[word] = part.rows[word] | (work.s[cell] << packing.shift[cell])
        part.rows[at] = part.rows[at] ^ hashes.zobrist[cell * hashes.width + work.s[cell]]
    return 0


def all_orders(work: Work, hashes: Hashes) -> I64:
    """Fingerprints of all permutations of a state."""
    for p in range(hashes.orders):
        h = 0
        for c in range(work.cells):
            h = h ^ hashes.zobrist[(p * work.cells + c) * hashes.width + work.s[c]]
        hashes.bases[p] = h
    return 0


def hashed(work: Work, hashes: Hashes, out: Successors, left: I64, right: I64) -> I64:
    """Fingerprint of the successor with the writes left..right-1; never 0."""
    h = hashes.bases[0]
    for k in range(left, right):
        at = out.wo[k] * hashes.width
        h = h ^ hashes.zobrist[at + work.s[out.wo[k]]] ^ hashes.zobrist[at + out.wv[k]]
    for p in range(1, hashes.orders):
        other = hashes.bases[p]
        for k in range(left, right):
            at = (p * work.cells + out.wo[k]) * hashes.width
            other = other ^ hashes.zobrist[at + work.s[out.wo[k]]] ^ hashes.zobrist[at + out.wv[k]]
        h = min(h, other)
    if hashes.orders > 1:
        h = spread(h)
    if h == 0:
        h = 1
    return h


def expand_chunk(
    part: Part, end: I64, work: Work, hashes: Hashes, asked: Asked, room: I64, write_room: I64, out: Successors,
    tally: Tally,
) -> I64:  # fmt: skip
    """List the successors of rows begin..end-1, as far as there is room; stop at a broken step or range error."""
    for w in range(8):
        tally.ctl[w] = 0
    for i in range(part.begin, end):
        if tally.ctl[0] > room or tally.ctl[1] > write_room:
            return 0
        unpack(part.rows, i * part.words, work.s)
        first = tally.ctl[0]
        left = tally.ctl[1]
        expand(work.s, out.wo, out.wv, out.we, out.wi, tally.ctl, tally.blk)
        hashes.bases[0] = part.rows[i * part.words]
        if hashes.orders > 1:
            all_orders(work, hashes)
        tally.ctl[7] = i + 1 - part.begin
        last = tally.ctl[0]
        if last == first and tally.ctl[2] == 0:
            if tally.ctl[4] == 0:
                tally.ctl[12] = i - part.begin
            tally.ctl[4] += 1
        still = 0
        copied = 0
        for j in range(first, last):
            right = out.we[j]
            h = hashed(work, hashes, out, left, right)
            out.fps[j] = h
            out.of[j] = i - part.begin
            ask = asked.step_rel[asked.act_of[out.wi[j]]]
            if ask != asked.all_steps:
                if still == 0:
                    still = stutter(work.s)
                if still == 2:
                    ask = asked.all_steps
            if ask != 0:
                if copied == 0:
                    copied = 1
                    for c in range(work.cells):
                        work.t[c] = work.s[c]
                for k in range(left, right):
                    work.t[out.wo[k]] = out.wv[k]
                bad = steps(work.s, work.t, ask)
                if bad != 0:
                    tally.ctl[5] = bad
                    tally.ctl[6] = j
                    tally.ctl[0] = j + 1
                    tally.ctl[1] = right
                    tally.ctl[2] = 0
                    return 0
                for k in range(left, right):
                    work.t[out.wo[k]] = work.s[out.wo[k]]
            left = right
        if tally.ctl[2] != 0:
            return 0
    return 0


def insert_chunk(table: I64P, slots: I64, fps: I64P, count: I64, first: I64, last: I64, fresh: U8P) -> I64:
    """Insert the fingerprints of regions first..last in order; mark and count those that were not there."""
    found = 0
    for j in range(min(8, count)):
        prefetch(table, lshr(fps[j], 60) * slots + (fps[j] & (slots - 1)))
    for j in range(count):
        if j + 8 < count:
            ahead = fps[j + 8]
            region = lshr(ahead, 60)
            if region >= first and region <= last:
                prefetch(table, region * slots + (ahead & (slots - 1)))
        region = lshr(fps[j], 60)
        if region >= first and region <= last:
            new = insert(table, slots, fps[j])
            if new < 0:
                return new
            fresh[j] = new
            found += new
    return found


def store_state(
    part: Part, row: I64, out: Successors, left: I64, right: I64, packing: Packing, following: I64P, target: I64
) -> I64:
    """Packed row of a successor: its parent's with the written fields exchanged."""
    source = row * part.words
    for w in range(1, part.words):
        following[target + w] = part.rows[source + w]
    for k in range(left, right):
        at = target + packing.word[out.wo[k]]
        bits = packing.shift[out.wo[k]]
        following[at] = (following[at] & (-1 - (packing.mask[out.wo[k]] << bits))) | (out.wv[k] << bits)
    return 0


def keep_chunk(
    part: Part, work: Work, out: Successors, asked: Asked, packing: Packing, goal: Room, tally: Tally
) -> I64:  # fmt: skip
    """Store the new successors, log how each was reached, ask the invariants; stop at the first event.

    Events: 1 more states than allowed, 2 broken invariant (10: which), 3 range error in a predicate (10: which and
    where), 4 broken transition invariant or range error in one (10).
    """
    made = 0
    left = 0
    tally.ctl[9] = 0
    for j in range(tally.ctl[0]):
        right = out.we[j]
        act = asked.act_of[out.wi[j]]
        tally.counts[2 * act] += 1
        step = 0
        if tally.ctl[5] != 0 and tally.ctl[6] == j:
            step = tally.ctl[5]
        if out.fresh[j] != 0:
            if made >= goal.allowed:
                tally.ctl[8] = made
                tally.ctl[9] = 1
                tally.ctl[11] = j
                return 0
            target = (goal.row + made) * part.words
            store_state(part, part.begin + out.of[j], out, left, right, packing, goal.following, target)
            goal.following[target] = out.fps[j]
            goal.parents[goal.log + made] = part.first + part.begin + out.of[j]
            goal.insts[goal.log + made] = out.wi[j]
            made += 1
            tally.counts[2 * act + 1] += 1
            if step == 0 and (asked.inv_rel[act] | asked.wit_rel[act]) != 0:
                unpack(goal.following, target, work.t)
                bad = visit(work.t, asked.inv_rel[act], asked.wit_rel[act], tally.wit, goal.depth)
                if bad != 0:
                    tally.ctl[8] = made
                    tally.ctl[9] = 2
                    if bad < 0:
                        tally.ctl[9] = 3
                    tally.ctl[10] = bad
                    tally.ctl[11] = j
                    return 0
        if step != 0:
            tally.ctl[8] = made
            tally.ctl[9] = 4
            tally.ctl[10] = step
            tally.ctl[11] = j
            return 0
        left = right
    tally.ctl[8] = made
    return 0


def goals_chunk(part: Part, count: I64, work: Work, wit: I64P, goals: I64, bits: U8P) -> I64:
    """Per row the bit set of the witnesses 0..goals-1 that hold there; a negative number at a range error."""
    for i in range(count):
        unpack(part.rows, (part.begin + i) * part.words, work.t)
        found = 0
        for g in range(goals):
            wit[g] = -1
            bad = visit(work.t, 0, 1 << g, wit, 0)
            if bad < 0:
                return bad
            if wit[g] == 0:
                found = found | (1 << g)
        bits[i] = found
    return 0


def backward(sources: U32P, targets: U32P, count: I64, good: U8P) -> I64:
    """Mark the states that have an edge to a marked one, last edge first; how many were marked."""
    marked = 0
    for i in range(count):
        at = count - 1 - i
        if good[targets[at]] != 0 and good[sources[at]] == 0:
            good[sources[at]] = 1
            marked += 1
    return marked


def walk(
    work: Work, seed: I64, most: I64, all_invariants: I64, all_witnesses: I64, asked: Asked, out: Successors,
    trail: U16P, tally: Tally,
) -> I64:  # fmt: skip
    """Take random steps from s, at most `most`; the number taken. Control words as for chunks; 4: ended without one."""
    for w in range(12):
        tally.ctl[w] = 0
    state = seed
    for depth in range(most):
        tally.ctl[0] = 0
        tally.ctl[1] = 0
        expand(work.s, out.wo, out.wv, out.we, out.wi, tally.ctl, tally.blk)
        if tally.ctl[2] != 0:
            tally.ctl[9] = 5
            return depth
        if tally.ctl[0] == 0:
            tally.ctl[4] = 1
            return depth
        state = state ^ (state << 13)
        state = state ^ lshr(state, 7)
        state = state ^ (state << 17)
        j = lshr(state, 11) % tally.ctl[0]
        left = 0
        if j > 0:
            left = out.we[j - 1]
        for c in range(work.cells):
            work.t[c] = work.s[c]
        for k in range(left, out.we[j]):
            work.t[out.wo[k]] = out.wv[k]
        trail[depth] = out.wi[j]
        tally.counts[2 * asked.act_of[out.wi[j]]] += 1
        bad = steps(work.s, work.t, asked.all_steps)
        if bad != 0:
            tally.ctl[9] = 4
        else:
            bad = visit(work.t, all_invariants, all_witnesses, tally.wit, depth + 1)
            if bad != 0:
                tally.ctl[9] = 2
        if bad != 0:
            tally.ctl[10] = bad
            return depth + 1
        for c in range(work.cells):
            work.s[c] = work.t[c]
    return most
