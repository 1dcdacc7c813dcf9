"""Which mutants there are: one place of one recorded action, left out, weakened or exchanged.

A mutant's id names the place by what is recorded there and what is done to it, not by line, number or source text, so
it is the same in every size of a model, and stays so while other places change or the text is written anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from viewproof.spec.engines.guards import guard_text
from viewproof.spec.engines.mutate.rebuild import with_ir
from viewproof.spec.engines.mutate.text import text
from viewproof.spec.engines.mutate.weaken import branches, other_reads, weaker
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import ActionIR, Binder, Const, Guard, Name, SortMax, Update, Within
from viewproof.spec.lang.schema import Var

CRASH = "crash"
"""The tag of actions over which only durable cells keep their value."""


@dataclass(frozen=True)
class Mutant:
    """One mutant: action, place (what is recorded there; `written`: the guard's source text, empty for an update), what
    is done there (`kind`, and `part` if it is not the whole).
    """

    action: str
    place: str
    kind: str
    part: str
    source: Source
    changed: ActionIR
    written: str = ""
    number: int = 1

    @property
    def id(self) -> str:
        """Names it in tables."""
        again = f" ({self.number})" if self.number > 1 else ""
        return " | ".join(filter(None, (self.action, self.place, self.kind, self.part))) + again

    def of(self, spec: Spec) -> Spec:
        """The specification with this mutant in it."""
        return with_ir(spec, self.changed)


def mutants(spec: Spec, actions: frozenset[str] | None = None) -> Iterator[Mutant]:
    """All mutants of the actions (default: of all), in the order of the text."""
    seen: dict[str, int] = {}
    for ir in spec.action_irs:
        if (actions is not None and ir.name not in actions) or not ir.updates:
            continue  # an action that changes nothing is there for traces: whatever it asks, no state depends on it
        found = [*_of_guards(ir), *_of_updates(spec, ir)]
        if CRASH in spec.action(ir.name).tags:
            found += _of_durability(spec, ir)
        for mutant in found:
            seen[mutant.id] = seen.get(mutant.id, 0) + 1
            yield replace(mutant, number=seen[mutant.id])


def _of_guards(ir: ActionIR) -> Iterator[Mutant]:
    for n, guard in enumerate(ir.guards):
        if isinstance(guard.cond, (Within, Const)):
            continue
        place, written = text(guard.cond), guard_text(guard.source)

        def made(
            kind: str, part: str, guards: tuple[Guard, ...], guard: Guard = guard, place: str = place,
            written: str = written,
        ) -> Mutant:  # fmt: skip
            return Mutant(ir.name, place, kind, part, guard.source, replace(ir, guards=guards), written)

        yield made("left out", "", ir.guards[:n] + ir.guards[n + 1 :])
        for kind, part, cond in weaker(guard.cond):
            yield made(kind, part, (*ir.guards[:n], replace(guard, cond=cond), *ir.guards[n + 1 :]))


def _of_updates(spec: Spec, ir: ActionIR) -> Iterator[Mutant]:
    for n, update in enumerate(ir.updates):
        if update.var.kind == "ghost":
            continue
        place = (
            f"{update.var.name}[{', '.join(text(i) for i in update.index)}] = …" if update.index else update.var.name
        )

        def made(
            kind: str, part: str, updates: tuple[Update, ...], update: Update = update, place: str = place
        ) -> Mutant:
            return Mutant(ir.name, place, kind, part, update.source, replace(ir, updates=updates))

        yield made("left out", "", ir.updates[:n] + ir.updates[n + 1 :])
        for kind, part, value in (*branches(update.value), *other_reads(spec.schema, update.value)):
            yield made(kind, part, (*ir.updates[:n], replace(update, value=value), *ir.updates[n + 1 :]))


def _of_durability(spec: Spec, ir: ActionIR) -> Iterator[Mutant]:
    """What a crash leaves of a replica's cells, whole variables or a part of their rows: each lost in it."""
    actor = next((p for p in ir.params if p.name == spec.action(ir.name).actor), None)
    if actor is None:
        return
    for var in spec.schema.vars.values():
        if var.kind != "state" or not var.index or var.index[0].name != actor.sort.name:
            continue
        own = [u for u in ir.updates if u.var is var]
        if any(not u.binders or (isinstance(u.value, Const) and isinstance(u.binders[0].hi, SortMax)) for u in own):
            continue  # a crash gives it a value anyway
        others = tuple(u for u in ir.updates if u.var is not var)
        changed = replace(ir, updates=(*others, _reset(var, Name(actor.name, actor.sort), ir.source)))
        yield Mutant(ir.name, f"{var.name}[{actor.name}] is durable", "lost in a crash", "", ir.source, changed)


def _reset(var: Var, actor: Name, source: Source) -> Update:
    names = [Name(f"i_{n}", sort) for n, sort in enumerate(var.index[1:])]
    binders = tuple(Binder(name, Const(s.lo), SortMax(s)) for name, s in zip(names, var.index[1:], strict=True))
    return Update(var, (actor, *names), binders, Const(var.init, var.values.is_bool), source)
