"""Identity of a specification by what is recorded, not by where or in which order it stands, nor by what it calls what
it binds: actions, predicates, variables, bounds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import Binder, Expr, Guard, Update
from viewproof.spec.lang.schema import Var

QUANTIFIERS = ("forall", "exists", "count", "max")


def digest(*specs: Spec) -> str:
    """Equal for specifications whose recorded actions, invariants, witnesses, ranges and bounds are equal."""
    return _of((*_steps(spec), *_predicates(spec)) for spec in specs)


def digest_of_steps(*specs: Spec) -> str:
    """Equal for specifications that take the same steps, as they are recorded."""
    return _of(_steps(spec) for spec in specs)


def digest_of_predicates(*specs: Spec) -> str:
    """Equal for specifications of which the same is said, as it is recorded."""
    return _of(_predicates(spec) for spec in specs)


def _of(parts: Iterable[Iterable[str]]) -> str:
    state = hashlib.blake2b(digest_size=16)
    for found in parts:
        state.update(repr(sorted(found)).encode())
    return state.hexdigest()


def _steps(spec: Spec) -> list[str]:
    found = [repr(_variable(var)) for var in spec.schema.vars.values()]
    for ir in spec.action_irs:
        params = [(p.name, p.sort.name) for p in ir.params]
        found.append(repr((ir.name, params, _conjuncts(ir.guards), sorted(map(_update, ir.updates)))))
    return [*found, repr(sorted(spec.instance.bounds.items()))]


def _predicates(spec: Spec) -> list[str]:
    return [repr((p.name, normal(p.cond.key()))) for p in (*spec.invariant_irs, *spec.witness_irs)]


def normal(key: Any, bound: Mapping[str, str] | None = None) -> Any:
    """The key of an expression with what it binds named by its depth, and the parts of and, or in a fixed order."""
    known = bound or {}
    if not isinstance(key, tuple) or not key:
        return key
    if key[0] == "name":
        return ("name", known.get(key[1], key[1]))
    if key[0] in QUANTIFIERS and len(key) == 6:
        kind, default, name, lo, hi, body = key
        inner = {**known, name: f"#{len(known)}"}
        return (kind, default, normal(lo, known), normal(hi, known), normal(body, inner))
    parts = tuple(normal(part, known) for part in key[1:])
    if key[0] in ("and", "or"):
        flat = [
            one for part in parts for one in (part[1:] if isinstance(part, tuple) and part[:1] == key[:1] else (part,))
        ]
        return (key[0], *sorted(flat, key=repr))
    return (key[0], *parts)


def _conjuncts(guards: Iterable[Guard]) -> list[str]:
    found: list[str] = []
    for guard in guards:
        key = normal(guard.cond.key())
        found += map(repr, key[1:] if key[0] == "and" else (key,))
    return sorted(found)


def _variable(var: Var) -> object:
    values, sort = var.values, var.values.sort
    reach = (values.lo, values.hi, sort.name if sort else "", values.plus, values.is_bool)
    return var.name, var.kind, var.init, reach, [s.name for s in var.index]


def _update(update: Update) -> str:
    bound: dict[str, str] = {}
    ranges = []
    for binder in update.binders:
        ranges.append(_range(binder, bound))
        bound = {**bound, binder.name.name: f"#{len(bound)}"}

    def shown(expr: Expr) -> Any:
        return normal(expr.key(), bound)

    return repr((update.var.name, [shown(i) for i in update.index], ranges, shown(update.value)))


def _range(binder: Binder, bound: Mapping[str, str]) -> Any:
    return normal(binder.lo.key(), bound), normal(binder.hi.key(), bound)
