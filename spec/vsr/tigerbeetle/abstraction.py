"""What a state of either family is in terms of the core: logs, client tables, and what replicas said.

The core's state has for each replica, as its log, the prefix that the replica executed: what its journal holds of it,
and, of ops that the journal no longer holds, what was executed there first; above it stands what was made durable
there, faults of the disk aside. The log that a view starts with is that of the first message which tells it, or, if
none does, that which its primary offers later. Of what is below the headers that a message carries, or not linked to
its head, it says nothing: what was executed or acknowledged there stands for it. A prepare is the core's entry of its
view; a request is one of its client's session, and one of the cluster itself is its own client's. Of an entry that a
client table lost, or was not told, the table says nothing.

Views are those of the superblock. June 2022 has none: there a replica's view is the highest that it said, and what is
durable of it is the view that it is in, once it takes part again. So the catalogue's invariants (`HELD`) are those of
the core, evaluated on this state; there is no copy of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from viewproof.spec.lang import Instance, Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.tigerbeetle import state_2022, state_2026
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT

HELD: Final = ("I1", "I2", "I3", "I5", "I6", "I8", "I9", "I10", "I12")
"""Invariants of the core that are evaluated. I4 and I7 are guards of both specifications; I6 is one of a step."""

Table = dict[tuple[int, ...], int]


class Cells:
    """Cells of a family's state, by name."""

    def __init__(self, state: State) -> None:
        self.tables = state.tables

    def at(self, name: str, *index: int, default: int = 0) -> int:
        """The value of a cell; `default` is its initial value."""
        return int(self.tables.get(name, {}).get(index, default))

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


def durable_2022(cells: Cells, r: int, o: int) -> int:
    """The prepares ring."""
    return cells.at("disk_body", r, o)


def durable_2026(cells: Cells, r: int, o: int) -> int:
    """What a slot held last; it may be another op's."""
    e = cells.at("kept", r, o % state_2026.SLOTS)
    return e if cells.at("p_op", e) == o else 0


def views_2022(cells: Cells, r: int, said: int) -> tuple[int, int, int]:
    """Nothing is durable: what it said, and the view that it takes part in."""
    out = not cells.at("up", r, default=1) or cells.at("status", r, default=RECOVERING) == RECOVERING
    return said, 0, said if out else cells.at("view", r)


def views_2026(cells: Cells, r: int, said: int) -> tuple[int, int, int]:
    """Those of the superblock."""
    view = cells.at("durable_view", r)
    return view, cells.at("durable_log_view", r), view


RECOVERING: Final = int(state_2022.RECOVERING)  # type: ignore[call-overload]


@dataclass(frozen=True)
class Family:
    """How a family's state says it: `header(cells, r, o)` is the prepare that r's journal has at op o (0 = none),
    `durable(cells, r, o)` what is on its disk, `views(cells, r, said)` its view, log_view and durable view, where
    `said` is the highest that it said; then the kinds of messages: a started view, a vote, what leaves a view.
    """

    header: Callable[[Cells, int, int], int]
    durable: Callable[[Cells, int, int], int]
    views: Callable[[Cells, int, int], tuple[int, int, int]]
    starts: int
    offers: int
    leaves: int
    acknowledges: int
    parks: bool
    """Does a new primary that merged logs keep its log_view until its view starts? Superseded before, it then offers
    more than that of its log_view.
    """


JUNE: Final = Family(
    header_2022, durable_2022, views_2022, parks=True,
    starts=int(state_2022.KIND["start_view"]), offers=int(state_2022.KIND["do_view_change"]),
    leaves=int(state_2022.KIND["start_view_change"]), acknowledges=int(state_2022.KIND["prepare_ok"]),
)  # fmt: skip
JULY: Final = Family(
    header_2026, durable_2026, views_2026, parks=False,
    starts=int(state_2026.KIND["view"]), offers=int(state_2026.KIND["join_view"]),
    leaves=int(state_2026.KIND["exit_view"]), acknowledges=int(state_2026.KIND["prepare_ok"]),
)  # fmt: skip


