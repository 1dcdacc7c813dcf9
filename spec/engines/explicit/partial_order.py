"""Partial-order reduction: actions that commute with all others are taken first, in one order instead of all.

Actions are grouped so that those of different groups commute: neither writes what the other reads or writes. In a
state in which a *free* group has an enabled action, only that group's actions are explored. A group is free if

- it is invisible: nothing that it writes is read by a checked invariant or a witness; and
- it ends by itself: each of its actions sets a cell that was false (as its guard says) to true, and no action of the
  specification ever sets such a cell back, so none is on a cycle and no other action is put off for ever.

Then the reduced search meets the same verdict, the same values of all that invariants and witnesses read, and the same
states without a successor; behaviours may be longer than the shortest. This is decided once, from the variables that
actions read and write, so a protocol whose every action reads a replica's status, which another action writes, is one
group and is not reduced at all.
"""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.spec.lang.expr import ActionIR, Const, Expr, Op, PredicateIR, Read


def groups(actions: Iterable[ActionIR]) -> list[list[ActionIR]]:
    """Actions in groups such that those of different groups commute; in order of declaration."""
    found: list[list[ActionIR]] = []
    for action in actions:
        touching = [g for g in found if any(_conflict(action, other) for other in g)]
        merged = [other for g in touching for other in g] + [action]
        found = [g for g in found if g not in touching] + [merged]
    return found


def _conflict(a: ActionIR, b: ActionIR) -> bool:
    return bool(a.writes() & (b.reads() | b.writes()) or b.writes() & a.reads())


def free_groups(actions: tuple[ActionIR, ...], predicates: Iterable[PredicateIR]) -> list[list[ActionIR]]:
    """The groups that may be explored alone. Empty if there is only one group: that would reduce nothing."""
    parts = groups(actions)
    if len(parts) < 2:
        return []
    seen = frozenset(name for p in predicates for name in p.reads())
    once = _set_only(actions)
    return [g for g in parts if all(not (a.writes() & seen) and _ends(a, once) for a in g)]


def _set_only(actions: tuple[ActionIR, ...]) -> frozenset[str]:
    """Boolean variables that are only ever assigned true."""
    written = {u.var.name for a in actions for u in a.updates if u.var.values.is_bool}
    others = {u.var.name for a in actions for u in a.updates if not _is_true(u.value)}
    return frozenset(written - others)


def _is_true(value: Expr) -> bool:
    return isinstance(value, Const) and value.is_bool and value.value == 1


def _ends(action: ActionIR, once: frozenset[str]) -> bool:
    """Does it set a cell that its guard says is false, for good?"""
    cells = [u for u in action.updates if u.var.name in once and not u.binders]
    unset = [
        part.args[0] for g in action.guards for part in _conjuncts(g.cond) if isinstance(part, Op) and part.op == "not"
    ]
    keys = {(read.var.name, *(i.key() for i in read.index)) for read in unset if isinstance(read, Read)}
    return any((u.var.name, *(i.key() for i in u.index)) in keys for u in cells)


def _conjuncts(cond: Expr) -> list[Expr]:
    if isinstance(cond, Op) and cond.op == "and":
        return [part for arg in cond.args for part in _conjuncts(arg)]
    return [cond]
