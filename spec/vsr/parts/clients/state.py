"""State of client tables: slots, sessions, and the messages that open and use them.

A slot is named by its client. `table` holds the number of the client's last executed request, `table_op` its op; 0
means no slot. With sessions a slot also has the op and the incarnation of its register.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    BLANK,
    Bool,
    Cells,
    Index,
    Number,
    Option,
    Schema,
    Sent,
    State,
    Values,
    field,
    ghost,
    variable,
)
from viewproof.spec.vsr.core.state import EXECUTED, Client, Entry, Messages, Op, Prepare, Replica, Request, View
from viewproof.spec.vsr.parts.protocol import Protocol

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


class Incarnation(Index, lo=1):
    """How often a client began anew."""


class Table(State):
    """What the table adds to the core."""

    table_op: Cells[tuple[Replica, Client], Op] = variable(
        "client table: op of that request or register; 0 = no slot", tags=(EXECUTED,)
    )


class Slots(State):
    """Slots, where their number is fixed."""

    slots_used: Cells[Replica, Number] = variable(
        "number of slots in use", values=lambda cfg: Values(0, cfg.client_table.slots), tags=(EXECUTED,)
    )
    evicted_to: Cells[Replica, Op] = variable(
        "op of the slot evicted last: all slots have later ones", tags=(EXECUTED,)
    )


class TableHistory(State):
    """What invariants remember of the table, and of replies."""

    recorded: Cells[Op, Bool] = ghost("did the first execution of the op change the client table?")
    evicted_at: Cells[Op, Client] = ghost("client that lost its slot at the op's first execution; 0 = none")
    first_reply: Cells[Op, Entry] = ghost("entry that the first reply of the op names; 0 = not replied to")
    last_reply: Cells[Op, Entry] = ghost("entry that the latest reply of the op names")


class SessionPrepare(Prepare):
    """A prepare of a request in a session, or of a register, which opens one; a control entry has neither."""

    session: Op = field("session of a request", default=BLANK)
    incarnation: Incarnation = field("a register's; else 0", default=BLANK)


class Sessions(State):
    """Sessions, in place of the core's numbers of replies."""

    table_session: Cells[tuple[Replica, Client], Op] = variable(
        "client table: session, the op of its register", tags=(EXECUTED,)
    )
    table_incarnation: Cells[tuple[Replica, Client], Incarnation] = variable(
        "client table: the register's incarnation", tags=(EXECUTED,)
    )
    session_replies: Cells[tuple[Client, Op], Option[Request]] = variable(
        "1 + number of the last request of the session that the client was sent a reply to; 0 = it has no session"
    )


class SessionMessages(Messages):
    """Prepares with sessions."""

    prepare: Sent[tuple[View, Op], SessionPrepare]


class Clients(Table, Slots, TableHistory, Sessions, SessionMessages, Protocol):
    """The state with a client table, and with sessions where they are on."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> SessionMessages:
            """The messages that a replica has received."""


def of_table(cfg: Config) -> tuple[type[State], ...]:
    """What the table declares."""
    return (Table, *((Slots,) if cfg.client_table.slots else ()), TableHistory)


def drop_replies(s: Schema, cfg: Config) -> None:
    """Replies are counted in each session."""
    s.remove("replies")
