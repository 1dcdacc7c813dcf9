"""A behaviour of one specification that another has not: the shortest, by a search of both together.

A step of the first is *shared* where the second takes it too, to the same state. Both are deterministic in an action
and its arguments, so a behaviour is not one of the second exactly if some step of it is not shared: one that the second
does not allow, or that leads elsewhere. The search follows shared steps only, and ends at the first that is not.
**None found** means: every behaviour of the first in this shape is one of the second (if the search ended).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewproof.spec.engines import explicit
from viewproof.spec.engines.compare.load import Common, UnlikeError, assemble, load
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import (
    ActionIR,
    Binder,
    Const,
    Expr,
    Guard,
    Name,
    Op,
    PredicateIR,
    Quant,
    Read,
    SortMax,
    Update,
    Within,
)
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import BOOL

FLAG = "unshared"
"""The variable that says that a step was taken which the other does not take."""
ONLY = "_only"


@dataclass(frozen=True)
class Divergence:
    """`steps`: the shortest behaviour that the other has not, its last step being the one (empty: none found).

    `complete`: all was searched, so none found means there is none. `states`: searched.
    """

    steps: tuple[Step, ...]
    complete: bool
    states: int


def diverging(
    one: Mapping[str, Any], other: Mapping[str, Any], max_states: int, workers: int | None = None
) -> Divergence:
    """The shortest behaviour of `one` (plain data) that `other` has not.

    Raises `UnlikeError` where their states differ in kind.
    """
    spec = together(one, other)
    found = explicit.explore(spec, max_states=max_states, workers=workers)
    if not found.behaviour:
        return Divergence((), found.verdict == "holds", found.distinct)
    steps = tuple(
        replace(s, action=s.action.removesuffix(ONLY), changes=tuple(c for c in s.changes if c.var != FLAG))
        for s in found.behaviour
    )
    return Divergence(steps, True, found.distinct)


def together(one: Mapping[str, Any], other: Mapping[str, Any]) -> Spec:
    """Both in one specification: shared steps, and steps of the first alone, which raise the flag."""
    common = Common()
    first, second = load(one, common), load(other, common)
    if any(one["bounds"][name] != size for name, size in other["bounds"].items() if name in one["bounds"]):
        raise UnlikeError("their sizes are not the same")
    flag = Var(FLAG, (), BOOL, 0, "state", "a step was taken that the other specification does not take")
    common.schema.vars[FLAG] = flag
    theirs = {ir.name: ir for ir in second.action_irs}
    own, others = ({row["name"] for row in data["vars"]} for data in (one, other))
    irs: list[ActionIR] = []
    for ir in first.action_irs:
        like = theirs.get(ir.name)
        if like is None or like.params != ir.params:
            irs.append(_alone(ir, None, own & others, flag))
        elif same(ir, like):
            irs.append(ir)
        else:
            irs += [_shared(ir, like, own, own & others), _alone(ir, like, own & others, flag)]
    calm = PredicateIR(
        "shared", "every step is one of the other specification too", Op("not", (Read(flag, ()),), True),
        first.action_irs[0].source, "Both.",
    )  # fmt: skip
    predicates = {"invariants": (calm,), "witnesses": ()}
    return assemble(one["name"], common.schema, tuple(irs), one, predicates, first.instance)


def same(a: ActionIR, b: ActionIR) -> bool:
    """Do two recorded actions say the same, sentence for sentence?"""
    guards = [[g.cond.key() for g in ir.guards] for ir in (a, b)]
    updates = [sorted((_place(u), repr(u.value.key())) for u in ir.updates) for ir in (a, b)]
    return guards[0] == guards[1] and updates[0] == updates[1]


def _place(update: Update) -> str:
    ranges = [(b.lo.key(), b.hi.key()) for b in update.binders]
    return repr((update.var.name, [i.key() for i in update.index], ranges))


def _shared(ir: ActionIR, like: ActionIR, own: set[str], shared: set[str]) -> ActionIR:
    """The step where both allow it and agree; what only the second keeps changes with it."""
    agree = Op("not", (_differ(ir, like, shared),), True)
    guards = (*ir.guards, *like.guards, Guard(agree, ir.source))
    return replace(ir, guards=guards, updates=(*ir.updates, *(u for u in like.updates if u.var.name not in own)))


def _alone(ir: ActionIR, like: ActionIR | None, shared: set[str], flag: Var) -> ActionIR:
    """The step where the second does not allow it, or it leads elsewhere there: the flag is raised."""
    guards = ir.guards
    if like is not None:
        refused = Op("not", (_all([g.cond for g in like.guards]),), True)
        guards = (*guards, Guard(Op("or", (refused, _differ(ir, like, shared)), True), ir.source))
    raised = Update(flag, (), (), Const(1, True), ir.source)
    return replace(ir, name=ir.name + ONLY, guards=guards, updates=(*ir.updates, raised))


def _all(parts: list[Expr]) -> Expr:
    return Const(1, True) if not parts else parts[0] if len(parts) == 1 else Op("and", tuple(parts), True)


def _any(parts: list[Expr]) -> Expr:
    return Const(0, True) if not parts else parts[0] if len(parts) == 1 else Op("or", tuple(parts), True)


def _differ(a: ActionIR, b: ActionIR, shared: set[str]) -> Expr:
    """Does some cell that both specifications have get another value?"""
    parts: list[Expr] = []
    for name in dict.fromkeys(u.var.name for u in (*a.updates, *b.updates) if u.var.name in shared):
        mine, theirs = ({_place(u): u for u in ir.updates if u.var.name == name} for ir in (a, b))
        if mine.keys() == theirs.keys():
            pairs = ((update, theirs[place]) for place, update in mine.items())
            parts += [
                _over(one, Op("ne", (one.value, other.value), True))
                for one, other in pairs
                if one.value.key() != other.value.key()
            ]
        else:
            parts.append(cellwise(list(mine.values()), list(theirs.values())))
    return _any(parts)


def cellwise(a: list[Update], b: list[Update]) -> Expr:
    """Does some cell of the one variable get another value by the updates `a` than by `b`, wherever they write?"""
    var = (a or b)[0].var
    cells = tuple(Name(f"cell{n}", sort) for n, sort in enumerate(var.index))
    cond: Expr = Op("ne", (_after(var, a, cells), _after(var, b, cells)), True)
    for cell, sort in zip(reversed(cells), reversed(var.index), strict=True):
        cond = Quant("exists", Binder(cell, Const(sort.lo), SortMax(sort)), cond)
    return cond


def _after(var: Var, updates: list[Update], cells: tuple[Name, ...]) -> Expr:
    """The value of a cell after the updates."""
    value: Expr = Read(var, cells)
    for update in updates:
        ranges = {binder.name.name: binder for binder in update.binders}
        known: dict[str, Expr] = {}
        conds: list[Expr] = []
        for index, cell in zip(update.index, cells, strict=True):
            binder = ranges.get(index.name) if isinstance(index, Name) else None
            if binder is None or binder.name.name in known:
                conds.append(Op("eq", (with_names(index, known), cell), True))
                continue
            known[binder.name.name] = cell
            for low, high in ((binder.lo, cell), (cell, binder.hi)):
                conds.append(Op("le", (with_names(low, known), with_names(high, known)), True))
        if ranges.keys() - known.keys():
            raise UnlikeError(f"an update of {var.name} writes cells that are computed from what it binds")
        value = Op("ite", (_all(conds), with_names(update.value, known), value), var.values.is_bool)
    return value


def with_names(expr: Expr, known: Mapping[str, Expr]) -> Expr:
    """The expression with other expressions in place of names."""
    match expr:
        case Name():
            return known.get(expr.name, expr) if expr.name in known else expr
        case Read():
            receiver = None if expr.receiver is None else with_names(expr.receiver, known)
            return replace(expr, index=tuple(with_names(i, known) for i in expr.index), receiver=receiver)
        case Within():
            return replace(expr, value=with_names(expr.value, known))
        case Quant():
            b = expr.binder
            inner = {name: term for name, term in known.items() if name != b.name.name}
            binder = Binder(b.name, with_names(b.lo, known), with_names(b.hi, known))
            return replace(expr, binder=binder, body=with_names(expr.body, inner))
        case Op():
            return replace(expr, args=tuple(with_names(arg, known) for arg in expr.args))
    return expr


def _over(update: Update, cond: Expr) -> Expr:
    for binder in reversed(update.binders):
        cond = Quant("exists", binder, cond)
    return cond
