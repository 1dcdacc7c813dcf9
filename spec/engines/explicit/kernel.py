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

from viewproof.spec.engines.explicit.machine import I64, I64P, U8P, U16P, U32P, lshr, prefetch


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


def canonical(s: U8P, cells: I64, zobrist: I64P, width: I64, orders: I64) -> I64:
    """The fingerprint of a state's class: the smallest of those of its permutations, spread."""
    least = 0
    for p in range(orders):
        h = 0
        for c in range(cells):
            h = h ^ zobrist[(p * cells + c) * width + s[c]]
        if p == 0:
            least = h
        least = min(least, h)
    return spread(least)


def pack(
    s: U8P, cells: I64, rows: I64P, at: I64, words: I64, word: I64P, shift: I64P, zobrist: I64P, width: I64
) -> I64:
    """Working row → packed row number `at`, with its fingerprint in word 0."""
    for w in range(words):
        rows[at * words + w] = 0
    for cell in range(cells):
        rows[at * words + word[cell]] = rows[at * words + word[cell]] | (s[cell] << shift[cell])
        rows[at * words] = rows[at * words] ^ zobrist[cell * width + s[cell]]
    return 0


def all_orders(s: U8P, cells: I64, zobrist: I64P, width: I64, orders: I64, bases: I64P) -> I64:
    """Fingerprints of all permutations of a state."""
    for p in range(orders):
        h = 0
        for c in range(cells):
            h = h ^ zobrist[(p * cells + c) * width + s[c]]
        bases[p] = h
    return 0


def hashed(
    s: U8P, cells: I64, zobrist: I64P, width: I64, orders: I64, bases: I64P, wo: U16P, wv: U8P, left: I64, right: I64
) -> I64:
    """Fingerprint of the successor with the writes left..right-1; never 0."""
    h = bases[0]
    for k in range(left, right):
        at = wo[k] * width
        h = h ^ zobrist[at + s[wo[k]]] ^ zobrist[at + wv[k]]
    for p in range(1, orders):
        other = bases[p]
        for k in range(left, right):
            at = (p * cells + wo[k]) * width
            other = other ^ zobrist[at + s[wo[k]]] ^ zobrist[at + wv[k]]
        h = min(h, other)
    if orders > 1:
        h = spread(h)
    if h == 0:
        h = 1
    return h


def expand_chunk(
    rows: I64P, words: I64, begin: I64, end: I64, s: U8P, t: U8P, cells: I64, zobrist: I64P, width: I64,
    orders: I64, bases: I64P, act_of: U32P, step_rel: I64P, all_steps: I64, room: I64, write_room: I64,
    wo: U16P, wv: U8P, we: U32P, wi: U32P, of: U32P, fps: I64P, ctl: I64P, blk: I64P,
) -> I64:  # fmt: skip
    """List the successors of rows begin..end-1, as far as there is room; stop at a broken step or range error."""
    for w in range(8):
        ctl[w] = 0
    for i in range(begin, end):
        if ctl[0] > room or ctl[1] > write_room:
            return 0
        unpack(rows, i * words, s)
        first = ctl[0]
        left = ctl[1]
        expand(s, wo, wv, we, wi, ctl, blk)
        bases[0] = rows[i * words]
        if orders > 1:
            all_orders(s, cells, zobrist, width, orders, bases)
        ctl[7] = i + 1 - begin
        last = ctl[0]
        if last == first and ctl[2] == 0:
            if ctl[4] == 0:
                ctl[12] = i - begin
            ctl[4] += 1
        still = 0
        copied = 0
        for j in range(first, last):
            right = we[j]
            h = hashed(s, cells, zobrist, width, orders, bases, wo, wv, left, right)
            fps[j] = h
            of[j] = i - begin
            ask = step_rel[act_of[wi[j]]]
            if ask != all_steps:
                if still == 0:
                    still = stutter(s)
                if still == 2:
                    ask = all_steps
            if ask != 0:
                if copied == 0:
                    copied = 1
                    for c in range(cells):
                        t[c] = s[c]
                for k in range(left, right):
                    t[wo[k]] = wv[k]
                bad = steps(s, t, ask)
                if bad != 0:
                    ctl[5] = bad
                    ctl[6] = j
                    ctl[0] = j + 1
                    ctl[1] = right
                    ctl[2] = 0
                    return 0
                for k in range(left, right):
                    t[wo[k]] = s[wo[k]]
            left = right
        if ctl[2] != 0:
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


