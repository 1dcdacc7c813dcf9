"""Identity of a specification by what is recorded, not by where it stands: actions, predicates, bounds."""

from __future__ import annotations

import hashlib

from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.expr import Update
from viewproof.spec.lang.schema import Var


def digest(*specs: Spec) -> str:
    """Equal for specifications whose recorded actions, invariants, witnesses, ranges and bounds are equal."""
    state = hashlib.blake2b(digest_size=16)
    for spec in specs:
        for var in spec.schema.vars.values():
            state.update(repr(_variable(var)).encode())
        for ir in spec.action_irs:
            params = [(p.name, p.sort.name) for p in ir.params]
            guards = [g.cond.key() for g in ir.guards]
            state.update(repr((ir.name, params, guards, [_update(u) for u in ir.updates])).encode())
        for predicate in (*spec.invariant_irs, *spec.witness_irs):
            state.update(repr((predicate.name, predicate.cond.key())).encode())
        state.update(repr(sorted(spec.instance.bounds.items())).encode())
    return state.hexdigest()


def _variable(var: Var) -> object:
    values, sort = var.values, var.values.sort
    reach = (values.lo, values.hi, sort.name if sort else "", values.plus, values.is_bool)
    return var.name, var.kind, var.init, reach, [s.name for s in var.index]


def _update(update: Update) -> object:
    binders = [(b.name.name, b.lo.key(), b.hi.key()) for b in update.binders]
    return update.var.name, [i.key() for i in update.index], binders, update.value.key()
