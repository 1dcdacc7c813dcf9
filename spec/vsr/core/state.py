"""State of a cluster: what each replica holds, what was sent, and history that only invariants read.

An entry of a log is named by the view that prepared it: the number view+1, so that 0 means "none". (view, op) names a
prepare for ever; its parent is part of it, so the hash chain is in the model.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Index,
    Label,
    Message,
    Option,
    Sent,
    State,
    as_index,
    field,
    ghost,
    message,
    point,
    some,
    value_of,
    variable,
    watermark,
    where,
)
from viewproof.spec.lang.vocabulary import Between
from viewproof.spec.vsr.core.options import Cluster


class Replica(Index):
    """A member of the cluster, numbered from 0."""


class View(Index):
    """A view; its primary follows from it."""


class Op(Index, lo=1):
    """Place of an entry in the log."""


class Length(Op, lo=0, ends_with="Op"):
    """Length of a log: 0 or an op."""


class Client(Index, lo=1):
    """A client."""


class Request(Index, lo=1):
    """Number of a client's request."""


class Restart(Index, lo=1):
    """Number of a crash and restart."""


class Feature(Index, lo=1):
    """A feature that control entries enable."""


class Rot(Index, lo=1):
    """Number of something that went bad on a disk."""


class Status(Label):
    """Where a replica stands in the life of its view."""

    NORMAL: Status
    VIEW_CHANGE: Status
    RECOVERING: Status


NORMAL, VIEW_CHANGE, RECOVERING = Status.NORMAL, Status.VIEW_CHANGE, Status.RECOVERING
Entry = Option[View]
"""An entry: none, or the view that prepared it."""

EXECUTED = "executed"
"""Tag of a variable that is a function of what its replica executed: a restart rebuilds it, a snapshot holds it."""

LOADED_APART = "loaded apart"
"""Tag of such a variable that a part loads by itself at a restart."""

REBUILT = "rebuilt"
"""Tag of a variable that follows from those, and that no snapshot holds."""


def by_primary(cfg: Cluster, view: View, *_: Index) -> Replica:
    """the primary of the view"""
    return as_index(Replica, view % cfg.replicas)


def by_replica(cfg: Cluster, view: View, r: Replica, *_: Index) -> Replica:
    """the replica"""
    return r


Log = Callable[[Op], Entry]
"""What a log holds at each op."""


class Prepare(Message):
    """A primary asks its backups to take an entry into their logs (VR Revisited §4.1, step 2)."""

    client: Client = field("client; 0 = not sent", marks=True)
    request: Request = field("request number")
    parent: Entry = field("the entry at the op before")


class DoViewChange(Message):
    """A replica offers its log to the primary of a later view (VR Revisited §4.2, step 2)."""

    log_view: View = field("log_view")
    op: Op = field("highest op of the log")
    commit: Op = field("commit_min")
    entry: Cells[Op, Entry] = field("the log")


class StartView(Message):
    """A new primary starts its view with a log (VR Revisited §4.2, step 3)."""

    op: Op = field("highest op of the log it starts with")
    entry: Cells[Op, Entry] = field("the log")


class Replicas(State):
    """What each replica holds."""

    cfg: Cluster
    status: Cells[Replica, Status] = variable("normal, view_change or recovering")
    view: Cells[Replica, View] = variable("the view the replica is in")
    log_view: Cells[Replica, View] = variable("view in which its log was last authoritative (the paper's v')")
    durable_view: Cells[Replica, View] = variable("view in the superblock")
    durable_log_view: Cells[Replica, View] = variable("log_view in the superblock")
    op: Cells[Replica, Op] = variable("highest op in its log")
    commit_min: Cells[Replica, Op] = variable("highest op it has executed")
    commit_max: Cells[Replica, Op] = variable("highest op it knows to be committed")
    entry: Cells[tuple[Replica, Op], Entry] = variable("entry known at that op of its log")
    written: Cells[tuple[Replica, Op], Bool] = variable("is that entry durable in its journal (not dirty)?")
    table: Cells[tuple[Replica, Client], Request] = variable(
        "client table: number of the client's last executed request", tags=(EXECUTED,)
    )
    replies: Cells[Client, Request] = variable("number of the last request the client was sent a reply to")


