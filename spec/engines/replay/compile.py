"""Compile a specification for replay: one Python function per action, for any number of views, ops, clients and
requests.

`functions["on_prepare"](S, r, o)` takes the step in place and returns -1, or returns the number of the first false
guard conjunct and leaves the store as it was. All right-hand sides are evaluated before the first write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType
from typing import Any

from viewproof.spec.engines.replay.emit import Emitter, refuse
from viewproof.spec.engines.replay.given import Given
from viewproof.spec.engines.replay.store import Layout, Store, cells_under, replace_under
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Name, Read, SortMax, Update, walk
from viewproof.spec.lang.schema import Var

TAKEN = -1

Step = Callable[..., int]


@dataclass(frozen=True)
class Replay:
    """A compiled specification: its functions, and the layout of its store."""

    spec: Spec
    layout: Layout
    functions: dict[str, Step]

    def new_store(self) -> Store:
        """A cluster in its initial state."""
        return self.layout.new_store()


@lru_cache(maxsize=1 << 14)
def code_of(text: str, file: str) -> CodeType:
    """The code of a function's text: specifications of one kind share most of their functions."""
    return compile(text, file, "exec")


def action_texts(spec: Spec, irs: Iterable[ActionIR] | None = None) -> dict[str, str]:
    """The text of all actions, or of `irs` in their place. Raises `SpecError` naming action and line for what cannot be
    lowered.
    """
    layout = Layout(spec.schema, spec.instance)
    emitter = Emitter(layout, spec.instance)
    recorded = spec.action_irs if irs is None else irs
    return {ir.name: _ActionText(ir, layout, emitter).source() for ir in recorded}


def compile_actions(spec: Spec, irs: Iterable[ActionIR] | None = None) -> dict[str, CodeType]:
    """The code of all actions. Raises `SpecError` as `action_texts` does."""
    return {name: code_of(text, "<replay>") for name, text in action_texts(spec, irs).items()}


def link(spec: Spec, codes: Mapping[str, CodeType], numbers: Mapping[str, int]) -> Replay:
    """The replay of a specification from the code of one of its kind (`given`), with its own numbers."""
    scope: dict[str, Any] = {"cells_under": cells_under, "replace_under": replace_under}
    scope |= {f"g_{name}": value for name, value in numbers.items()}
    for code in codes.values():
        exec(code, scope)
    return Replay(spec, Layout(spec.schema, spec.instance), {name: scope[f"a_{name}"] for name in codes})


def compile_spec(spec: Spec, irs: Iterable[ActionIR] | None = None) -> Replay:
    """Compile all actions, or `irs` in their place. Raises `SpecError` naming action and line for what cannot be
    lowered.
    """
    return link(spec, compile_actions(spec, irs), {})


