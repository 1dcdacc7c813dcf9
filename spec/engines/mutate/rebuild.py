"""From a recorded action back to one that runs: what the interpreter needs of a mutant."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Update, Within
from viewproof.spec.lang.vocabulary import (
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    largest,
    maximum,
    not_,
    require,
    smallest,
    where,
    within,
)

Env = Mapping[str, Any]

_TWO: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mod": lambda a, b: a % b,
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "max": largest,
    "min": smallest,
}
_QUANTIFIERS = {"forall": forall, "exists": exists, "count": count}


def with_ir(spec: Spec, changed: ActionIR) -> Spec:
    """The specification with one action as recorded in `changed`; the other records are shared.

    A mutant need not keep to sorts, so it cannot be recorded again: take it as it is. What parts put around the action
    is in the record already.
    """
    made = runnable(changed, spec.action(changed.name))
    new = replace(spec, actions=tuple(made if a.name == changed.name else a for a in spec.actions))
    irs = tuple(changed if ir.name == changed.name else ir for ir in spec.action_irs)
    new.__dict__.update(action_irs=irs, invariant_irs=spec.invariant_irs, witness_irs=spec.witness_irs)
    return new


def runnable(ir: ActionIR, like: Action) -> Action:
    """An action whose function does what is recorded."""

    def fn(state: Any, **args: Any) -> None:
        for guard in ir.guards:
            require(value(guard.cond, state, args))
        for update in ir.updates:
            _assign(update, state, args)

    fn.__name__ = ir.name
    return replace(like, fn=fn)


def _assign(update: Update, state: Any, env: Env) -> None:
    if not update.index:
        setattr(state, update.var.name, value(update.value, state, env))
        return
    cells = state.cells(update.var.name)
    if not update.binders:
        index = tuple(value(i, state, env) for i in update.index)
        cells[index if len(index) > 1 else index[0]] = value(update.value, state, env)
        return
    domains = {b.name.name: _domain(b, state, env) for b in update.binders}
    index = tuple(
        domains[i.name] if isinstance(i, Name) and i.name in domains else value(i, state, env) for i in update.index
    )
    names = [b.name.name for b in update.binders]
    cells.update(index, lambda *bound: value(update.value, state, {**env, **dict(zip(names, bound, strict=True))}))


def _domain(binder: Binder, state: Any, env: Env) -> Any:
    sort = binder.name.sort
    if sort is None:
        raise SpecError(f"the bound variable {binder.name.name} has no sort")
    whole = isinstance(binder.lo, Const) and binder.lo.value == sort.lo and isinstance(binder.hi, SortMax)
    return sort if whole else between(sort, value(binder.lo, state, env), value(binder.hi, state, env))


def value(expr: Expr, state: Any, env: Env) -> Any:
    """The expression in the words of the language, on concrete states."""
    match expr:
        case Const():
            return bool(expr.value) if expr.is_bool else expr.value
        case Name():
            return env[expr.name]
        case Read():
            return _read(expr, state, env)
        case SortMax():
            return state.instance.hi(expr.sort)
        case Within():
            return within(expr.sort, value(expr.value, state, env))
        case Quant():
            name = expr.binder.name.name
            domain = _domain(expr.binder, state, env)
            body = lambda m: value(expr.body, state, {**env, name: m})  # noqa: E731
            if expr.kind == "max":
                return maximum(domain, body, default=expr.default)
            return _QUANTIFIERS[expr.kind](domain, body)
        case Op(op="and" | "or"):
            thunks = [lambda arg=arg: value(arg, state, env) for arg in expr.args]
            return (all_of if expr.op == "and" else any_of)(*thunks)
        case Op(op="not"):
            return not_(value(expr.args[0], state, env))
        case Op(op="ite"):
            cond, then, other = expr.args
            return where(value(cond, state, env), lambda: value(then, state, env), lambda: value(other, state, env))
        case Op():
            return _TWO[expr.op](*(value(arg, state, env) for arg in expr.args))
    raise SpecError(f"no value of {type(expr).__name__}")


def _read(expr: Read, state: Any, env: Env) -> Any:
    source = state
    if expr.receiver is not None:
        source = state.received(value(expr.receiver, state, env))
    elif expr.after:
        source = state.after
    cells = source.cells(expr.var.name)
    if not expr.index:
        return cells
    index = tuple(value(i, state, env) for i in expr.index)
    return cells[index if len(index) > 1 else index[0]]
