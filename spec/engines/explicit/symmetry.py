"""Symmetry over a sort: members that no part of the specification tells apart may be exchanged.

States that differ only by a permutation of the members are one: the fingerprint of a state is the smallest of those of
its permutations, so the first of them that is met stands for all. Verdicts, depth and the length of a counterexample
are the same; states and steps are counted once per class. It is sound where the specification treats the sort as a
mere set, which is checked here on all actions and predicates: members are compared for equality with each other or
with a value outside the sort ("none"), used as indices, assigned and quantified over as a whole, and nothing else.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.engines.explicit.layout import Layout
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Sort

PERMUTATIONS_MAX = 120
MEMBER, NONE, PLAIN = "member", "none", "plain"


def sort_of(spec: Spec, name: str) -> Sort:
    """The sort of that name that the specification's variables or actions use."""
    sorts = {
        s.name: s for v in spec.schema.vars.values() for s in (*v.index, *([v.values.sort] if v.values.sort else []))
    }
    if name not in sorts:
        raise SpecError(f"no sort {name}; there are: {', '.join(sorted(sorts))}")
    return sorts[name]


class Check:
    """Refuses a specification that tells members of the sort apart."""

    def __init__(self, spec: Spec, sort: Sort) -> None:
        self.sort = sort
        self.source: Source | None = None
        for var in spec.schema.vars.values():
            if self._holds_members(var) and (var.values.plus or var.init >= sort.lo or var.values.lo != 0):
                raise SpecError(
                    f"no symmetry over {sort.name}: {var.name} starts at, or reaches past, one of its members"
                )
        for action in spec.action_irs:
            for guard in action.guards:
                self.source = guard.source
                self.kind(guard.cond)
            for update in action.updates:
                self.source = update.source
                self._binders(update.binders)
                self._indices(update.var, update.index)
                self._assigned(update.var, self.kind(update.value))
        for predicate in (*spec.invariant_irs, *spec.witness_irs):
            self.source = predicate.source
            self.kind(predicate.cond)

    def _refuse(self, what: str) -> SpecError:
        return SpecError(f"no symmetry over {self.sort.name}: {what}", self.source)

    def _holds_members(self, var: Var) -> bool:
        return var.values.sort is not None and var.values.sort.name == self.sort.name

    def _assigned(self, var: Var, kind: str) -> None:
        if self._holds_members(var) != (kind == MEMBER) and kind != NONE:
            raise self._refuse(f"{var.name} is assigned a value of another kind")
        if self._holds_members(var) and kind == PLAIN:
            raise self._refuse(f"{var.name} is assigned a number")

    def _binders(self, binders: Iterable[Binder]) -> None:
        for binder in binders:
            sort = binder.name.sort
            if sort is not None and sort.name == self.sort.name:
                whole = isinstance(binder.lo, Const) and binder.lo.value == sort.lo and isinstance(binder.hi, SortMax)
                if not whole:
                    raise self._refuse("a range of it is used, not the whole")
            elif MEMBER in (self.kind(binder.lo), self.kind(binder.hi)):
                raise self._refuse("a member bounds a range")

    def _indices(self, var: Var, index: tuple[Expr, ...]) -> None:
        for expr, sort in zip(index, var.index, strict=True):
            if (self.kind(expr) == MEMBER) != (sort.name == self.sort.name):
                raise self._refuse(f"{var.name} is indexed by a value of another kind")

    def kind(self, expr: Expr) -> str:
        """Is the value a member of the sort, a constant below it ("none"), or something else?"""
        if isinstance(expr, Const):
            return NONE if not expr.is_bool and expr.value < self.sort.lo else PLAIN
        if isinstance(expr, Name):
            return MEMBER if expr.sort is not None and expr.sort.name == self.sort.name else PLAIN
        if isinstance(expr, SortMax):
            if expr.sort.name == self.sort.name:
                raise self._refuse("its largest member is used")
            return PLAIN
        if isinstance(expr, Read):
            self._indices(expr.var, expr.index)
            if expr.receiver is not None and self.kind(expr.receiver) == MEMBER:
                raise self._refuse("a member receives")
            return MEMBER if self._holds_members(expr.var) else PLAIN
        if isinstance(expr, Within):
            if self.kind(expr.value) == MEMBER or expr.sort.name == self.sort.name:
                raise self._refuse("within() is asked of it")
            return PLAIN
        if isinstance(expr, Quant):
            self._binders((expr.binder,))
            if self.kind(expr.body) == MEMBER:
                raise self._refuse("a largest member is sought")
            return PLAIN
        assert isinstance(expr, Op)
        return self._operation(expr)

    def _operation(self, expr: Op) -> str:
        kinds = [self.kind(arg) for arg in expr.args]
        if expr.op == "ite":
            kinds = kinds[1:]
        if MEMBER not in kinds:
            return PLAIN if set(kinds) != {NONE} or expr.op != "ite" else NONE
        if PLAIN in kinds or expr.op not in ("eq", "ne", "ite"):
            raise self._refuse(f"members are told apart by {expr.op}")
        return MEMBER if expr.op == "ite" else PLAIN


def permuted(layout: Layout, spec: Spec, sort: Sort) -> list[NDArray[np.uint64]]:
    """Per permutation of the members the hash table that gives a state the fingerprint of its permutation.

    The first is the layout's own. Refused: a specification that tells members apart, or too many permutations.
    """
    Check(spec, sort)
    members = list(spec.instance.members(sort))
    own = layout.zobrist()
    tables = []
    for order in itertools.islice(itertools.permutations(members), PERMUTATIONS_MAX + 1):
        image = dict(zip(members, order, strict=True))
        table = own.copy()
        for place in layout.places.values():
            var = place.var
            ranges = [spec.instance.members(s) for s in var.index]
            values = list(range(place.hi + 1))
            if var.values.sort is not None and var.values.sort.name == sort.name:
                values = [image.get(v, v) for v in values]
            for index in itertools.product(*ranges):
                moved = tuple(image[i] if s.name == sort.name else i for i, s in zip(index, var.index, strict=True))
                source, target = layout.cell(var.name, index), layout.cell(var.name, moved)
                for raw in range(place.hi - place.lo + 1):
                    to = values[raw + place.lo] - place.lo if place.lo == 0 else raw
                    table[source, raw] = own[target, to]
        tables.append(table)
    if len(tables) > PERMUTATIONS_MAX:
        raise SpecError(f"symmetry over {sort.name}: {len(members)} members have more than {PERMUTATIONS_MAX} orders")
    return tables