class _ActionText:
    """Writes the function of one action."""

    def __init__(self, ir: ActionIR, layout: Layout, emitter: Emitter) -> None:
        self.ir = ir
        self.layout = layout
        self.emitter = emitter
        self.names = {p.name: p.name for p in ir.params}
        self.lines: list[str] = []
        self.writes: list[str] = []

    def source(self) -> str:
        params = ", ".join(["S", *self.names])
        for number, guard in enumerate(self.ir.guards):
            try:
                condition = self.emitter.text(guard.cond, self.names)
            except SpecError as error:
                raise refuse(self.ir.name, guard.source, error) from error
            if condition not in ("1", "True"):
                self.lines.append(f"if not {condition}: return {number}")
        for number, update in enumerate(self.ir.updates):
            try:
                self._update(number, update)
            except SpecError as error:
                raise refuse(self.ir.name, update.source, error) from error
        body = _share_reads([*self.lines, *self.writes], self._scalar_reads())
        body = _share_after_guards(body, self._update_reads(body))
        text = "\n    ".join([*body, f"return {TAKEN}"])
        return f"def a_{self.ir.name}({params}):\n    {text}"

    def _update(self, number: int, update: Update) -> None:
        if update.binders:
            self._range_update(number, update)
            return
        index = [self.emitter.text(i, self.names) for i in update.index]
        keys = []
        for position, (text, expr) in enumerate(zip(index, update.index, strict=True)):
            keys.append(self._temporary(f"k{number}_{position}", text, expr))
        value = self._temporary(f"t{number}", self.emitter.text(update.value, self.names), update.value)
        self.writes.append(self.layout.write(update.var, keys, value))

    def _temporary(self, name: str, text: str, expr: Expr) -> str:
        if isinstance(expr, (Const, Given, Name)):
            return text
        self.lines.append(f"{name} = {text}")
        return name

    def _range_update(self, number: int, update: Update) -> None:
        if self._clears_row(update):
            self.writes.append(f"S.v_{update.var.name}[{self.emitter.text(update.index[0], self.names)}].clear()")
            return
        if self._copies_row(update):
            self._row_copy(number, update)
            return
        names = dict(self.names)
        loops = []
        for binder in update.binders:
            lo, hi = self.emitter.bounds(binder, names)
            names[binder.name.name] = binder.name.name
            loops.append(f"for {binder.name.name} in range({lo}, {hi} + 1)")
        index = ", ".join(self.emitter.text(i, names) for i in update.index)
        value = self.emitter.text(update.value, names)
        self.lines.append(f"u{number} = [({index}, {value}) {' '.join(loops)}]")
        keys = [f"i{p}" for p in range(len(update.index))]
        self.writes.append(f"for {', '.join(keys)}, x in u{number}: {self.layout.write(update.var, keys, 'x')}")

    def _clears_row(self, update: Update) -> bool:
        """Is this a reset of a replica's whole row (`row.update((r, Client), lambda c: 0)`) over an unbounded sort?"""
        binder = update.binders[0]
        return (
            self.layout.shape(update.var) == "rows"
            and len(update.binders) == len(update.index) - 1
            and isinstance(binder.hi, SortMax)
            and self.emitter.instance.hi(binder.hi.sort) is None
            and isinstance(update.value, Const)
            and update.value.value == update.var.init
        )

    def _copies_row(self, update: Update) -> bool:
        """Is this a copy over an unbounded sort, last index of both (`to.update((v, Client), lambda c: of[r, c])`)?"""
        binder, read = update.binders[-1], update.value
        if not isinstance(binder.hi, SortMax) or self.emitter.instance.hi(binder.hi.sort) is not None:
            return False
        if not isinstance(read, Read) or read.receiver is not None or read.after:
            return False
        rest = [n for part in (*read.index[:-1], *update.index[:-1]) for n in walk(part)]
        ends = (read.index[-1], update.index[-1])
        last = binder.name.name
        return all(isinstance(e, Name) and e.name == last for e in ends) and not any(
            isinstance(n, Name) and n.name == last for n in rest
        )

    def _row_copy(self, number: int, update: Update) -> None:
        names, loops = dict(self.names), ""
        for binder in update.binders[:-1]:
            lo, hi = self.emitter.bounds(binder, names)
            names[binder.name.name] = binder.name.name
            loops += f" for {binder.name.name} in range({lo}, {hi} + 1)"
        assert isinstance(update.value, Read)
        source, of = self._table(update.value.var, [self.emitter.text(i, names) for i in update.value.index[:-1]])
        prefix = _tuple_text([self.emitter.text(i, names) for i in update.index[:-1]])
        cells = f"({prefix}, cells_under({source}, {of}))"
        self.lines.append(f"u{number} = [{cells}{loops}]" if loops else f"u{number} = [{cells}]")
        rows = self.layout.shape(update.var) == "rows"
        target = f"S.v_{update.var.name}[p[0]], p[1:]" if rows else f"S.v_{update.var.name}, p"
        self.writes.append(f"for p, x in u{number}: replace_under({target}, x)")

    def _table(self, var: Var, index: list[str]) -> tuple[str, str]:
        """Text of the dict that holds the cells of a variable, and of the prefix of their keys."""
        if self.layout.shape(var) == "rows":
            return f"S.v_{var.name}[{index[0]}]", _tuple_text(index[1:])
        return f"S.v_{var.name}", _tuple_text(index)

    def _scalar_reads(self) -> list[str]:
        """Reads that are safe anywhere and used often: per-replica scalars at a parameter."""
        exprs = [g.cond for g in self.ir.guards] + [u.value for u in self.ir.updates]
        for update in self.ir.updates:
            exprs += [*update.index, *(e for b in update.binders for e in (b.lo, b.hi))]
        texts: dict[str, int] = {}
        for node in (n for e in exprs for n in walk(e)):
            if isinstance(node, Read) and self._is_scalar_at_parameter(node):
                text = self.emitter.read(node, self.names)
                texts[text] = texts.get(text, 0) + 1
        return [text for text, uses in texts.items() if uses > 1]

    def _is_scalar_at_parameter(self, read: Read) -> bool:
        if self.layout.shape(read.var) != "list" or read.receiver is not None:
            return False
        return isinstance(read.index[0], Name) and read.index[0].name in self.names

    def _update_reads(self, body: list[str]) -> list[str]:
        """Texts of reads in updates that hold no bound variable and cannot fail, shortest first."""
        exprs = [e for u in self.ir.updates for e in (u.value, *u.index)]
        exprs += [e for u in self.ir.updates for b in u.binders for e in (b.lo, b.hi)]
        found = set()
        for node in (n for e in exprs for n in walk(e)):
            if isinstance(node, Read) and self.layout.shape(node.var) in ("rows", "table") and self._is_free(node):
                found.add(self.emitter.read(node, self.names))
        return sorted(found, key=lambda text: (len(text), text))

    def _is_free(self, read: Read) -> bool:
        bound = any(isinstance(n, Name) and n.name not in self.names for n in walk(read))
        row = self.layout.shape(read.var) == "rows" and not isinstance(read.index[0], (Name, Const))
        return not bound and not row


def _tuple_text(parts: list[str]) -> str:
    return "(" + "".join(f"{part}, " for part in parts) + ")"


def _share_after_guards(lines: list[str], reads: list[str]) -> list[str]:
    """Read cells that updates use more than once only once, between the last guard and the first update."""
    guards = [line for line in lines if line.startswith(("if not ", "c"))]
    rest = lines[len(guards) :]
    shared: list[str] = []
    for line in guards:
        name, _, value = line.partition(" = ")
        if line.startswith("c"):
            reads = [text.replace(value, name) for text in reads]
    for text in reads:
        for earlier in shared:
            name, _, value = earlier.partition(" = ")
            text = text.replace(value, name)
        if sum(line.count(text) for line in rest) > 1:
            name = f"d{len(shared)}"
            shared.append(f"{name} = {text}")
            rest = [line.replace(text, name) for line in rest]
    return [*guards, *shared, *rest]


def _share_reads(lines: list[str], reads: list[str]) -> list[str]:
    """Read each shared cell once, before everything else; never on the left of an assignment."""
    shared = []
    for number, text in enumerate(sorted(reads)):
        shared.append(f"c{number} = {text}")
        lines = [_replace_reads(line, text, f"c{number}") for line in lines]
    return [*shared, *lines]


def _replace_reads(line: str, text: str, name: str) -> str:
    return line if line.startswith(text + " = ") else line.replace(text, name)