def store(
    rows: I64P, source: I64, words: I64, wo: U16P, wv: U8P, left: I64, right: I64, word: I64P, shift: I64P,
    mask: I64P, following: I64P, target: I64,
) -> I64:  # fmt: skip
    """Packed row of a successor: its parent's with the written fields exchanged."""
    for w in range(1, words):
        following[target + w] = rows[source + w]
    for k in range(left, right):
        at = target + word[wo[k]]
        bits = shift[wo[k]]
        following[at] = (following[at] & (-1 - (mask[wo[k]] << bits))) | (wv[k] << bits)
    return 0


def keep_chunk(
    rows: I64P, words: I64, begin: I64, t: U8P, wo: U16P, wv: U8P, we: U32P, wi: U32P, of: U32P, fps: I64P,
    fresh: U8P, act_of: U32P, inv_rel: I64P, wit_rel: I64P, word: I64P, shift: I64P, mask: I64P, following: I64P,
    to: I64, parents: U32P, insts: U16P, log: I64, first: I64, allowed: I64, depth: I64, counts: I64P, wit: I64P,
    ctl: I64P,
) -> I64:  # fmt: skip
    """Store the new successors, log how each was reached, ask the invariants; stop at the first event.

    Events: 1 more states than allowed, 2 broken invariant (10: which), 3 range error in a predicate (10: which and
    where), 4 broken transition invariant or range error in one (10).
    """
    made = 0
    left = 0
    ctl[9] = 0
    for j in range(ctl[0]):
        right = we[j]
        act = act_of[wi[j]]
        counts[2 * act] += 1
        step = 0
        if ctl[5] != 0 and ctl[6] == j:
            step = ctl[5]
        if fresh[j] != 0:
            if made >= allowed:
                ctl[8] = made
                ctl[9] = 1
                ctl[11] = j
                return 0
            target = (to + made) * words
            store(rows, (begin + of[j]) * words, words, wo, wv, left, right, word, shift, mask, following, target)
            following[target] = fps[j]
            parents[log + made] = first + begin + of[j]
            insts[log + made] = wi[j]
            made += 1
            counts[2 * act + 1] += 1
            if step == 0 and (inv_rel[act] | wit_rel[act]) != 0:
                unpack(following, target, t)
                bad = visit(t, inv_rel[act], wit_rel[act], wit, depth)
                if bad != 0:
                    ctl[8] = made
                    ctl[9] = 2
                    if bad < 0:
                        ctl[9] = 3
                    ctl[10] = bad
                    ctl[11] = j
                    return 0
        if step != 0:
            ctl[8] = made
            ctl[9] = 4
            ctl[10] = step
            ctl[11] = j
            return 0
        left = right
    ctl[8] = made
    return 0


def goals_chunk(rows: I64P, words: I64, begin: I64, count: I64, t: U8P, wit: I64P, goals: I64, bits: U8P) -> I64:
    """Per row the bit set of the witnesses 0..goals-1 that hold there; a negative number at a range error."""
    for i in range(count):
        unpack(rows, (begin + i) * words, t)
        found = 0
        for g in range(goals):
            wit[g] = -1
            bad = visit(t, 0, 1 << g, wit, 0)
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
    s: U8P, t: U8P, cells: I64, seed: I64, most: I64, all_invariants: I64, all_steps: I64, all_witnesses: I64,
    act_of: U32P, wo: U16P, wv: U8P, we: U32P, wi: U32P, trail: U16P, counts: I64P, wit: I64P, ctl: I64P, blk: I64P,
) -> I64:  # fmt: skip
    """Take random steps from s, at most `most`; the number taken. Control words as for chunks; 4: ended without one."""
    for w in range(12):
        ctl[w] = 0
    state = seed
    for depth in range(most):
        ctl[0] = 0
        ctl[1] = 0
        expand(s, wo, wv, we, wi, ctl, blk)
        if ctl[2] != 0:
            ctl[9] = 5
            return depth
        if ctl[0] == 0:
            ctl[4] = 1
            return depth
        state = state ^ (state << 13)
        state = state ^ lshr(state, 7)
        state = state ^ (state << 17)
        j = lshr(state, 11) % ctl[0]
        left = 0
        if j > 0:
            left = we[j - 1]
        for c in range(cells):
            t[c] = s[c]
        for k in range(left, we[j]):
            t[wo[k]] = wv[k]
        trail[depth] = wi[j]
        counts[2 * act_of[wi[j]]] += 1
        bad = steps(s, t, all_steps)
        if bad != 0:
            ctl[9] = 4
        else:
            bad = visit(t, all_invariants, all_witnesses, wit, depth + 1)
            if bad != 0:
                ctl[9] = 2
        if bad != 0:
            ctl[10] = bad
            return depth + 1
        for c in range(cells):
            s[c] = t[c]
    return most
