"""Concrete states: plain ints in sparse tables. This is the data of the reference interpreter.

A `State` is immutable by convention: an action works on a `Draft`, which reads the state before and collects updates,
checks every index and value against its declaration, and refuses a second assignment of the same cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from viewproof.spec.lang.errors import Disabled, RangeError, SpecError, here
from viewproof.spec.lang.messages import named
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Instance, Sort
from viewproof.spec.lang.vocabulary import Between, Domain

Index = tuple[int, ...]
Table = dict[Index, int]


class State:
    """One state: per variable the cells that differ from the initial value; per receiver what it has received.

    `received` is None where every sent message counts as received (bounded instances).
    """

    __slots__ = ("received", "tables")

    def __init__(self, tables: dict[str, Table], received: dict[int, dict[str, Table]] | None = None) -> None:
        self.tables = tables
        self.received = received

    @classmethod
    def initial(cls, *, track_received: bool = False) -> State:
        """The initial state: every cell at its declared initial value, no message sent."""
        return cls({}, {} if track_received else None)

    def get(self, var: Var, index: Index) -> int:
        """Value of a cell."""
        table = self.tables.get(var.name)
        return var.init if table is None else table.get(index, var.init)

    def get_received(self, var: Var, index: Index, receiver: int) -> int:
        """Value of a message cell as the receiver knows it."""
        if self.received is None or (var.sender is not None and int(var.sender(*index)) == receiver):
            return self.get(var, index)
        return self.received.get(receiver, {}).get(var.name, {}).get(index, 0)

    def deliver(self, var: Var, index: Index, value: int, receiver: int) -> State:
        """The state in which `receiver` has received `value` of a message cell."""
        if self.received is None:
            return self
        inboxes = dict(self.received)
        inbox = dict(inboxes.get(receiver, {}))
        inbox[var.name] = {**inbox.get(var.name, {}), index: value}
        inboxes[receiver] = inbox
        return State(self.tables, inboxes)

    def key(self) -> tuple[Any, ...]:
        """Hashable identity of the state."""
        return tuple((name, tuple(sorted(table.items()))) for name, table in sorted(self.tables.items()) if table)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.key() == other.key() and self.received == other.received

    def __hash__(self) -> int:
        return hash(self.key())


class OutOfRange:
    """The value of a read outside the declared indices. It may stand where it does not count; using it is an error."""

    __slots__ = ("message",)

    def __init__(self, message: str) -> None:
        self.message = message

    def refuse(self, *_: object) -> Any:
        """Raise: the value was needed."""
        raise RangeError(self.message, here())

    def _spread(self, *_: object) -> Any:
        """A value computed from it is as undefined as it is."""
        return self

    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _spread
    __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = _spread
    __bool__ = __index__ = __int__ = refuse
    __hash__ = object.__hash__


def checked_index(var: Var, raw: Any, instance: Instance) -> Index:
    """The index as a tuple of ints; the wrong number of indices is an error."""
    index = raw if isinstance(raw, tuple) else (raw,)
    if len(index) != len(var.index):
        raise SpecError(f"{var.name} has {len(var.index)} indices, got {len(index)}", here())
    return tuple(int(i) for i in index)


def outside(var: Var, index: Index, instance: Instance) -> str | None:
    """Why the index is not one of var's, or None."""
    for value, sort in zip(index, var.index, strict=True):
        if not instance.contains(sort, value):
            return f"index {value} of {var.name} is outside sort {sort.name} ({sort.lo}..{instance.hi(sort)})"
    return None


class Cells:
    """`s.view`: reads cells of the state before, writes go to the draft."""

    __slots__ = ("after", "draft", "receiver", "var")

    def __init__(self, draft: Draft, var: Var, receiver: int | None = None, after: bool = False) -> None:
        self.draft = draft
        self.var = var
        self.receiver = receiver
        self.after = after

    def __getitem__(self, raw: Any) -> Any:
        return self.draft.read(self.var, raw, self.receiver, self.after)

    def __setitem__(self, raw: Any, value: Any) -> None:
        if self.receiver is not None or self.after:
            raise SpecError("what was received cannot be assigned; assign the sender's own variable", here())
        self.draft.write(self.var, raw, value)

    def update(self, index: tuple[Any, ...], value: Callable[..., Any]) -> None:
        """Assign a whole range: entries of `index` that are a sort or between(…) run over their members.

        Over an unbounded sort it is a reset, or the copy of another variable's cells: it runs over the members that
        occur in the state, and must give any other the initial value.
        """
        unbounded = {i for i in index if isinstance(i, Sort) and self.draft.instance.hi(i) is None}
        occurring = {sort: self.draft.occurring(sort) for sort in unbounded}
        for full, bound in _ranges(index, self.draft, occurring):
            self.draft.write(self.var, full, value(*bound))
        if unbounded:
            fresh = {sort: [max([sort.lo - 1, *members]) + 1] for sort, members in occurring.items()}
            for _, bound in _ranges(index, self.draft, fresh):
                if int(value(*bound)) != self.var.init:
                    raise SpecError("an update over an unbounded sort changes all of its members", here())


def _ranges(
    index: tuple[Any, ...], draft: Draft, occurring: dict[Sort, list[int]]
) -> Iterator[tuple[Index, list[int]]]:
    def go(rest: tuple[Any, ...], full: list[int], bound: list[int]) -> Iterator[tuple[Index, list[int]]]:
        if not rest:
            yield tuple(full), bound
            return
        head, tail = rest[0], rest[1:]
        if isinstance(head, (Sort, Between)):
            members = occurring[head] if isinstance(head, Sort) and head in occurring else draft.members(head)
            for member in members:
                yield from go(tail, [*full, member], [*bound, member])
        else:
            yield from go(tail, [*full, head], bound)

    yield from go(index, [], [])


