"""Each request is executed at most once, and the numbers of a session do not skip (I8, L2).

A number that is skipped would be stale when it comes. Where the table has slots and no sessions, an evicted client
begins anew, and a request of it that comes again is executed again: then at most once for as long as it has its slot.
"""

from __future__ import annotations

from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker
from viewproof.impl.trace.events import TraceEvent


class AtMostOnceChecker(Checker):
    """Remembers every executed request, and each client's session as the executed registers and evictions make it.

    Its own little client table: it is told of evictions by the events and knows nothing of slots. A register counts
    only above the incarnation that holds the client's session.
    """

    name = "at_most_once"
    events = frozenset({"drop_request"})

    def __init__(self) -> None:
        super().__init__()
        self.executed: dict[tuple[int, int, int], set[int | None]] = {}
        self.forgotten: set[tuple[int, int, int]] = set()
        self.sessions: dict[int, int] = {}
        self.latest: dict[tuple[int, int], int] = {}
        self.op = 0
        self.gaps = self.forgets = False

    def on_boot(self, node: int, replica: Replica) -> None:
        clients = replica.state.clients
        self.gaps, self.forgets = clients.gaps, clients.slots > 0 and not clients.sessions

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        client, number = event.m_client or 0, event.m_request or 0
        first = (event.m_op or 0) > self.op
        self.op = max(self.op, event.m_op or 0)
        if client == 0:
            return
        if number == 0:
            if first:
                self._on_register(node, client, event.m_incarnation or 0)
        else:
            self._on_request(node, (client, event.m_session or 0, number), event.m_op, first)
        if first and event.m_evicted:
            self.sessions.pop(event.m_evicted, None)
            if event.m_session is None:
                self.latest.pop((event.m_evicted, 0), None)
                self.forgotten |= {request for request in self.executed if request[0] == event.m_evicted}

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        """A request is dropped as stale only if a later one of its session was executed: it would never be answered.

        Where clients are forgotten, a replica that has not executed all may know of one whose slot was taken since.
        """
        if self.forgets and (event.commit_min or 0) < self.op:
            return
        client, session, number = event.m_client or 0, event.m_session or 0, event.m_request or 0
        if number and event.m_outcome == "stale" and number >= self.latest.get((client, session), 0):
            self.fail(f"replica {node} took request {number} of client {client} session {session} for outrun")

    def _on_register(self, node: int, client: int, incarnation: int) -> None:
        held = self.sessions.get(client, 0)
        if incarnation <= held:
            self.fail(
                f"replica {node} executed a register of client {client} with incarnation {incarnation} at op {self.op},"
                f" while {held} holds its session"
            )
        self.sessions[client] = incarnation

    def _on_request(self, node: int, request: tuple[int, int, int], op: int | None, first: bool) -> None:
        client, session, number = request
        name = f"client {client} session {session} request {number}"
        before = self.executed.setdefault(request, {op})
        if first and request in self.forgotten:
            self.forgotten.discard(request)
            before.add(op)
        if op not in before:
            others = ", ".join(map(str, sorted(before, key=str)))
            self.fail(f"replica {node} executed {name} at op {op}, before at {others}")
        elif first:
            latest = self.latest.get((client, session), 0)
            if number <= latest or (number > latest + 1 and not self.gaps):
                self.fail(f"replica {node} executed {name} at op {op}, after request {latest}")
            self.latest[client, session] = number
