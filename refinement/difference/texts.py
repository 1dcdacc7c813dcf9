"""What differs between two recorded specifications as text: guards and updates of actions, predicates, variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from viewproof.spec.engines.compare.load import Common, lemma, load
from viewproof.spec.engines.guards import guard_text
from viewproof.spec.engines.mutate.text import text
from viewproof.spec.lang import Spec
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Op, PredicateIR, Quant, Update
from viewproof.spec.lang.schema import Var


class Line(NamedTuple):
    """How something that is recorded is shown, and where it was written (file:line; empty: nowhere alone)."""

    text: str
    place: str = ""


Lines = dict[Any, Line]
"""What is recorded → how it is shown."""


@dataclass
class Change:
    """One action, predicate, lemma or variable that differs: its lines in one version only, in which models, and where
    it is written (file:line of the new version, or of the old one where only that has it).
    """

    kind: str
    name: str
    removed: list[str]
    added: list[str]
    models: list[str] = field(default_factory=list)
    place: str = ""

    @property
    def signature(self) -> tuple[Any, ...]:
        """Equal for one change seen in several models."""
        return self.kind, self.name, tuple(self.removed), tuple(self.added)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return dict(vars(self))


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What differs in the models that either version has (name → plain data with lemmas)."""
    found: dict[tuple[Any, ...], Change] = {}
    for model in dict.fromkeys((*old, *new)):
        if model not in old or model not in new:
            gone, fresh = (
                _whole(one[model], _elsewhere(other)) if model in one else [] for one, other in ((old, new), (new, old))
            )
            seen = [Change("model", model, gone, fresh)]
        else:
            seen = list(_of_model(old[model], new[model]))
        for change in seen:
            found.setdefault(change.signature, change).models.append(model)
    return list(found.values())


