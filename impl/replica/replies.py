"""What execution leaves behind for clients: the client table, replies, and who waits for one.

Rule 9 of docs/core-protocol.md, docs/clients-and-control.md.

Waiters are local to this replica and forgotten when the view changes. They decide where a reply goes, never what
becomes of a request.
"""

from __future__ import annotations

from typing import TypeAlias

from viewproof.impl.interface.effects import SendClient
from viewproof.impl.interface.messages import PrepareHeader, Reply, Request, reply_checksum
from viewproof.impl.machine.state_machine import appended_of, stored_of
from viewproof.impl.replica.client_table import Slot
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State
from viewproof.impl.trace.events import AskedColumns

Waiter: TypeAlias = tuple[int, int, int, int]
"""Client, session, request and incarnation of a request that a client waits for."""


_INT_MAX = (1 << 63) - 1


def _signed(number: int) -> int:
    """64 bits as the signed number that a column holds."""
    return number - (1 << 64) if number > _INT_MAX else number


def asked_columns(body: bytes, result: bytes) -> AskedColumns:
    """The columns of an executed operation that say what it asked of a partition (traces/README.md)."""
    if (appended := appended_of(body, result)) is not None:
        namespace, given = appended
        return {
            "m_operation": "append",
            "m_namespace": _signed(namespace),
            "m_offset": given.offset,
            "m_count": given.count,
        }
    if (stored := stored_of(body, result)) is None:
        return {"m_operation": "other"}
    operation, accepted = stored
    return {
        "m_operation": "store" if accepted else "refused",
        "m_namespace": _signed(operation.namespace),
        "m_offset": min(operation.offset, _INT_MAX),
        "m_consumer": _signed(operation.consumer),
        "m_group": int(operation.group),
    }


def waiter_of(entry: Request | PrepareHeader) -> Waiter:
    """The waiter of a request, or of the entry it became."""
    return (entry.client, entry.session, entry.request, entry.incarnation)


class Replies:
    """Keeps the client table along the executed prefix, and answers from it; `waiters` are clients here."""

    def __init__(self, state: State, out: Outbox) -> None:
        self.state = state
        self.out = out
        self.waiters: set[Waiter] = set()

    def forget_view(self) -> None:
        """Another view begins."""
        self.waiters = set()

    def stamp(self, header: PrepareHeader) -> tuple[int, int]:
        """Op and view that an executed entry's slot and reply are stamped with: those of its prepare."""
        return header.op, header.view

    def record_executed(self, header: PrepareHeader, result: bytes) -> tuple[Reply | None, int | None]:
        """Puts an executed entry into the client table.

        Returns its reply, None for a control entry, and the client that lost its slot, if one did.
        """
        if header.client == 0:
            return None, None
        op, view = self.stamp(header)
        table = self.state.client_table
        if header.request == 0:
            session = header.op
            evicted = table.register(header.client, session, header.incarnation, op, view, result)
        else:
            session = header.session
            evicted = table.record(header.client, session, header.request, op, view, result)
        replica = view % self.state.replica_count
        return Reply(header.client, session, header.request, header.op, result, view, replica), evicted

    def reply_of(self, slot: Slot) -> Reply:
        """The reply to a slot's request: every field but `clock` is a function of the prepare."""
        replica = slot.view % self.state.replica_count
        return Reply(slot.client, slot.session, slot.request, slot.op, slot.body, slot.view, replica)

    def emit_execute(
        self, header: PrepareHeader, reply: Reply | None, evicted: int | None, asked: AskedColumns
    ) -> None:
        """The event of an executed entry; a primary whose client waits for the reply sends it."""
        state, waiter, enabled = self.state, waiter_of(header), self.state.enabled
        waits = state.is_normal_primary and reply is not None and waiter in self.waiters
        self.waiters.discard(waiter)
        self.out.emit(
            "execute",
            m_type="reply" if waits else None,
            m_op=header.op,
            m_checksum=header.checksum,
            m_client=header.client,
            m_session=state.shown(header.session),
            m_request=header.request,
            m_incarnation=state.shown(header.incarnation),
            m_feature=header.feature,
            m_evicted=evicted or 0,
            m_reply=reply_checksum(reply) if reply is not None and state.config.traced else None,
            m_chain_from=enabled.chain_from,
            m_chain=enabled.checksum or None,
            **asked,
        )
        if waits and reply is not None:
            self.send_reply(reply)

    def send_reply(self, reply: Reply) -> None:
        """Sends a reply, stamped with the clock of now."""
        fields = (reply.session, reply.request, reply.op, reply.body, reply.view, reply.replica)
        self.out.effects.append(SendClient(reply.client, Reply(reply.client, *fields, self.state.clock)))
