"""Cells of a replayed cluster of which not everything is known: the state of a Kleene replay.

A cell holds a number, or a span of numbers where the evidence does not say which. Cells *belong* to whose doing they
are: a variable of a replica to that replica, a message to its sender, all others to nobody in particular. Where the
evidence about a replica has a hole (`forget`), each of its cells may hold anything; a message that was sent stays sent.
Nothing here knows the protocol.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from viewproof.spec.engines.guards.cells import Span, Value, declared, ends, span
from viewproof.spec.lang.concrete import Index, State
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Instance

NOBODY = -1
"""Owner of a cell that no replica alone writes."""

_ABSENT: Any = object()

Trail = list[tuple[dict[Index, Value], Index, Value, Value, tuple[str, Index, int | None]]]
"""What was written: table, index, what the table had there, what the cell was, and its name."""


def message_groups(schema: Schema) -> list[list[Var]]:
    """The registers that are the fields of one message, and have the same index. A watermark is alone."""
    groups: dict[tuple[Any, ...], list[Var]] = {}
    for var in schema.vars.values():
        if var.is_message:
            alone = var.kind == "watermark" or not var.message
            groups.setdefault((alone, var.name if alone else var.message, var.index), []).append(var)
    return list(groups.values())


def hull(a: Value, b: Value) -> Value:
    """The smallest span with both."""
    if a == b:
        return a
    (a_lo, a_hi), (b_lo, b_hi) = ends(a), ends(b)
    lo = None if a_lo is None or b_lo is None else min(a_lo, b_lo)
    return span(lo, None if a_hi is None or b_hi is None else max(a_hi, b_hi))


def meet(a: Value, b: Value) -> Value | None:
    """What is in both; None: nothing is."""
    (a_lo, a_hi), (b_lo, b_hi) = ends(a), ends(b)
    lo = b_lo if a_lo is None else a_lo if b_lo is None else max(a_lo, b_lo)
    hi = b_hi if a_hi is None else a_hi if b_hi is None else min(a_hi, b_hi)
    return None if lo is not None and hi is not None and lo > hi else span(lo, hi)


class PartialCells:
    """A reader of cells (`guards.Cells`) that can be written, too.

    Cells of a variable in `silent` may rise at any time, and nothing shows it: of what is written to them only the
    lower end stays known. `why` says of a cell that is not known what evidence was missing; `trail`, while it is a
    list, notes what is written, so that it can be taken back or joined with what was (`undo`, `join`).
    """

    def __init__(self, schema: Schema, instance: Instance, actors: str) -> None:
        self.schema = schema
        self.instance = instance
        self.actors = actors
        self.known: dict[str, dict[Index, Value]] = {name: {} for name in schema.vars}
        self.inboxes: dict[int, dict[str, dict[Index, Value]]] = {}
        self.open: dict[tuple[str, int], str] = {}
        self.open_inbox: dict[int, str] = {}
        self.why: dict[tuple[str, Index, int | None], str] = {}
        self.trail: Trail | None = None
        self.silent: dict[str, str] = {}
        self.groups = message_groups(schema)
        self.spans = {name: declared(var, instance) for name, var in schema.vars.items()}
        self.least = {name: tuple(sort.lo for sort in var.index) for name, var in schema.vars.items()}

    @classmethod
    def of(cls, state: State, schema: Schema, instance: Instance, actors: str) -> PartialCells:
        """The cells of a state that is known."""
        cells = cls(schema, instance, actors)
        for name, table in state.tables.items():
            cells.known[name] = dict(table)
        for receiver, inbox in (state.received or {}).items():
            cells.inboxes[receiver] = {name: dict(table) for name, table in inbox.items()}
        return cells

    def owner(self, var: Var, index: Index) -> int:
        """Whose doing a cell is."""
        if var.sender is not None:
            return int(var.sender(*index))
        return index[0] if var.index and var.index[0].name == self.actors else NOBODY

    def read(self, var: Var, index: Index, receiver: int | None = None, after: bool = False) -> Value:
        """Value of a cell; outside the declared indices it may be anything."""
        for at, lo in zip(index, self.least[var.name], strict=True):
            if at < lo:
                return self.spans[var.name]
        if receiver is not None and (var.sender is None or int(var.sender(*index)) != receiver):
            return self.inbox(var, index, receiver)
        value: Value = self.known[var.name].get(index, _ABSENT)
        if value is not _ABSENT:
            return value
        if self.open and (var.name, self.owner(var, index)) in self.open:
            return self.spans[var.name]
        return var.init

    def row(self, var: Var, node: int) -> dict[Any, int] | None:
        """The cells of the node that are set, by their index without it; None where one of them is not known."""
        if (var.name, node) in self.open or var.name in self.silent:
            return None
        found: dict[Any, int] = {}
        for index, value in self.known[var.name].items():
            if index[0] == node:
                if isinstance(value, Span):
                    return None
                found[index[1] if len(index) == 2 else index[1:]] = value
        return found

    def inbox(self, var: Var, index: Index, receiver: int) -> Value:
        """What the receiver has of a message cell."""
        inbox = self.inboxes.get(receiver, {}).get(var.name)
        value: Value = _ABSENT if inbox is None else inbox.get(index, _ABSENT)
        if value is not _ABSENT:
            return value
        return hull(0, self.read(var, index)) if receiver in self.open_inbox or var.name in self.silent else 0

    def cause(self, var: Var, index: Index, receiver: int | None = None) -> str:
        """What evidence is missing for a cell that is not known; "" if nothing says."""
        found = self.why.get((var.name, index, receiver))
        if found is None and receiver in self.open_inbox and receiver is not None:
            found = self.open_inbox[receiver]
        if found is None and all(v >= s.lo for v, s in zip(index, var.index, strict=True)):
            found = self.open.get((var.name, self.owner(var, index)))
        return found or ""

    def write(self, var: Var, index: Index, value: Value, cause: str = "") -> None:
        """Give a cell its value; of one that is not known `cause` says why."""
        if var.name in self.silent and (var.kind != "register" or value == var.init):
            value, cause = span(ends(value)[0], self.spans[var.name].hi), cause or self.silent[var.name]
        table = self.known[var.name]
        self._put(table, (var.name, index, None), index, value, self.read(var, index), cause)
        if value == var.init and (var.name, self.owner(var, index)) not in self.open:
            table.pop(index, None)

    def deliver(self, var: Var, index: Index, value: Value, receiver: int, cause: str = "") -> None:
        """The receiver has got that value of a message cell."""
        table = self.inboxes.setdefault(receiver, {}).setdefault(var.name, {})
        self._put(table, (var.name, index, receiver), index, value, self.inbox(var, index, receiver), cause)

    def _put(
        self,
        table: dict[Index, Value],
        name: tuple[str, Index, int | None],
        index: Index,
        value: Value,
        before: Value,
        cause: str,
    ) -> None:
        if self.trail is not None:
            self.trail.append((table, index, table.get(index, _ABSENT), before, name))
        table[index] = value
        if isinstance(value, Span):
            if cause:
                self.why[name] = cause
        elif self.why:
            self.why.pop(name, None)

    def begin(self) -> Trail | None:
        """Begin a trail; returns that in which it is, for `undo` or `join`."""
        outer, self.trail = self.trail, []
        return outer

    def written(self) -> dict[tuple[str, Index, int | None], Value]:
        """What was written since the trail began, with the values that the cells have now."""
        names = {name: (table, index) for table, index, _, _, name in self.trail or ()}
        return {name: table.get(index, self.schema.vars[name[0]].init) for name, (table, index) in names.items()}

    def undo(self, outer: Trail | None = None) -> None:
        """Take back what was written since the trail began."""
        for table, index, old, _, _ in reversed(self.trail or ()):
            if old is _ABSENT:
                table.pop(index, None)
            else:
                table[index] = old
        self.trail = outer

    def join(self, cause: str, outer: Trail | None = None) -> None:
        """What was written since the trail began may, or may not, have been written."""
        if outer is not None:
            outer.extend(self.trail or ())
        first: dict[tuple[str, Index, int | None], tuple[dict[Index, Value], Index, Value]] = {}
        for table, index, _, before, name in self.trail or ():
            first.setdefault(name, (table, index, before))
        self.trail = outer
        for name, (table, index, before) in first.items():
            var = self.schema.vars[name[0]]
            after = self.read(var, index) if name[2] is None else table.get(index, before)
            joined = hull(before, after)
            table[index] = joined
            if isinstance(joined, Span):
                self.why.setdefault(name, cause)

    def narrow(self, var: Var, index: Index, receiver: int | None, to: Value) -> None:
        """A cell is known to lie in `to`, too. One that a contradiction leaves nothing for stays as it is."""
        before = self.read(var, index, receiver)
        if not isinstance(before, Span) or any(v < s.lo for v, s in zip(index, var.index, strict=True)):
            return
        value = meet(before, to)
        if value is None or value == before:
            return
        if receiver is not None and (var.sender is None or int(var.sender(*index)) != receiver):
            self.deliver(var, index, value, receiver, self.cause(var, index, receiver))
            if var.kind == "register" and ends(value)[0] not in (None, 0):
                self.narrow(var, index, None, value)
            return
        self.write(var, index, value, self.cause(var, index))

    def let_rise(self, name: str, cause: str) -> None:
        """From here on the variable's cells may rise without a line. Nothing of it is known to be absent."""
        var = self.schema.vars[name]
        self.silent[name] = cause
        for owner in self._owners(var, (Span(),) * len(var.index)):
            self.open.setdefault((name, owner), cause)
        for index, value in list(self.known[name].items()):
            self.write(var, index, value)

    def loosen(self, var: Var, index: Index, cause: str, *, rising: bool) -> None:
        """A cell may have changed, and nothing shows it; if it is `rising` it has not fallen."""
        least = ends(self.read(var, index))[0] if rising else self.spans[var.name].lo
        self.write(var, index, span(least, self.spans[var.name].hi), cause)

    def forget(self, owner: int, cause: str, *, once: Collection[str] = (), rising: Collection[str] = ()) -> None:
        """From here on there may be steps of the owner that no evidence shows.

        Of the variables that belong to nobody, those named in `once` keep what was written to them, and those in
        `rising` only rise.
        """
        self.open_inbox.setdefault(owner, cause)
        for group in self.groups:
            self._forget_messages(group, owner, cause)
        for var in self.schema.vars.values():
            table = self.known[var.name]
            if var.is_message:
                continue
            if not var.index or var.index[0].name != self.actors:
                self._forget_shared(var, table, cause, var.name in once, var.name in rising)
            else:
                for index in [index for index in table if index[0] == owner]:
                    del table[index]
                self.open[var.name, owner] = cause

    def _forget_shared(self, var: Var, table: dict[Index, Value], cause: str, once: bool, rising: bool) -> None:
        if not once and not rising:
            table.clear()
        for index, value in list(table.items()):
            if value == var.init:
                del table[index]
            elif rising:
                table[index] = Span(ends(value)[0], self.spans[var.name].hi)
                self.why[var.name, index, None] = cause
        self.open.setdefault((var.name, NOBODY), cause)

    def _forget_messages(self, group: list[Var], owner: int, cause: str) -> None:
        """What was sent stays sent, as a whole: the fields of it that hold the initial value hold it."""
        tables = [(var, self.known[var.name]) for var in group]
        own = {index for var, table in tables for index in table if self.owner(var, index) == owner}
        sent = {index for index in own if any(table.get(index, var.init) != var.init for var, table in tables)}
        for var, table in tables:
            if (var.name, owner) not in self.open:
                for index in sent:
                    table.setdefault(index, var.init)
            for index in own - sent:
                table.pop(index, None)
            for index in sent if var.kind == "watermark" else ():
                table[index] = Span(ends(table[index])[0], self.spans[var.name].hi)
                self.why[var.name, index, None] = cause
            self.open.setdefault((var.name, owner), cause)

    def lose(self, var: Var, index: tuple[Value, ...], cause: str) -> None:
        """Some cell of the variable, at an index that is not all known, was written: which one, and what, is open."""
        for cell in [c for c in self.known[var.name] if _agree(c, index)]:
            self.write(var, cell, self.spans[var.name], cause)
        for owner in self._owners(var, index):
            self.open.setdefault((var.name, owner), cause)

    def _owners(self, var: Var, index: tuple[Value, ...]) -> Iterator[int]:
        """Who may own a cell whose index is not all known."""
        known = tuple(i for i in index if not isinstance(i, Span))
        if var.sender is None and (not var.index or var.index[0].name != self.actors):
            yield NOBODY
        elif var.sender is None and not isinstance(index[0], Span):
            yield index[0]
        elif len(known) == len(index):
            yield self.owner(var, known)
        else:
            sort = next(s for v in self.schema.vars.values() for s in v.index if s.name == self.actors)
            yield from self.instance.members(sort)

    def close(self, var: Var, owner: int) -> None:
        """All cells of the owner are known now, and at their initial value but for those written after this."""
        for index in [index for index in self.known[var.name] if self.owner(var, index) == owner]:
            del self.known[var.name][index]
        self.open.pop((var.name, owner), None)
        if var.name in self.silent:
            self.open[var.name, owner] = self.silent[var.name]


def _agree(cell: Index, index: tuple[Value, ...]) -> bool:
    return all(meet(have, given) is not None for have, given in zip(cell, index, strict=True))
