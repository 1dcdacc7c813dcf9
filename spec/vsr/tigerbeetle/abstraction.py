"""What a state of either family is in terms of the core: of each replica the log that it executed.

The core's state has for each replica, as its log, the prefix that the replica executed: what its journal holds of it,
and, of ops that the journal no longer holds, what was executed there first. The log that a view starts with is that of
the first message which tells it; of what is below the headers that it carries it says nothing, and what was executed
there first stands for it. A prepare is the core's entry of its view; a request is one of its client's session, and one
of the cluster itself is its own client's. So the catalogue's invariants about these logs (`HELD`) are those of the
core, evaluated on this state; there is no copy of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from viewproof.spec.lang import Instance, Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.tigerbeetle import state_2022, state_2026
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT

HELD: Final = ("I1", "I2", "I5", "I8", "I10")
"""Invariants of the core that say something of executed logs, and of the logs that views start with."""

Table = dict[tuple[int, ...], int]


class Cells:
    """Cells of a family's state, by name."""

    def __init__(self, state: State) -> None:
        self.tables = state.tables

    def at(self, name: str, *index: int) -> int:
        """The value of a cell whose initial value is 0."""
        return int(self.tables.get(name, {}).get(index, 0))

    def row(self, name: str) -> Table:
        """All cells of a variable that are not at their initial value."""
        return self.tables.get(name, {})


def header_2022(cells: Cells, r: int, o: int) -> int:
    """Slots are ops."""
    return cells.at("entry", r, o)


def header_2026(cells: Cells, r: int, o: int) -> int:
    """Slots are used again."""
    e = cells.at("header", r, o % state_2026.SLOTS)
    return e if cells.at("p_op", e) == o else 0


@dataclass(frozen=True)
class Family:
    """How a family's state says it: `header(cells, r, o)` is the prepare that r's journal has at op o (0 = none), and
    `starts` the kind of message that tells the log of a started view.
    """

    header: Callable[[Cells, int, int], int]
    starts: int


JUNE: Final = Family(header_2022, int(state_2022.KIND["start_view"]))
JULY: Final = Family(header_2026, int(state_2026.KIND["view"]))


class Executed:
    """The executed logs of a state, and the core's state that they are; `nodes` replicas and standbys."""

    def __init__(self, state: State, family: Family, nodes: int) -> None:
        self.cells = Cells(state)
        self.family = family
        self.nodes = nodes
        self.top = self.cells.at("executed_top")
        self.clients = max((v for v in self.cells.row("p_client").values()), default=0) + 1
        self.tables: dict[str, Table] = {}

    def put(self, name: str, *index: int, value: int) -> None:
        """Set a cell of the core's state."""
        self.tables.setdefault(name, {})[index] = value

    def core(self) -> State:
        """The core's state."""
        for o, e in self.canonical():
            self.put("first_executed", o, value=1 + self.cells.at("p_view", e))
            self.put("replied_in", o, value=1 + self.cells.at("canonical_view", o))
            self._prepare(o, e)
        for r in range(self.nodes):
            self._replica(r)
        for m in self.starts():
            self._started(m)
        return State(self.tables)

    def starts(self) -> Iterator[int]:
        """The first message that tells the log of each started view."""
        told: set[int] = set()
        for (m,), kind in sorted(self.cells.row("m_kind").items()):
            view = self.cells.at("m_view", m)
            if kind == self.family.starts and view not in told:
                told.add(view)
                yield m

    def _started(self, m: int) -> None:
        cells = self.cells
        view, op, low = (cells.at(name, m) for name in ("m_view", "m_op", "m_low"))
        self.put("sv", view, value=1)
        self.put("sv_op", view, value=op)
        for o in range(1, op + 1):
            e = cells.at("m_header", m, o) if o >= low else cells.at("canonical", o)
            if e:
                self.put("sv_entry", view, o, value=1 + cells.at("p_view", e))

    def canonical(self) -> Iterator[tuple[int, int]]:
        """What was executed first at each op."""
        for o in range(1, self.top + 1):
            if e := self.cells.at("canonical", o):
                yield o, e

    def _prepare(self, o: int, e: int) -> None:
        cells = self.cells
        view, parent = cells.at("p_view", e), cells.at("p_parent", e)
        client, request = cells.at("p_client", e), cells.at("p_request", e)
        self.put("prepare_client", view, o, value=client or self.clients)
        number = o if not client else self.session(client, o) * (self.top + 1) + request
        self.put("prepare_request", view, o, value=1 + number)
        if parent not in (0, ROOT):
            self.put("prepare_parent", view, o, value=1 + cells.at("p_view", parent))

    def session(self, client: int, o: int) -> int:
        """The op of the client's last registration up to o."""
        for p in range(o, 0, -1):
            e = self.cells.at("canonical", p)
            if e and self.cells.at("p_client", e) == client and self.cells.at("p_register", e):
                return p
        return 0

    def _replica(self, r: int) -> None:
        cells = self.cells
        commit = cells.at("commit_min", r)
        self.put("op", r, value=commit)
        self.put("commit_min", r, value=commit)
        self.put("commit_max", r, value=cells.at("commit_max", r))
        for o in range(1, commit + 1):
            own, first = self.family.header(cells, r, o), cells.at("canonical", o)
            if own:
                self.put("executed", r, o, value=1 + cells.at("p_view", own))
                self._prepare(o, own)
            self.put("entry", r, o, value=1 + cells.at("p_view", own or first))


def core_of(state: State, family: Family, nodes: int) -> tuple[Spec, State]:
    """The core's state that a family's state is, and the core with the bounds that it reaches."""
    found = Executed(state, family, nodes)
    tables = found.core().tables
    views = max(*(v for name in ("entry", "replied_in") for v in tables.get(name, {}).values()), 1, 1)
    started = [view for (view,) in tables.get("sv", {})]
    requests = max(tables.get("prepare_request", {}).values(), default=1)
    bounds = {
        "Replica": nodes - 1,
        "View": max(views, *started, 1),
        "Op": max(1, found.top, *tables.get("sv_op", {(0,): 1}).values()),
        "Client": found.clients,
        "Request": requests,
    }
    return build(Config(nodes), Instance(bounds)), State(tables)
