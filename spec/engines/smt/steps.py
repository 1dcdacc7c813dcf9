"""Action instances as terms: guard, new values of the cells that change, and what must hold for no range to be left."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from viewproof.spec.engines.smt.lower import Env, Lowering, Value
from viewproof.spec.engines.smt.terms import Term
from viewproof.spec.lang.definitions import call_text
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import ActionIR, Update


@dataclass(frozen=True, slots=True)
class Obligation:
    """What an action instance needs, so that it leaves no declared range, wherever it is enabled."""

    what: str
    source: Source
    term: Term


@dataclass(frozen=True)
class StepTerms:
    """An action with its arguments: `changed` maps cell numbers to new values; every other cell stays."""

    action: str
    args: dict[str, int]
    guard: Term
    changed: dict[int, Term]
    obligations: tuple[Obligation, ...]

    @property
    def label(self) -> str:
        """`on_prepare(r=1, o=2)`."""
        return call_text(self.action, self.args)


def instances(low: Lowering, ir: ActionIR) -> Iterator[dict[str, int]]:
    """All arguments of an action."""
    for values in itertools.product(*(low.instance.members(p.sort) for p in ir.params)):
        yield {p.name: v for p, v in zip(ir.params, values, strict=True)}


def lower_action(low: Lowering, ir: ActionIR, args: dict[str, int]) -> StepTerms:
    """One action instance."""
    t = low.terms
    env = {name: t.const(value) for name, value in args.items()}
    guard = t.true
    obligations = []
    for conjunct in ir.guards:
        value = low.expr(conjunct.cond, env)
        obligations.append(Obligation("guard", conjunct.source, t.implies(guard, value.ok)))
        guard = t.and_((guard, value.term))
    changed: dict[int, Term] = {}
    if guard is not t.false:
        for update in ir.updates:
            what = f"assignment of {update.var.name}"
            needs = _apply(low, update, env, changed)
            obligations.extend(Obligation(what, update.source, t.implies(guard, need)) for need in needs)
    changed = {n: v for n, v in changed.items() if v is not t.cells[n]}
    open_needs = tuple(o for o in obligations if o.term is not t.true)
    return StepTerms(ir.name, args, guard, changed, open_needs)


def _apply(low: Lowering, update: Update, env: Env, changed: dict[int, Term]) -> Iterator[Term]:
    """Enter an update into `changed`; yields what must hold for it to stay in range."""
    t, var = low.terms, update.var
    top = var.values.upper(low.instance)
    assert top is not None
    for inner, cond, ok in _bindings(low, update, env):
        index = [low.expr(i, inner) for i in update.index]
        value = low.expr(update.value, inner)
        inside = [low.inside(sort, i.term) for sort, i in zip(var.index, index, strict=True)]
        fits = [] if var.values.is_bool else [t.le(t.const(var.values.lo), value.term), t.le(value.term, t.const(top))]
        yield t.and_((ok, t.implies(cond, t.and_((*(i.ok for i in index), *inside, value.ok, *fits)))))
        for place, hit in low.matches(var, tuple(i.term for i in index)):
            number = low.number[var.name, place]
            old = changed.get(number, t.cells[number])
            changed[number] = t.ite(t.and_((cond, hit)), value.term, old)


def _bindings(low: Lowering, update: Update, env: Env) -> Iterator[tuple[Env, Term, Term]]:
    """Values of the binders, with the condition that they are in range, and whether the ranges are ranges."""
    t = low.terms
    found: list[tuple[Env, Value]] = [(env, Value(t.true, t.true))]
    for binder in update.binders:
        longer: list[tuple[Env, Value]] = []
        for inner, so_far in found:
            members, ok = low.members(binder, inner)
            all_ok = t.and_((so_far.ok, t.implies(so_far.term, ok)))
            if not members:
                longer.append((inner, Value(t.false, all_ok)))
            for m, cond in members:
                extended = {**inner, binder.name.name: t.const(m)}
                longer.append((extended, Value(t.and_((so_far.term, cond)), all_ok)))
        found = longer
    for inner, value in found:
        if all(b.name.name in inner for b in update.binders):
            yield inner, value.term, value.ok
