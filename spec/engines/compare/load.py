"""A specification from plain data (`dump`), to be searched like any other; several share their variables and sorts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.engines.mutate.rebuild import runnable, value
from viewproof.spec.lang.definitions import Action, Predicate, Spec
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import (
    ActionIR,
    Binder,
    Const,
    Expr,
    Guard,
    Name,
    Op,
    Param,
    PredicateIR,
    Quant,
    Read,
    SortMax,
    Update,
    Within,
)
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Instance, Sort, Values


class UnlikeError(SpecError):
    """Two specifications declare one variable or set in different ways: their states cannot be compared."""


@dataclass
class Common:
    """The sets and variables of all that is loaded together."""

    sorts: dict[str, Sort] = field(default_factory=dict)
    schema: Schema = field(default_factory=Schema)

    def declare(self, data: Mapping[str, Any]) -> None:
        """Take in the sets and variables of a specification. Raises `UnlikeError`."""
        for name, (lo, ends_with) in data["sorts"].items():
            made = Sort(name, lo=lo, ends_with=ends_with)
            if self.sorts.setdefault(name, made) != made:
                raise UnlikeError(f"the set {name} is another one in each")
        for row in data["vars"]:
            var = self._var(row)
            known = self.schema.vars.setdefault(var.name, var)
            if (known.index, known.values, known.init) != (var.index, var.values, var.init):
                raise UnlikeError(f"the variable {var.name} has other indices, another range or another first value")

    def _var(self, row: Mapping[str, Any]) -> Var:
        sort = self.sorts[row["sort"]] if row["sort"] else None
        values = Values(row["lo"], row["hi"], sort, row["plus"], tuple(row["labels"]), row["is_bool"])
        index = tuple(self.sorts[name] for name in row["index"])
        return Var(row["name"], index, values, row["init"], row["kind"], row["doc"])


class _Reader:
    """The expressions of one specification; bound variables get names by their depth, so that equal ones are equal."""

    def __init__(self, common: Common, rows: Sequence[Sequence[Any]]) -> None:
        self._common, self._rows = common, rows

    def expr(self, number: int, bound: Mapping[str, Name]) -> Expr:
        """The expression of that number; `bound`: recorded name → the name that it has here."""
        row = self._rows[number]
        match row[0]:
            case "const":
                return Const(row[1], row[2])
            case "name":
                sort = self._common.sorts[row[2]] if row[2] else None
                return bound[row[1]] if row[1] in bound else Name(row[1], sort)
            case "last":
                return SortMax(self._common.sorts[row[1]])
            case "read":
                receiver = None if row[3] is None else self.expr(row[3], bound)
                index = tuple(self.expr(i, bound) for i in row[4])
                return Read(self._common.schema.vars[row[1]], index, receiver, row[2])
            case "within":
                return Within(self._common.sorts[row[1]], self.expr(row[2], bound))
            case "quant":
                binder, inner = self.binder(row[3], bound)
                return Quant(row[1], binder, self.expr(row[4], inner), row[2])
            case "op":
                return Op(row[1], tuple(self.expr(arg, bound) for arg in row[3]), row[2])
        raise SpecError(f"no expression {row[0]}")

    def binder(self, row: Sequence[int], bound: Mapping[str, Name]) -> tuple[Binder, dict[str, Name]]:
        """A bound variable under its name here, and what is bound inside."""
        _, recorded, sort = self._rows[row[0]]
        name = Name(f"{sort[:1].lower() or 'x'}{len(bound)}", self._common.sorts[sort] if sort else None)
        binder = Binder(name, self.expr(row[1], bound), self.expr(row[2], bound))
        return binder, {**bound, recorded: name}


def load(data: Mapping[str, Any], common: Common) -> Spec:
    """The specification in plain data. Raises `UnlikeError` if it does not go with what was loaded before."""
    common.declare(data)
    reader = _Reader(common, data["nodes"])
    irs = tuple(_action(row, reader, common) for row in data["actions"])
    predicates = {
        kind: tuple(predicate(row, data["nodes"], common) for row in data[kind]) for kind in ("invariants", "witnesses")
    }
    return assemble(data["name"], common.schema, irs, data, predicates, Instance(data["bounds"]))


def assemble(
    name: str, schema: Schema, irs: tuple[ActionIR, ...], data: Mapping[str, Any],
    predicates: Mapping[str, tuple[PredicateIR, ...]], instance: Instance,
) -> Spec:  # fmt: skip
    """A specification of recorded actions and predicates; `data` says which parameter of an action acts, and tags."""
    known = {row["name"]: row for row in data["actions"]}
    actions = tuple(_runs(ir, known.get(ir.name, {"actor": None, "tags": []})) for ir in irs)
    found = {kind: tuple(_holds(ir) for ir in rows) for kind, rows in predicates.items()}
    spec = Spec(name, schema, None, actions, found["invariants"], found["witnesses"], instance)
    spec.__dict__.update(action_irs=irs, invariant_irs=predicates["invariants"], witness_irs=predicates["witnesses"])
    return spec


def _runs(ir: ActionIR, row: Mapping[str, Any]) -> Action:
    like = Action(ir.name, lambda state: None, ir.params, ir.doc, row["actor"], frozenset(row["tags"]))
    return runnable(ir, like)


def _holds(ir: PredicateIR) -> Predicate:
    return Predicate(ir.name, ir.title, lambda state: value(ir.cond, state, {}), ir.doc)


def _source(row: Sequence[Any]) -> Source:
    return Source(*row)


def _action(row: Mapping[str, Any], reader: _Reader, common: Common) -> ActionIR:
    guards = tuple(Guard(reader.expr(cond, {}), _source(source)) for cond, source in row["guards"])
    updates = tuple(_update(update, reader, common) for update in row["updates"])
    params = tuple(Param(name, common.sorts[sort]) for name, sort in row["params"])
    return ActionIR(row["name"], params, guards, updates, _source(row["source"]), row["doc"])


def _update(row: Sequence[Any], reader: _Reader, common: Common) -> Update:
    bound: dict[str, Name] = {}
    binders = []
    for found in row[2]:
        binder, bound = reader.binder(found, bound)
        binders.append(binder)
    index = tuple(reader.expr(i, bound) for i in row[1])
    return Update(common.schema.vars[row[0]], index, tuple(binders), reader.expr(row[3], bound), _source(row[4]))


def lemma(row: Mapping[str, Any], common: Common) -> PredicateIR:
    """A recorded lemma in plain data, with nodes of its own, over the variables that are loaded."""
    common.declare(row)
    return predicate(row, row["nodes"], common)


def predicate(row: Mapping[str, Any], nodes: Sequence[Sequence[Any]], common: Common) -> PredicateIR:
    """A recorded predicate in plain data, over the variables that are loaded."""
    cond = _Reader(common, nodes).expr(row["cond"], {})
    return PredicateIR(row["name"], row["title"], cond, _source(row["source"]), row["doc"])