def changes_of_checks(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What differs in the sizes that a check searches, by model, and in the known mistakes (`portfolios`, `mistakes`;
    null or missing: that version says nothing of them).
    """
    found: dict[tuple[Any, ...], Change] = {}
    before, after = (side.get("portfolios") or {} for side in (old, new))
    for model in (name for name in before if name in after and before[name] != after[name]):
        gone, fresh = (
            [line for line in one[model] if line not in other[model]]
            for one, other in ((before, after), (after, before))
        )
        if gone or fresh:
            change = Change("portfolio", model, gone, fresh)
            found.setdefault((tuple(gone), tuple(fresh)), change).models.append(model)
    one, two = (side.get("mistakes") for side in (old, new))
    if one is not None and two is not None:
        for id in dict.fromkeys((*one, *two)):
            gone, fresh = ([side[id]] if id in side else [] for side in (one, two))
            if gone != fresh:
                found[("mistake", id)] = Change("mistake", id, gone, fresh)
    return list(found.values())


def _of_model(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    one, two = Common(), Common()
    specs = load(old, one), load(new, two)
    yield from _pairs("variable", *({v.name: _variable(v) for v in s.schema.vars.values()} for s in specs))
    yield from _pairs("action", *({ir.name: _action(ir) for ir in s.action_irs} for s in specs))
    for kind, of in (("invariant", _invariants), ("witness", _witnesses)):
        yield from _pairs(kind, *({ir.name: _predicate(ir) for ir in of(s)} for s in specs))
    lemmas = (
        {row["name"]: _predicate(lemma(row, common)) for row in data["lemmas"]}
        for data, common in ((old, one), (new, two))
    )
    yield from _pairs("lemma", *lemmas)


def _made_of(data: Mapping[str, Any]) -> dict[str, list[str]]:
    """The names of what a model is made of, by kind."""
    kinds = {"variables": "vars", "actions": "actions", "invariants": "invariants", "witnesses": "witnesses"}
    return {kind: [row["name"] for row in data[key]] for kind, key in (*kinds.items(), ("lemmas", "lemmas"))}


def _elsewhere(models: Mapping[str, Any]) -> dict[str, set[str]]:
    """The names that any of the models has, by kind."""
    found: dict[str, set[str]] = {}
    for data in models.values():
        for kind, names in _made_of(data).items():
            found.setdefault(kind, set()).update(names)
    return found


def _whole(data: Mapping[str, Any], known: Mapping[str, set[str]]) -> list[str]:
    """A model that only one version has: what it is made of; of that which the other version's models know, how many
    there are.
    """
    lines = []
    for kind, names in _made_of(data).items():
        own = [name for name in names if name not in known.get(kind, ())]
        others = len(names) - len(own)
        told = [("and " if own else "") + f"{others} that other models have"] if others else []
        if names:
            lines.append(f"{kind}: {', '.join([*own, *told])}")
    return lines


def _invariants(spec: Spec) -> tuple[PredicateIR, ...]:
    return spec.invariant_irs


def _witnesses(spec: Spec) -> tuple[PredicateIR, ...]:
    return spec.witness_irs


def _pairs(kind: str, old: Mapping[str, Lines], new: Mapping[str, Lines]) -> Iterator[Change]:
    for name in dict.fromkeys((*old, *new)):
        before, after = old.get(name, {}), new.get(name, {})
        removed = {key: line for key, line in before.items() if key not in after}
        added = {key: line for key, line in after.items() if key not in before}
        if removed or added or (name in old) != (name in new):
            alike = {line.text for line in removed.values()} & {line.text for line in added.values()}
            gone, fresh = (
                [_recorded(key, line.text) if line.text in alike else line.text for key, line in side.items()]
                for side in (removed, added)
            )
            places = (line.place for line in (*added.values(), *removed.values()) if line.place)
            if not alike or (gone and fresh):
                yield Change(kind, name, gone, fresh, place=next(places, ""))


def _recorded(key: Any, line: str) -> str:
    """A line whose text is the same in both: what is recorded under it, as that differs."""
    return f"{line}    (recorded: {key[-1]})" if isinstance(key, tuple) and isinstance(key[-1], str) else line


def _conjuncts(cond: Expr) -> tuple[Expr, ...]:
    return cond.args if isinstance(cond, Op) and cond.op == "and" else (cond,)


def _action(ir: ActionIR) -> Lines:
    called = Line(f"parameters {_params(ir)}", _place(ir.source))
    lines: Lines = {("params", repr([(p.name, p.sort.name) for p in ir.params])): called}
    for guard in ir.guards:
        parts = _conjuncts(guard.cond)
        for part in parts:
            if not isinstance(part, Const):
                shown = f"require {guard_text(guard.source)}" if len(parts) == 1 else f"require {text(part)}"
                lines[("guard", part.key(), text(part))] = Line(shown, _place(guard.source))
    for update in ir.updates:
        shown = f"{_cell(update)} = {text(update.value)}"
        lines[("update", _key(update), text(update.value))] = Line(shown, _place(update.source))
    return lines


def _variable(var: Var) -> Lines:
    """A variable: its indices, range and first value."""
    values = var.values
    of = values.sort.name + (f" + {values.plus}" if values.plus else "") if values.sort else str(values.hi)
    told = "Bool" if values.is_bool else " | ".join(values.labels) or f"{values.lo} .. {of}"
    index = f"[{', '.join(sort.name for sort in var.index)}]" if var.index else ""
    line = f"{var.name}{index}: {told}" + (f", first {values.show(var.init)}" if var.init else "")
    return {("variable", line): Line(line)}


def _place(source: Source) -> str:
    return f"{source.file}:{source.line}" if source.file else ""


def _params(ir: ActionIR) -> str:
    return ", ".join(f"{p.name}: {p.sort.name}" for p in ir.params)


def _key(update: Update) -> tuple[Any, ...]:
    ranges = tuple((b.lo.key(), b.hi.key()) for b in update.binders)
    return (update.var.name, *(i.key() for i in update.index), ranges, update.value.key())


def _cell(update: Update) -> str:
    return f"{update.var.name}[{', '.join(text(i) for i in update.index)}]" if update.index else update.var.name


def _predicate(ir: PredicateIR) -> Lines:
    return {("cond", part.key(), text(part)): Line(text(part), _place(ir.source)) for part in _statements(ir.cond)}


def _statements(cond: Expr) -> Iterator[Expr]:
    """What a predicate says, one by one: what is said of all members is said in parts, too."""
    for part in _conjuncts(cond):
        if isinstance(part, Quant) and part.kind == "forall":
            yield from (replace(part, body=said) for said in _statements(part.body))
        else:
            yield part
