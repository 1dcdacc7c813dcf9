"""Python source of lines that hold lines (`events.nested`), for events of which all is known.

What leaves something unknown ends this replay: Kleene's goes on from that event.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from viewproof.refinement.events.lines import Line
from viewproof.refinement.events.nested import Arrived, Branch, Departs, Forget, Loop, OneOf
from viewproof.spec.engines.replay import Layout
from viewproof.spec.lang import Schema
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import Expr
from viewproof.spec.lang.schema import Var


class NestedText(ABC):
    """Writes `Branch`, `Loop`, `OneOf`, `Arrived`, `Forget` and `Departs`; the lines that they hold, by `_line`."""

    layout: Layout
    names: dict[str, str]
    place: Source | None
    indent: int

    @abstractmethod
    def put(self, text: str) -> None:
        """Write a line of the source."""

    @abstractmethod
    def expr(self, expr: Expr) -> str:
        """The text of an expression."""

    @abstractmethod
    def _need(self, *exprs: Expr) -> None:
        """Their columns are shown, or else the replay ends."""

    @abstractmethod
    def _line(self, line: Line) -> None:
        """Write any line."""

    def _nested(self, line: Line) -> None:
        """Lines that hold lines: what is not known ends the replay of what is."""
        match line:
            case Branch():
                self._need(line.cond)
                self._block(f"if {self.expr(line.cond)}:", line.then)
                if line.other:
                    self._block("else:", line.other)
            case Loop():
                self._need(line.over.lo, line.over.hi)
                name = self.names[line.over.name.name] = line.over.name.name
                lo, hi = self.expr(line.over.lo), self.expr(line.over.hi)
                self._block(f"for {name} in range({lo}, {hi} + 1):", line.body)
            case OneOf():
                self.put("raise Missing('which of several histories happened')")
            case Arrived():
                self._arrived(line)
            case Forget():
                self.put(f"raise Missing({line.cause!r})")
            case Departs():
                self.put(f"if C.departs({line.id!r}): raise Missing({line.id!r})")

    def _block(self, head: str, lines: tuple[Line, ...]) -> None:
        self.put(head)
        self.indent += 1
        if not lines:
            self.put("pass")
        for line in lines:
            self.place = line.source
            self._line(line)
        self.indent -= 1

    def _arrived(self, line: Arrived) -> None:
        """The fields of a message with one index are copied, and those with more for all that they have below it."""
        self._need(*line.index, line.by)
        var, index = line.var, [self.expr(i) for i in line.index]
        node, key = self.expr(line.by), self.layout.key(index)
        self.put(f"if not S.v_{var.name}.get({key}, {var.init}): raise C.unsent({var.name!r}, {key}, None, {var.init})")
        for field in fields_of(self.layout.schema, var):
            here, there = f"S.in_{field.name}[{node}]", f"S.v_{field.name}"
            if len(field.index) == len(index):
                self.put(f"{here}[{key}] = {there}.get({key}, {field.init})")
                continue
            below = f"{{k: v for k, v in {there}.items() if k[:{len(index)}] == ({', '.join(index)},)}}"
            self.put(f"{here}.update({below})")


def fields_of(schema: Schema, var: Var) -> list[Var]:
    """The fields of the message that the variable is one of, itself included, but no watermark: what arrives with it,
    at its index or below.
    """
    return [
        field
        for field in schema.vars.values()
        if (field is var or (bool(var.message) and field.message == var.message))
        and field.kind != "watermark"
        and field.index[: len(var.index)] == var.index
    ]