class Messages(State):
    """What was sent."""

    cfg: Cluster
    prepare: Sent[tuple[View, Op], Prepare] = message(by_primary, to="the backups")
    ack: Cells[tuple[View, Replica, Op], Entry] = message(
        by_replica, to="the primary of the view", title="prepare_ok", doc="the entry acknowledged; 0 = none"
    )
    commit_sent: Cells[View, Op] = watermark(
        by_primary, to="the backups", title="commit", doc="commit numbers sent by a view's primary"
    )
    svc: Cells[tuple[View, Replica], Bool] = message(by_replica, to="all others", title="start_view_change")
    dvc: Sent[tuple[View, Replica], DoViewChange] = message(by_replica, to="the primary of the view")
    sv: Sent[View, StartView] = message(by_primary, to="the backups", doc="start_view sent: the view has started")


class History(State):
    """What only invariants and bounds read."""

    executed: Cells[tuple[Replica, Op], Entry] = ghost("entry that the replica executed last at that op")
    first_executed: Cells[Op, Entry] = ghost("entry executed at that op by whoever was first")
    replied_in: Cells[Op, Entry] = ghost("1 + the view in which the op was first replied to; 0 = not yet")
    restarts: Restart = ghost("crashes and restarts so far (bounds a finite model)")


class Core(Replicas, Messages, History):
    """The state of the core protocol."""

    cfg: Cluster

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> Messages:
            """The messages that a replica has received."""


def primary(s: Messages, view: View) -> Replica:
    """The primary of a view: views go round the replicas (VR Revisited §4)."""
    return as_index(Replica, view % s.cfg.replicas)


def entry_of_view(messages: Messages, view: View, op: Op) -> Entry:
    """The entry that a started view has at an op: from its start_view up to that one's op, prepared in the view
    above.
    """
    return where(op <= messages.sv[view].op, lambda: messages.sv[view].entry[op], some(view))


def prepare_of(s: Messages, entry: Entry, op: Op) -> Prepare:
    """The prepare that an entry names."""
    return s.prepare[value_of(entry), op]


def client_of(s: Messages, entry: Entry, op: Op) -> Client:
    """The client of the prepare that an entry names."""
    return prepare_of(s, entry, op).client


def request_of(s: Messages, entry: Entry, op: Op) -> Request:
    """The request number of the prepare that an entry names."""
    return prepare_of(s, entry, op).request


def parent_of(s: Core, r: Replica, op: Op) -> Entry:
    """The entry that r's log has before that op; none before the first."""
    return where(op == 1, NONE, lambda: s.entry[r, op - 1])


@point
def durable(s: Core, r: Replica, op: Op) -> Bool:
    """Does a crash leave the op on the replica?"""
    return s.written[r, op]


@point
def snapshot_op(s: Core, r: Replica) -> Op:
    """The op up to which r needs no log: a crash leaves what it executed up to there."""
    return as_index(Op, 0)


def executed_state(s: Core) -> tuple[str, ...]:
    """The variables that are a function of what a replica executed."""
    return s.schema.tagged(EXECUTED)


def loaded_apart(s: Core) -> tuple[str, ...]:
    """Those of them that a part loads by itself at a restart."""
    return s.schema.tagged(LOADED_APART)


def copy(state: Core, to: tuple[Any, ...], source: tuple[Any, ...] | None) -> None:
    """Set all cells of a variable under an index prefix, `(name, *prefix)`, to those of another one; to 0 without.

    A member of the prefix may be a range: the update is then made for each of its members.
    """
    name, *prefix = to
    rest = state.schema.vars[name].index[len(prefix) :]
    ranges = sum(isinstance(p, Between) for p in prefix)

    def value(*bound: Any) -> Any:
        if source is None:
            return state.schema.vars[name].blank
        return getattr(state, source[0])[(*source[1:], *bound[ranges:])]

    if rest or ranges:
        getattr(state, name).update((*prefix, *rest), value)
    else:
        getattr(state, name)[tuple(prefix)] = value()
