"""What the audit of a run remembers beside the specification's state, over flat memory, in the subset of Python that
`llvm.machine` compiles: names of entries, and values that must be equal wherever they are shown. Strings are codes.

Functions return 0 if all is plainly well, 1 if not. Cells hold a code + 1; 0 is none.
"""

# ruff: noqa: F821, N803, SIM102 - the memory's functions are linked in; connectives look at all their operands
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, external, load, store


def label(M: I64, entry: I64, op: I64) -> I64:
    """The code of the checksum that names the entry at an op; -1 if it has no name yet."""
    h = find(M, M + external("o_labels"), entry, 4)
    if h == 0:
        return -1
    at = find(M, h, op, 1)
    if at == 0:
        return -1
    return load(at) - 1


def name(M: I64, code: I64, entry: I64, op: I64) -> I64:
    """A checksum is used for (entry, op): bind it if both are new, else they must agree."""
    if op != 0 and entry == 0:
        return 1
    known = label(M, entry, op)
    if known >= 0 and known != code:
        return 1
    other = make(M, M + external("o_names_op"), code, 1, 0)
    of = make(M, M + external("o_names_entry"), code, 1, 0)
    if other == 0 or of == 0:
        return 1
    if load(other) != 0:
        if load(other) != op + 1 or load(of) != entry:
            return 1
    store(other, op + 1)
    store(of, entry)
    h = make(M, M + external("o_labels"), entry, 4, 0)
    if h == 0:
        return 1
    at = make(M, h, op, 1, 0)
    if at == 0:
        return 1
    store(at, code + 1)
    return 0


def begin(M: I64) -> I64:
    """Entry (0, 0) is that of no op, and its name ""."""
    return name(M, 0, 0, 0)


def named(M: I64, code: I64, entry: I64, op: I64) -> I64:
    """The checksum names the entry at the op, from now on if not before."""
    if label(M, entry, op) == code:
        return 0
    return name(M, code, entry, op)


def head(M: I64, code: I64, entry: I64, op: I64) -> I64:
    """The checksum that a node shows of its last entry: as `named`, and "" (code 0) where there is none."""
    known = max(label(M, entry, op), 0)
    if known == code:
        return 0
    if known != 0 or op == 0:
        return 1
    return name(M, code, entry, op)


def agreed(M: I64, h: I64, at: I64, code: I64) -> I64:
    """The value at a place is that of all other events that show one."""
    cell = make(M, h, at, 1, 0)
    if cell == 0:
        return 1
    if load(cell) == 0:
        store(cell, code + 1)
    if load(cell) != code + 1:
        return 1
    return 0


def share(M: I64, h: I64, owners: I64, at: I64, code: I64) -> I64:
    """As `agreed`; where there are `owners` (a row, or 0), no other place has the value, too."""
    cell = make(M, h, at, 1, 0)
    if cell == 0:
        return 1
    if load(cell) == code + 1 or (load(cell) == 0 and code == 0):
        return 0
    if load(cell) != 0:
        return 1
    if owners != 0:
        owner = make(M, owners, code, 1, 0)
        if owner == 0:
            return 1
        if load(owner) == 0:
            store(owner, at + 1)
        if load(owner) != at + 1:
            return 1
    store(cell, code + 1)
    return 0


def journal(M: I64, node: I64, entry: I64, op: I64) -> I64:
    """The body of the entry at the op is durable in the node's journal."""
    h = make(M, M + external("o_journaled") + 32 * node, entry, 4, 0)
    if h == 0:
        return 1
    at = make(M, h, op, 1, 0)
    if at == 0:
        return 1
    store(at, 1)
    return 0


def in_journal(M: I64, node: I64, entry: I64, op: I64) -> I64:
    """Is it? 0 if so."""
    h = find(M, M + external("o_journaled") + 32 * node, entry, 4)
    if h == 0:
        return 1
    at = find(M, h, op, 1)
    if at == 0:
        return 1
    return 1 if load(at) == 0 else 0


def journal_body(M: I64, node: I64, code: I64, op: I64) -> I64:
    """The body of the prepare with that checksum is durable in the node's journal."""
    other = find(M, M + external("o_names_op"), code, 1)
    of = find(M, M + external("o_names_entry"), code, 1)
    if other == 0 or of == 0:
        return 1
    if load(other) != op + 1:
        return 1
    return journal(M, node, load(of), op)


def offsets(M: I64, C: I64, row: I64, op: I64) -> I64:
    """What an executed append states: one place for its messages, and for each offset one op."""
    null = -9223372036854775808
    namespace = load(load(C + 40) + 8 * row)
    first = load(load(C + 48) + 8 * row)
    count = load(load(C + 56) + 8 * row)
    if namespace == null or first == null or count == null:
        return 0
    if agreed(M, M + external("o_fact_place"), op, namespace) != 0:
        return 1
    if agreed(M, M + external("o_fact_first"), op, first) != 0:
        return 1
    if agreed(M, M + external("o_fact_count"), op, count) != 0:
        return 1
    h = make(M, M + external("o_fact_offsets"), namespace, 4, 0)
    if h == 0:
        return 1
    for offset in range(first, first + count):
        if agreed(M, h, offset, op) != 0:
            return 1
    return 0


def facts(M: I64, C: I64, row: I64, prepares: I64, executes: I64) -> I64:
    """The global facts that one event states (`refinement.global_facts`): columns view, op, checksum, commit_min,
    digest, namespace, offset and count of `C`, in this order; does it prepare, does it execute?
    """
    null = -9223372036854775808
    op = load(load(C + 8) + 8 * row)
    code = load(load(C + 16) + 8 * row)
    if op != null and code != null:
        view = load(load(C) + 8 * row)
        if executes != 0:
            if offsets(M, C, row, op) != 0:
                return 1
            if agreed(M, M + external("o_fact_executed"), op, code) != 0:
                return 1
        elif prepares != 0 and view != null:
            h = make(M, M + external("o_fact_prepares"), view, 4, 0)
            if h == 0:
                return 1
            if agreed(M, h, op, code) != 0:
                return 1
    at = load(load(C + 24) + 8 * row)
    digest = load(load(C + 32) + 8 * row)
    if at != null and digest != null:
        if agreed(M, M + external("o_fact_digests"), at, digest) != 0:
            return 1
    return 0
