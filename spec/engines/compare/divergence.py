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

from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.compare.load import Common, assemble, load
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Guard, Op, PredicateIR, Quant, Read, Update
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
    spec, second = together(one, other)
    found = explicit.explore(spec, max_states=max_states, workers=workers)
    if not found.behaviour:
        return Divergence((), found.verdict == "holds", found.distinct)
    steps = tuple(
        replace(s, action=s.action.removesuffix(ONLY), changes=tuple(c for c in s.changes if c.var != FLAG))
        for s in found.behaviour
    )
    if _taken_too(spec, second, found.behaviour):
        return Divergence((), False, found.distinct)
    return Divergence(steps, True, found.distinct)


def _taken_too(spec: Spec, second: Spec, steps: list[Step]) -> bool:
    """Does the other specification take the last step as well, to the same state, by the interpreter?

    Then two updates of one variable over different cells only looked unlike.
    """
    last = steps[-1]
    name = last.action.removesuffix(ONLY)
    if name not in {a.name for a in second.actions}:
        return False
    before = steps[-2].state if len(steps) > 1 else State.initial()
    act = second.action(name)
    if {p.name for p in act.params} != set(last.args):
        return False
    there = interp.step(second, before, act, last.args)
    mine = interp.step(spec, before, spec.action(last.action), last.args)
    if not isinstance(there, State) or not isinstance(mine, State):
        return False
    shared = {var.name for var in second.schema.vars.values()} - {FLAG}
    return all(change.var not in shared for change in changes(second, there, mine))


def together(one: Mapping[str, Any], other: Mapping[str, Any]) -> tuple[Spec, Spec]:
    """Both in one specification: shared steps, and steps of the first alone, which raise the flag; and the second."""
    common = Common()
    first, second = load(one, common), load(other, common)
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
    return assemble(one["name"], common.schema, tuple(irs), one, predicates, first.instance), second


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
    others = {_place(update): update for update in b.updates if update.var.name in shared}
    parts: list[Expr] = []
    for update in (u for u in a.updates if u.var.name in shared):
        like = others.pop(_place(update), None)
        if like is None:
            parts.append(_changed(update))
        elif like.value.key() != update.value.key():
            parts.append(_over(update, Op("ne", (update.value, like.value), True)))
    return _any([*parts, *(_changed(update) for update in others.values())])


def _changed(update: Update) -> Expr:
    """Does an update that only one of them makes change anything?"""
    return _over(update, Op("ne", (update.value, Read(update.var, update.index)), True))


def _over(update: Update, cond: Expr) -> Expr:
    for binder in reversed(update.binders):
        cond = Quant("exists", binder, cond)
    return cond
