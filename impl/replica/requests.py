"""What becomes of a client's request at a normal primary (docs/clients-and-control.md, "Client table"; seed 000).

The outcome is a function of the client table, of the log's unexecuted suffix and of the request alone.
"""

from __future__ import annotations

from enum import StrEnum

from viewproof.impl.interface.effects import SendClient
from viewproof.impl.interface.messages import Eviction, Request, reply_checksum
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.proposals import Register, UserRequest
from viewproof.impl.replica.replies import Replies, waiter_of
from viewproof.impl.replica.state import State

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


class Requests:
    """Takes requests: prepares, answers from the table, tells the client, or drops. `queue` waits for the pipeline."""

    def __init__(self, state: State, out: Outbox, normal: NormalOperation, replies: Replies) -> None:
        self.state = state
        self.out = out
        self.normal = normal
        self.replies = replies
        self.queue: dict[int, Request] = {}

    def forget_view(self) -> None:
        """Another view begins."""
        self.queue = {}

    def on_request(self, message: Request) -> None:
        """A client's request or register."""
        if not self.state.is_normal_primary:
            self.out.ignore("request: not a normal primary")
            return
        error = request_error(message, sessions=self.state.clients.sessions)
        if error is not None:
            self.out.ignore(f"request: {error}")
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
        table = self.state.client_table
        unexecuted = message.client in self.state.unexecuted
        if message.request == 0:
            return register_outcome(table, message, unexecuted=unexecuted)
        return request_outcome(table, message, unexecuted=unexecuted, commit_min=self.state.commit_min)

    def _on_new(self, message: Request) -> None:
        if self.normal.has_room:
            self._prepare(message)
            return
        if len(self.queue) < self.state.config.request_queue_max:
            self.queue[message.client] = message
        self.out.ignore("request: pipeline full")

    def _on_duplicate(self, message: Request) -> None:
        slot = self.state.client_table.get(message.client)
        if slot is None or slot.request != message.request:
            self.out.ignore("register: its session has made requests")
            self._send_eviction(message, RequestOutcome.DUPLICATE)
            return
        reply = self.replies.reply_of(slot)
        self.out.emit(
            "resend_reply",
            m_type="reply",
            m_op=slot.op,
            m_client=message.client,
            m_session=self.state.shown(message.session),
            m_request=message.request,
            m_incarnation=self.state.shown(message.incarnation),
            m_reply=reply_checksum(reply),
        )
        self.replies.send_reply(reply)

    def _evict(self, message: Request, outcome: RequestOutcome) -> None:
        """Tells the client that its session is gone."""
        self._emit_outcome("send_eviction", message, outcome)
        self._send_eviction(message, outcome)

    def _send_eviction(self, message: Request, outcome: RequestOutcome) -> None:
        slot = self.state.client_table.get(message.client)
        incarnation = 0 if slot is None else slot.incarnation
        fields = (message.session, message.request, outcome.value, incarnation, self.state.view, self.state.clock)
        self.out.effects.append(SendClient(message.client, Eviction(message.client, *fields)))

    def _drop(self, message: Request, outcome: RequestOutcome) -> None:
        """The client gets no reply now; if it is its entry that is in progress, it waits here for the reply.

        A register that comes too late is told which incarnation the id has: a client that begins registers above it.
        """
        self._emit_outcome("drop_request", message, outcome)
        if message.request == 0 and outcome is RequestOutcome.STALE:
            self._send_eviction(message, outcome)
        op = self.state.unexecuted.get(message.client)
        if op is not None and waiter_of(self.state.log[op].header) == waiter_of(message):
            self.replies.waiters.add(waiter_of(message))

    def _emit_outcome(self, event: str, message: Request, outcome: RequestOutcome) -> None:
        self.out.emit(
            event,
            m_client=message.client,
            m_session=self.state.shown(message.session),
            m_request=message.request,
            m_incarnation=self.state.shown(message.incarnation),
            m_outcome=outcome.value,
        )

    def _prepare(self, request: Request) -> None:
        self.replies.waiters.add(waiter_of(request))
        if request.request == 0:
            self.normal.propose(Register(request.client, request.incarnation), "on_request")
        else:
            proposal = UserRequest(request.client, request.session, request.request, request.body)
            self.normal.propose(proposal, "on_request")

    def prepare_queued(self) -> None:
        """Takes requests that waited for room in the pipeline, oldest first."""
        while self.queue and self.state.is_normal_primary and self.normal.has_room:
            client = next(iter(self.queue))
            self.on_request(self.queue.pop(client))
