"""Values that the specification's own text gives a name to become LET definitions under that name.

An action is run once more on symbols, and whenever it takes a guard or assigns, the local variables of its functions
are looked at: `o = state.commit_min[r] + 1` gives `LET o == commit_min[r] + 1`. TLC evaluates a definition where it
is used, so a read behind a condition stays behind it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from viewproof.spec.engines.tla.tidy import tidy, tidy_binder
from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.expr import ActionIR, Binder, Expr, Name, Op, Quant, Read, Update, Within, walk
from viewproof.spec.lang.record import Recorder
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.vocabulary import using


@dataclass(frozen=True)
class Body:
    """An action as it is printed: definitions, guard conjuncts, updates."""

    definitions: tuple[tuple[Name, Expr], ...]
    conjuncts: tuple[Expr, ...]
    updates: tuple[Update, ...]


def body_of(spec: Spec, ir: ActionIR, taken: Collection[str]) -> Body:
    """The body of a recorded action, with the names of its own text; a read whose name is taken stays as it is."""
    conjuncts: list[Expr] = []
    for guard in ir.guards:
        cond = tidy(guard.cond)
        conjuncts += cond.args if isinstance(cond, Op) and cond.op == "and" else (cond,)
    plain = Body((), tuple(conjuncts), tuple(map(_tidy_update, ir.updates)))
    candidates = [
        (name, value)
        for name, value in _local_values(spec, spec.action(ir.name))
        if not (isinstance(value, Read) and label_of(name) in taken)
    ]
    while True:
        body = _abbreviated(plain, candidates)
        uses = [n.name for e in _expressions(body) for n in walk(e) if isinstance(n, Name)]
        kept = [(name, value) for name, value in candidates if uses.count(name.name) > 1]
        if len(kept) == len(candidates):
            return body
        candidates = kept


class _Watcher(Recorder):
    """Records, and looks at the local variables of the functions at work."""

    _OWN = Recorder._OWN | {"found"}

    def __init__(self, spec: Spec) -> None:
        super().__init__(spec.schema, spec.cfg)
        self.found: dict[tuple[Any, ...], tuple[str, Expr]] = {}

    def _look(self) -> None:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code is not _local_values.__code__:
            if not frame.f_globals.get("__name__", "").startswith("viewproof.spec.lang"):
                for label, value in frame.f_locals.items():
                    if isinstance(value, (Op, Read, Quant)):
                        known = tidy(value)
                        self.found.setdefault(known.key(), (label, known))
            frame = frame.f_back

    def require(self, cond: Any) -> None:
        """Look, then record."""
        self._look()
        super().require(cond)

    def assign(self, var: Var, index: tuple[Expr, ...], binders: tuple[Binder, ...], value: Any) -> None:
        """Look, then record."""
        self._look()
        super().assign(var, index, binders, value)


def _local_values(spec: Spec, action: Action) -> list[tuple[Name, Expr]]:
    """Named values of an action, in the order in which they were met; only those of its parameters."""
    watcher = _Watcher(spec)
    with using(watcher):
        action.fn(watcher, **{p.name: p.term for p in action.params})
    params = {p.name for p in action.params}
    closed = [(label, value) for label, value in watcher.found.values() if set(_free(value)) <= params]
    return [(Name(f"{label}={n}"), value) for n, (label, value) in enumerate(closed)]


def label_of(name: Name) -> str:
    """What the specification's text calls a definition."""
    return name.name.partition("=")[0]


def _free(expr: Expr) -> Iterator[str]:
    bound = {n.binder.name.name for n in walk(expr) if isinstance(n, Quant)}
    return (n.name for n in walk(expr) if isinstance(n, Name) and n.name not in bound)


def _tidy_update(update: Update) -> Update:
    return replace(
        update,
        index=tuple(map(tidy, update.index)),
        binders=tuple(map(tidy_binder, update.binders)),
        value=tidy(update.value),
    )


def _expressions(body: Body) -> Iterable[Expr]:
    yield from (value for _, value in body.definitions)
    yield from body.conjuncts
    for update in body.updates:
        yield from (update.value, *update.index, *(e for b in update.binders for e in (b.lo, b.hi)))


def _abbreviated(plain: Body, candidates: list[tuple[Name, Expr]]) -> Body:
    """The body with each candidate in the place of its value."""
    names = {value.key(): name for name, value in candidates}

    def swap(expr: Expr) -> Expr:
        return _substitute(expr, names)

    definitions = []
    for name, value in candidates:
        others = {key: n for key, n in names.items() if n is not name}
        definitions.append((name, _substitute(value, others)))
    updates = tuple(
        replace(
            u,
            index=tuple(map(swap, u.index)),
            binders=tuple(_ends(b, swap) for b in u.binders),
            value=swap(u.value),
        )
        for u in plain.updates
    )
    return Body(_ordered(definitions), tuple(map(swap, plain.conjuncts)), updates)


def _ends(binder: Binder, change: Callable[[Expr], Expr]) -> Binder:
    return Binder(binder.name, change(binder.lo), change(binder.hi))


def _substitute(expr: Expr, names: Mapping[tuple[Any, ...], Name]) -> Expr:
    if isinstance(expr, (Op, Read, Quant)) and expr.key() in names:
        return names[expr.key()]

    def go(part: Expr) -> Expr:
        return _substitute(part, names)

    if isinstance(expr, Read):
        return Read(expr.var, tuple(map(go, expr.index)), None, expr.after)
    if isinstance(expr, Within):
        return Within(expr.sort, go(expr.value))
    if isinstance(expr, Quant):
        return replace(expr, binder=_ends(expr.binder, go), body=go(expr.body))
    if isinstance(expr, Op):
        return Op(expr.op, tuple(map(go, expr.args)), expr.is_bool)
    return expr


def _ordered(definitions: list[tuple[Name, Expr]]) -> tuple[tuple[Name, Expr], ...]:
    """Each definition after those that it uses."""
    waiting, done = list(definitions), list[tuple[Name, Expr]]()
    while waiting:
        names = {name.name for name, _ in waiting}
        ready = next(
            n for n, d in enumerate(waiting) if not names & {x.name for x in walk(d[1]) if isinstance(x, Name)}
        )
        done.append(waiting.pop(ready))
    return tuple(done)
