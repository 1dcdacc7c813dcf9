"""What differs between two recorded specifications as text: guards and updates of actions, predicates, variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.engines.compare.load import Common, lemma, load
from viewproof.spec.engines.guards import guard_text
from viewproof.spec.engines.mutate.text import text
from viewproof.spec.lang import Spec
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Op, PredicateIR, Update

Lines = dict[Any, str]
"""What is recorded → how it is shown."""


@dataclass
class Change:
    """One action, predicate, lemma or variable that differs: its lines in one version only, and in which models."""

    kind: str
    name: str
    removed: list[str]
    added: list[str]
    models: list[str] = field(default_factory=list)

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
            seen = [Change("model", model, *(_whole(side[model]) if model in side else [] for side in (old, new)))]
        else:
            seen = list(_of_model(old[model], new[model]))
        for change in seen:
            found.setdefault(change.signature, change).models.append(model)
    return list(found.values())


def _of_model(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    one, two = Common(), Common()
    specs = load(old, one), load(new, two)
    yield from _pairs("variable", *({v.name: {str(v.values): v.name} for v in s.schema.vars.values()} for s in specs))
    yield from _pairs("action", *({ir.name: _action(ir) for ir in s.action_irs} for s in specs))
    for kind, of in (("invariant", _invariants), ("witness", _witnesses)):
        yield from _pairs(kind, *({ir.name: _predicate(ir) for ir in of(s)} for s in specs))
    lemmas = (
        {row["name"]: _predicate(lemma(row, common)) for row in data["lemmas"]}
        for data, common in ((old, one), (new, two))
    )
    yield from _pairs("lemma", *lemmas)


def _whole(data: Mapping[str, Any]) -> list[str]:
    """A model that only one version has: what it is made of."""
    spec = load(data, Common())
    parts = {
        "variables": spec.schema.vars,
        "actions": [ir.name for ir in spec.action_irs],
        "invariants": [ir.name for ir in spec.invariant_irs],
        "witnesses": [ir.name for ir in spec.witness_irs],
        "lemmas": [row["name"] for row in data["lemmas"]],
    }
    return [f"{kind}: {', '.join(names)}" for kind, names in parts.items() if names]


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
            alike = set(removed.values()) & set(added.values())
            shown = [
                [_recorded(key, line) if line in alike else line for key, line in side.items()]
                for side in (removed, added)
            ]
            if not alike or all(shown):
                yield Change(kind, name, *shown)


def _recorded(key: Any, line: str) -> str:
    """A line whose text is the same in both: what is recorded under it, as that differs."""
    return f"{line}    (recorded: {key[-1]})" if isinstance(key, tuple) and isinstance(key[-1], str) else line


def _conjuncts(cond: Expr) -> tuple[Expr, ...]:
    return cond.args if isinstance(cond, Op) and cond.op == "and" else (cond,)


def _action(ir: ActionIR) -> Lines:
    lines: Lines = {("params", repr([(p.name, p.sort.name) for p in ir.params])): f"parameters {_params(ir)}"}
    for guard in ir.guards:
        parts = _conjuncts(guard.cond)
        for part in parts:
            if not isinstance(part, Const):
                shown = f"require {guard_text(guard.source)}" if len(parts) == 1 else f"require {text(part)}"
                lines[("guard", part.key(), text(part))] = shown
    for update in ir.updates:
        lines[("update", _key(update), text(update.value))] = f"{_cell(update)} = {text(update.value)}"
    return lines


def _params(ir: ActionIR) -> str:
    return ", ".join(f"{p.name}: {p.sort.name}" for p in ir.params)


def _key(update: Update) -> tuple[Any, ...]:
    ranges = tuple((b.lo.key(), b.hi.key()) for b in update.binders)
    return (update.var.name, *(i.key() for i in update.index), ranges, update.value.key())


def _cell(update: Update) -> str:
    return f"{update.var.name}[{', '.join(text(i) for i in update.index)}]" if update.index else update.var.name


def _predicate(ir: PredicateIR) -> Lines:
    return {("cond", part.key(), text(part)): text(part) for part in _conjuncts(ir.cond)}
