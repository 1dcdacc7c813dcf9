"""What becomes of a client's request at a normal primary (docs/clients-and-control.md, "Client table"; seed 000).

The outcome is a function of the client table, of the log's unexecuted suffix and of the request alone.
"""

from __future__ import annotations

from enum import StrEnum

from viewproof.impl.interface.effects import SendClient
from viewproof.impl.interface.messages import Eviction, Request, reply_checksum
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.proposals import Register, UserRequest
from viewproof.impl.replica.replies import waiter_of

NUMBER_MAX = (1 << 63) - 1
"""Largest client, session, request number and incarnation: what the trace's integer columns hold."""


class RequestOutcome(StrEnum):
    """What becomes of a request or register, in the order of the contract's table."""

    IN_PROGRESS = "in_progress"
    NO_SESSION = "no_session"
    FENCED = "fenced"
    STALE = "stale"
    DUPLICATE = "duplicate"
    NEW = "new"
    GAP = "gap"


EVICTING = frozenset({RequestOutcome.NO_SESSION, RequestOutcome.FENCED})
"""Outcomes that the client is told of."""


def request_outcome(table: ClientTable, request: Request, *, unexecuted: bool, commit_min: int) -> RequestOutcome:
    """The outcome of a request. `unexecuted`: the client has an entry in the log that this primary has not executed."""
    slot = table.get(request.client)
    if unexecuted or request.session > (commit_min if slot is None else slot.session):
        return RequestOutcome.IN_PROGRESS
    if slot is None:
        return RequestOutcome.NO_SESSION if table.config.sessions else RequestOutcome.NEW
    if request.session < slot.session:
        return RequestOutcome.FENCED
    if request.request < slot.request:
        return RequestOutcome.STALE
    if request.request == slot.request:
        return RequestOutcome.DUPLICATE
    if request.request == slot.request + 1 or table.config.gaps:
        return RequestOutcome.NEW
    return RequestOutcome.GAP


def register_outcome(table: ClientTable, request: Request, *, unexecuted: bool) -> RequestOutcome:
    """The outcome of a register."""
    slot = table.get(request.client)
    if unexecuted:
        return RequestOutcome.IN_PROGRESS
    if slot is None or request.incarnation > slot.incarnation:
        return RequestOutcome.NEW
    return RequestOutcome.STALE if request.incarnation < slot.incarnation else RequestOutcome.DUPLICATE


def request_error(request: Request, *, sessions: bool) -> str | None:
    """Why no correct client sends this request, or None."""
    numbers = (request.client, request.session, request.request, request.incarnation)
    if request.client < 1 or not all(0 <= number <= NUMBER_MAX for number in numbers):
        return "numbers are 0..2^63-1, the client's at least 1"
    if request.request == 0:
        if not sessions:
            return "a register, and sessions are off"
        return None if request.incarnation and not request.session and not request.body else "a malformed register"
    if request.incarnation or (request.session and not sessions):
        return "a session or incarnation where none belongs"
    return None


class Requests(NormalOperation):
    """Takes requests: prepares, answers from the table, tells the client, or drops."""

    def on_request(self, message: Request) -> None:
        """A client's request or register."""
        if not self.is_normal_primary:
            self.ignore("request: not a normal primary")
            return
        error = request_error(message, sessions=self.clients.sessions)
        if error is not None:
            self.ignore(f"request: {error}")
            return
        outcome = self.outcome_of(message)
        if outcome is RequestOutcome.NEW:
            self._on_new(message)
        elif outcome is RequestOutcome.DUPLICATE:
            self._on_duplicate(message)
        elif outcome in EVICTING:
            self._evict(message, outcome)
        else:
            self._drop(message, outcome)

    def outcome_of(self, message: Request) -> RequestOutcome:
        """The outcome of a well-formed request here and now."""
        table = self.client_table
        unexecuted = message.client in self.unexecuted
        if message.request == 0:
            outcome = register_outcome(table, message, unexecuted=unexecuted)
        else:
            outcome = request_outcome(table, message, unexecuted=unexecuted, commit_min=self.commit_min)
        return self._mistaken(message, outcome) if self.faults else outcome

    def _mistaken(self, message: Request, outcome: RequestOutcome) -> RequestOutcome:
        """The outcome under the faults `table.*` that are switched on."""
        taken = {
            "table.gap_accepted": outcome is RequestOutcome.GAP,
            "table.evict_forgets": outcome is RequestOutcome.NO_SESSION,
            "table.replayed_register": message.request == 0 and outcome is not RequestOutcome.IN_PROGRESS,
        }
        if any(applies for fault, applies in taken.items() if fault in self.faults):
            outcome = RequestOutcome.NEW
        recorded = self.recorded_uncommitted.get((message.client, message.session), 0)
        if outcome is RequestOutcome.NEW and 0 < message.request <= recorded:
            return RequestOutcome.STALE
        return outcome

    def _on_new(self, message: Request) -> None:
        if self.has_room:
            self._prepare(message)
            return
        if len(self.request_queue) < self.config.request_queue_max:
            self.request_queue[message.client] = message
        self.ignore("request: pipeline full")

    def _on_duplicate(self, message: Request) -> None:
        slot = self.client_table.get(message.client)
        if slot is None or slot.request != message.request:
            self.ignore("register: its session has made requests")
            return
        reply = self.reply_of(slot)
        self.emit(
            "resend_reply",
            m_type="reply",
            m_op=slot.op,
            m_client=message.client,
            m_session=self.shown(message.session),
            m_request=message.request,
            m_incarnation=self.shown(message.incarnation),
            m_reply=reply_checksum(reply),
        )
        self.send_reply(reply)

    def _evict(self, message: Request, outcome: RequestOutcome) -> None:
        """Tells the client that its session is gone."""
        self._emit_outcome("send_eviction", message, outcome)
        slot = self.client_table.get(message.client)
        incarnation = 0 if slot is None else slot.incarnation
        fields = (message.session, message.request, outcome.value, incarnation, self.view, self.clock)
        self.effects.append(SendClient(message.client, Eviction(message.client, *fields)))

    def _drop(self, message: Request, outcome: RequestOutcome) -> None:
        """The client gets no answer now; if it is its entry that is in progress, it waits here for the reply."""
        self._emit_outcome("drop_request", message, outcome)
        op = self.unexecuted.get(message.client)
        if op is not None and waiter_of(self.log[op].header) == waiter_of(message):
            self.waiters.add(waiter_of(message))

    def _emit_outcome(self, event: str, message: Request, outcome: RequestOutcome) -> None:
        self.emit(
            event,
            m_client=message.client,
            m_session=self.shown(message.session),
            m_request=message.request,
            m_incarnation=self.shown(message.incarnation),
            m_outcome=outcome.value,
        )

    def _prepare(self, request: Request) -> None:
        self.waiters.add(waiter_of(request))
        if request.request == 0:
            self.propose(Register(request.client, request.incarnation), "on_request")
        else:
            self.propose(UserRequest(request.client, request.session, request.request, request.body), "on_request")

    def prepare_queued_requests(self) -> None:
        """Takes requests that waited for room in the pipeline, oldest first."""
        while self.request_queue and self.is_normal_primary and self.has_room:
            client = next(iter(self.request_queue))
            self.on_request(self.request_queue.pop(client))