class Executed:
    """The executed logs of a state, and the core's state that they are; `nodes` replicas and standbys."""

    def __init__(self, state: State, family: Family, nodes: int, replicas: int, quorum: int) -> None:
        self.replicas, self.quorum = replicas, quorum
        self.cells = Cells(state)
        self.family = family
        self.nodes = nodes
        self.top = self.cells.at("executed_top")
        self.clients = max((v for v in self.cells.row("p_client").values()), default=0) + 1
        self.tables: dict[str, Table] = {}
        sent = [m for m, sent in self.cells.row("sent").items() if sent]
        self.sent = {m for m, _ in sent}
        self.sent_to_others = {m for m, r in sent if self.cells.at("m_from", m) != r}
        self.highest = max((o for (_,), o in self.cells.row("p_op").items()), default=0)
        self.acked: dict[int, int] = {}
        self.acks: dict[int, dict[int, set[int]]] = {}

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
            self._client_table(r)
        self._said()
        for m in self.told(self.family.starts):
            self._started(m)
        for m in self.told(self.family.offers):
            if m in self.sent_to_others:
                self._offered(m)
        return State(self.tables)

    def told(self, kind: int) -> Iterator[int]:
        """Messages of a kind that were sent, in the order of their numbers."""
        for (m,), is_kind in sorted(self.cells.row("m_kind").items()):
            if is_kind == kind and m in self.sent:
                yield m

    def _said(self) -> None:
        """What leaves a view, acknowledgements, and the views of replicas. What a primary acknowledges to itself before
        its view is durable it told nobody yet.
        """
        cells, said = self.cells, dict.fromkeys(range(self.nodes), 0)
        votes = {kind: list(self.told(kind)) for kind in (self.family.leaves, self.family.offers)}
        for m in self.told(self.family.acknowledges):
            r, v, e = (cells.at(name, m) for name in ("m_from", "m_view", "m_prepare"))
            kept = m in self.sent_to_others or v <= self.family.views(cells, r, v)[2]
            if kept and cells.at("acked", r, e):
                self.acks.setdefault(e, {}).setdefault(v, set()).add(r)
                said[r] = max(said[r], v)
        for m in (m for told in votes.values() for m in told if m in self.sent_to_others):
            r, v = cells.at("m_from", m), cells.at("m_view", m)
            said[r] = max(said[r], v)
        for m in self.sent_to_others.intersection(votes[self.family.leaves]):
            self.put("svc", cells.at("m_view", m), cells.at("m_from", m), value=1)
        for e, views in self.acks.items():
            if not self.counted(e) or self.counts(e):
                self._acknowledged(e, views)
        for r, highest in said.items():
            names = ("view", "log_view", "durable_view")
            for name, value in zip(names, self.family.views(cells, r, highest), strict=True):
                self.put(name, r, value=value)

    def _acknowledged(self, e: int, views: Mapping[int, set[int]]) -> None:
        o = self.cells.at("p_op", e)
        self.acked.setdefault(o, e)
        for v, replicas in views.items():
            for r in replicas:
                self.put("ack", v, r, o, value=1 + self.cells.at("p_view", e))

    def counted(self, e: int) -> bool:
        """Did a quorum acknowledge the prepare in some view?"""
        return any(len(replicas) >= self.quorum for replicas in self.acks.get(e, {}).values())

    def counts(self, e: int) -> bool:
        """Is all below a prepare executed, or counted, too? Above a gap an acknowledgement counts for nothing."""
        parent = self.cells.at("p_parent", e)
        while parent > ROOT and self.cells.at("canonical", self.cells.at("p_op", parent)) != parent:
            if not self.counted(parent):
                return False
            parent = self.cells.at("p_parent", parent)
        return True

    def _started(self, m: int) -> None:
        """The log that a view starts with: that of the first message that tells it."""
        view, op = self.cells.at("m_view", m), self.cells.at("m_op", m)
        if (view,) in self.tables.get("sv", {}):
            return
        self.put("sv", view, value=1)
        self.put("sv_op", view, value=op)
        for o in range(1, op + 1):
            if e := self.linked(m).get(o) or self.cells.at("canonical", o) or self.acked.get(o, 0):
                self.put("sv_entry", view, o, value=1 + self.cells.at("p_view", e))

    def _offered(self, m: int) -> None:
        """A vote. Its log_view may be one whose primary, its sender, told nobody of it."""
        r, view, log_view, op = (self.cells.at(name, m) for name in ("m_from", "m_view", "m_log_view", "m_op"))
        if self.family.parks and any(w % self.replicas == r for w in range(log_view + 1, view)):
            return
        linked, first = self.linked(m), self.tables.get("sv_op", {}).get((log_view,), 0)
        if log_view and (log_view,) not in self.tables.get("sv", {}):
            self.put("sv", log_view, value=1)
            self.put("sv_op", log_view, value=op)
            first = op
        self.put("dvc", view, r, value=1)
        self.put("dvc_log_view", view, r, value=log_view)
        self.put("dvc_op", view, r, value=op)
        for o in range(1, op + 1):
            started = self.tables.setdefault("sv_entry", {})
            own = 1 + self.cells.at("p_view", linked[o]) if o in linked else 0
            of_view = started.get((log_view, o), own) if o <= first else 1 + log_view
            if o <= first and own and (log_view, o) not in started:
                self.put("sv_entry", log_view, o, value=own)
            self.put("dvc_entry", view, r, o, value=own or of_view)

    def linked(self, m: int) -> dict[int, int]:
        """The headers of a message that its head is linked to, by op."""
        cells, found = self.cells, {}
        o, low = cells.at("m_op", m), cells.at("m_low", m)
        e = cells.at("m_header", m, o)
        while e and o >= low and o and cells.at("m_header", m, o) == e:
            found[o] = e
            o, e = o - 1, cells.at("p_parent", e)
        return found

    def _client_table(self, r: int) -> None:
        """Entries that are there; of others what was executed."""
        cells = self.cells
        commit = cells.at("commit_min", r)
        last: dict[int, int] = {}
        for o, e in self.canonical():
            if o <= commit:
                client = cells.at("p_client", e)
                number = self.tables["prepare_request"][cells.at("p_view", e), o]
                last[client] = max(last.get(client, 0), number)
        for client, number in last.items():
            session = cells.at("session", r, client) if client else 0
            own = 1 + session * (self.top + 1) + cells.at("answered", r, client)
            self.put("table", r, client or self.clients, value=own if session else number)

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
            self.put("written", r, o, value=1)
        for o in range(commit + 1, self.highest + 1):
            if e := self.family.durable(cells, r, o):
                self.put("entry", r, o, value=1 + cells.at("p_view", e))
                self.put("written", r, o, value=1)


def core_of(state: State, family: Family, nodes: int, replicas: int = 0, quorum: int = 0) -> tuple[Spec, State]:
    """The core's state that a family's state is, and the core with the bounds that it reaches; `replicas`
    of the nodes vote (0: all), and `quorum` acknowledgements commit (0: a majority of the nodes).
    """
    quorum = quorum or nodes // 2 + 1
    found = Executed(state, family, nodes, replicas or nodes, quorum)
    tables = found.core().tables
    views = [v for name in ("sv", "svc", "ack", "dvc") for v, *_ in tables.get(name, {})]
    entries = [v for name in ("entry", "replied_in", "sv_entry") for v in tables.get(name, {}).values()]
    requests = max(*tables.get("prepare_request", {}).values(), *tables.get("table", {}).values(), 1, 1)
    ops = [o for name in ("sv_op", "dvc_op") for o in tables.get(name, {}).values()]
    bounds = {
        "Replica": nodes - 1,
        "View": max(*views, *entries, *(v for v in tables.get("view", {}).values()), 1, 1),
        "Op": max(1, found.top, found.highest, *ops),
        "Client": found.clients,
        "Request": requests,
    }
    return build(Config(nodes, quorum, nodes - quorum + 1), Instance(bounds)), State(tables)
