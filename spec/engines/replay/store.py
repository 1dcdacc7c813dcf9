"""The sparse store of a replayed cluster: per variable one Python table, per receiver what it has received.

A variable over replicas alone is a list; one whose first index is the replica is a list of dicts; any other is one
dict. Absent means: at the initial value. Nothing here knows the protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.schema import Schema, Var
from viewproof.spec.lang.sorts import Instance

Key = Any


class Store:
    """Values of all variables: attribute `v_<name>` per variable, `in_<name>` (a list by receiver) per message."""


class Layout:
    """How the variables of a schema lie in a `Store`; `replica_sort` is the sort that is a list."""

    def __init__(self, schema: Schema, instance: Instance) -> None:
        self.schema = schema
        bounded = {s.name for v in schema.vars.values() for s in v.index if instance.hi(s) is not None}
        if len(bounded) > 1:
            raise SpecError(f"replay expects one bounded sort, the replicas; here: {', '.join(sorted(bounded))}")
        self.actors = next(iter(bounded), "")
        sort = next((s for v in schema.vars.values() for s in v.index if s.name == self.actors), None)
        self.actor_count = len(instance.members(sort)) if sort is not None else 0

    def shape(self, var: Var) -> str:
        """scalar · list (by replica) · rows (list by replica of dicts) · table (one dict)."""
        if not var.index:
            return "scalar"
        if var.is_message or var.index[0].name != self.actors:
            return "table"
        return "list" if len(var.index) == 1 else "rows"

    def new_store(self) -> Store:
        """The initial state."""
        store = Store()
        for var in self.schema.vars.values():
            shape = self.shape(var)
            value: Any = {}
            if shape == "scalar":
                value = var.init
            elif shape == "list":
                value = [var.init] * self.actor_count
            elif shape == "rows":
                value = [{} for _ in range(self.actor_count)]
            setattr(store, f"v_{var.name}", value)
            if var.is_message:
                setattr(store, f"in_{var.name}", [{} for _ in range(self.actor_count)])
        return store

    @staticmethod
    def key(index: Sequence[str]) -> str:
        """Text of a dict key: the index itself, or a tuple of them."""
        return index[0] if len(index) == 1 else f"({', '.join(index)})"

    def read(self, var: Var, index: Sequence[str]) -> str:
        """Text that reads a cell."""
        shape = self.shape(var)
        name = f"S.v_{var.name}"
        if shape == "scalar":
            return name
        if shape == "list":
            return f"{name}[{index[0]}]"
        if shape == "rows":
            return f"{name}[{index[0]}].get({self.key(index[1:])}, {var.init})"
        return f"{name}.get({self.key(index)}, {var.init})"

    def read_received(self, var: Var, index: Sequence[str], receiver: str) -> str:
        """Text that reads a message cell as received."""
        return f"S.in_{var.name}[{receiver}].get({self.key(index)}, {var.init})"

    def write(self, var: Var, index: Sequence[str], value: str) -> str:
        """Statement that writes a cell; writing the initial value frees it."""
        shape = self.shape(var)
        name = f"S.v_{var.name}"
        if shape == "scalar":
            return f"{name} = {value}"
        if shape == "list":
            return f"{name}[{index[0]}] = {value}"
        table, key = (f"{name}[{index[0]}]", self.key(index[1:])) if shape == "rows" else (name, self.key(index))
        if value == str(var.init):
            return f"{table}.pop({key}, None)"
        return f"{table}[{key}] = {value}"

    def to_state(self, store: Store) -> State:
        """The same state as the reference interpreter holds it."""
        tables: dict[str, dict[tuple[int, ...], int]] = {}
        received: dict[int, dict[str, dict[tuple[int, ...], int]]] = {}
        for var in self.schema.vars.values():
            value = getattr(store, f"v_{var.name}")
            cells = {k: _number(v) for k, v in self._cells(var, value) if v != var.init}
            if cells:
                tables[var.name] = cells
            if var.is_message:
                for receiver, inbox in enumerate(getattr(store, f"in_{var.name}")):
                    if inbox:
                        received.setdefault(receiver, {})[var.name] = {_tuple(k): int(v) for k, v in inbox.items()}
        return State(tables, received)

    def load(self, store: Store, state: State) -> None:
        """Overwrite the variables (not what was received) with those of an interpreter's state."""
        fresh = self.new_store()
        for var in self.schema.vars.values():
            value = getattr(fresh, f"v_{var.name}")
            shape = self.shape(var)
            for index, number in state.tables.get(var.name, {}).items():
                if shape == "scalar":
                    value = number
                elif shape == "list":
                    value[index[0]] = number
                elif shape == "rows":
                    value[index[0]][_key(index[1:])] = number
                else:
                    value[_key(index)] = number
            setattr(store, f"v_{var.name}", value)

    def _cells(self, var: Var, value: Any) -> list[tuple[tuple[int, ...], int]]:
        shape = self.shape(var)
        if shape == "scalar":
            return [((), value)]
        if shape == "list":
            return [((i,), v) for i, v in enumerate(value)]
        if shape == "rows":
            return [((i, *_tuple(k)), v) for i, row in enumerate(value) for k, v in row.items()]
        return [(_tuple(k), v) for k, v in value.items()]


def cells_under(table: dict[Key, int], prefix: tuple[int, ...]) -> list[tuple[int, int]]:
    """Last index and value of the cells of a table whose other indices are the prefix."""
    if not prefix:
        return list(table.items())
    return [(key[-1], value) for key, value in table.items() if key[:-1] == prefix]


def replace_under(table: dict[Key, int], prefix: tuple[int, ...], cells: list[tuple[int, int]]) -> None:
    """Make those cells, by last index, all that a table has under the prefix."""
    if not prefix:
        table.clear()
        table.update(cells)
        return
    for key in [key for key in table if key[:-1] == prefix]:
        del table[key]
    table.update({(*prefix, last): value for last, value in cells})


def _number(value: int) -> int:
    """A Boolean as a number; any other as it is, as it may be one that is shown by its name."""
    return int(value) if isinstance(value, bool) else value


def _tuple(key: Key) -> tuple[int, ...]:
    return key if isinstance(key, tuple) else (key,)


def _key(index: tuple[int, ...]) -> Key:
    return index[0] if len(index) == 1 else index
