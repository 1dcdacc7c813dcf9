"""What nodes owe, and which permitted deviations were used, over flat memory, in the subset of Python that
`llvm.machine` compiles. Of each node the frames that it owes lie one above the other, the next on top.
"""

# ruff: noqa: F821, N803 - the memory's functions are linked in
# mypy: ignore-errors

from __future__ import annotations

from viewproof.spec.engines.llvm.machine import I64, external, load, store


def owed(M: I64, node: I64, width: I64) -> I64:
    """The frame on top of what a node owes, which is taken; 0 if it owes nothing."""
    count = M + external("o_due_count") + 8 * node
    n = load(count)
    if n == 0:
        return 0
    store(count, n - 1)
    return find(M, M + external("o_due") + 32 * node, n - 1, width)


def owe(M: I64, node: I64, owing: I64, width: I64) -> I64:
    """The frames of the row `owing`, as many as that says, come on top of what a node owes, the first at the top."""
    count = M + external("o_due_count") + 8 * node
    for k in range(owing):
        at = make(M, M + external("o_due") + 32 * node, load(count), width, 0)
        of = find(M, M + external("o_owing"), owing - 1 - k, width)
        if at == 0 or of == 0:
            return 1
        for n in range(width):
            store(at + 8 * n, load(of + 8 * n))
        store(count, load(count) + 1)
    return 0


def used(M: I64, what: I64, node: I64, seq: I64) -> I64:
    """A permitted deviation was used."""
    n = load(M + external("o_used"))
    at = make(M, M + external("o_uses"), n, 5, 0)
    if at == 0:
        return 1
    store(at, what)
    store(at + 8, node)
    store(at + 16, seq)
    store(M + external("o_used"), n + 1)
    return 0