class View:
    """A name space over the same draft: what a replica has received, or the state after a step."""

    __slots__ = ("_args", "_draft")

    def __init__(self, draft: Draft, receiver: int | None, after: bool) -> None:
        self._draft = draft
        self._args = (receiver, after)

    def cells(self, name: str) -> Any:
        """The cells of a variable, or the value of one without indices."""
        return self._draft.cells(name, *self._args)

    def __getattr__(self, name: str) -> Any:
        return named(self._draft.schema, name, self.cells)


class Draft:
    """The `s` of a concrete run of an action or predicate."""

    records = False
    _OWN = frozenset({"schema", "cfg", "instance", "before", "next_state", "assigned", "conjunct"})

    def __init__(self, schema: Schema, cfg: Any, instance: Instance, before: State, after: State | None = None) -> None:
        self.schema = schema
        self.cfg = cfg
        self.instance = instance
        self.before = before
        self.next_state = after
        self.assigned: dict[str, Table] = {}
        self.conjunct = 0

    def cells(self, name: str, receiver: int | None = None, after: bool = False) -> Any:
        """The cells of a variable, or the value of one without indices."""
        var = self.schema.vars.get(name)
        if var is None:
            raise SpecError(f"no variable {name} is declared", here())
        if receiver is not None and not var.is_message:
            raise SpecError(f"{name} is not a message: a replica cannot receive it", here())
        if not var.index:
            return self.read(var, (), receiver, after)
        return Cells(self, var, receiver, after)

    def __getattr__(self, name: str) -> Any:
        return named(self.schema, name, self.cells)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in self._OWN:
            object.__setattr__(self, name, value)
        else:
            self.write(self.schema.vars[name], (), value)

    def received(self, receiver: int) -> View:
        """The messages that a replica has received."""
        return View(self, receiver, False)

    @property
    def after(self) -> View:
        """The state after the step (transition invariants only)."""
        return View(self, None, True)

    def read(self, var: Var, raw: Any, receiver: int | None, after: bool) -> Any:
        """Value of a cell as bool or int; outside the declared indices a value that refuses to be used."""
        index = checked_index(var, raw, self.instance)
        problem = outside(var, index, self.instance)
        if problem is not None:
            return OutOfRange(problem)
        state = self.before
        if after:
            if self.next_state is None:
                raise SpecError("this predicate compares two states; it was asked about one", here())
            state = self.next_state
        value = state.get(var, index) if receiver is None else state.get_received(var, index, receiver)
        return bool(value) if var.values.is_bool else value

    def write(self, var: Var, raw: Any, value: Any) -> None:
        """Assign a cell once, inside its declared range."""
        index = checked_index(var, raw, self.instance)
        problem = outside(var, index, self.instance)
        if problem is not None:
            raise RangeError(problem, here())
        if isinstance(value, OutOfRange):
            value.refuse()
        if isinstance(value, bool) != var.values.is_bool:
            raise SpecError(f"{var.name} is {'Boolean' if var.values.is_bool else 'an integer'}, not {value!r}", here())
        number = int(value)
        top = var.values.upper(self.instance)
        if number < var.values.lo or (top is not None and number > top):
            raise RangeError(f"{var.name}{list(index)} = {number} is outside {var.values.lo}..{top}", here())
        table = self.assigned.setdefault(var.name, {})
        if index in table:
            raise SpecError(f"{var.name}{list(index)} is assigned twice", here())
        table[index] = number

    def members(self, domain: Domain) -> range:
        """Members of a sort or range; a range that leaves its sort is an error."""
        if isinstance(domain, Sort):
            return self.instance.members(domain)
        lo, hi = int(domain.lo), int(domain.hi)
        for end in (lo, hi) if lo <= hi else ():
            if not self.instance.contains(domain.sort, end):
                raise RangeError(f"range {lo}..{hi} leaves sort {domain.sort.name}", here())
        return range(lo, hi + 1)

    def occurring(self, sort: Sort) -> list[int]:
        """Members of a sort at which some cell of the state differs from its initial value."""
        found = {
            cell[position]
            for name, table in self.before.tables.items()
            for position, s in enumerate(self.schema.vars[name].index)
            if s.name == sort.name
            for cell in table
        }
        return sorted(found)

    def require(self, cond: Any) -> None:
        """A false conjunct ends the action."""
        if not cond:
            raise Disabled(self.conjunct)
        self.conjunct += 1

    def quantify(self, kind: str, domain: Domain, body: Callable[[Any], Any], default: int) -> Any:
        """Quantifiers, by enumeration."""
        members = self.members(domain)
        if kind == "forall":
            return all(body(m) for m in members)
        if kind == "exists":
            return any(body(m) for m in members)
        if kind == "count":
            return sum(1 for m in members if body(m))
        return max([default, *(body(m) for m in members)])

    def within(self, sort: Sort, value: Any) -> bool:
        """Membership in the sort of this instance."""
        return self.instance.contains(sort, int(value))

    def result(self) -> State:
        """The state after all updates; what was not assigned is unchanged."""
        tables = dict(self.before.tables)
        for name, written in self.assigned.items():
            init = self.schema.vars[name].init
            table = {**tables.get(name, {}), **written}
            tables[name] = {k: v for k, v in table.items() if v != init}
        return State(tables, self.before.received)
