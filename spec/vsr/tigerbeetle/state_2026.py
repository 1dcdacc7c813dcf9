"""State of a cluster as the July 2026 build keeps it: superblock, slots, checkpoints (TigerBeetle, later).

Prepares and messages are numbered as in `state_2022`. Nodes from `cfg.replicas` on are standbys: they never vote.
"""

from __future__ import annotations

from viewproof.spec.lang import Bool, Cells, Label, Option, Schema, State, as_index, schema_of, variable
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.tigerbeetle.headers import Headers
from viewproof.spec.vsr.tigerbeetle.sorts import Client, DataFile, Message, Nonce, Op, Prepare, Replica, Request, View


class Status(Label):
    """Where a replica stands in the life of its view."""

    NORMAL: Status
    VIEW_CHANGE: Status
    RECOVERING: Status
    RECOVERING_HEAD: Status


NORMAL, VIEW_CHANGE, RECOVERING = Status.NORMAL, Status.VIEW_CHANGE, Status.RECOVERING
RECOVERING_HEAD = Status.RECOVERING_HEAD
NIL, EQL, FIX, VSR, CUT, CUT_TORN = 0, 1, 2, 3, 4, 5


class MessageKind(Label):
    """Kind of a message; none: it does not exist."""

    NONE: MessageKind
    REQUEST: MessageKind
    PREPARE: MessageKind
    PREPARE_OK: MessageKind
    COMMIT: MessageKind
    EXIT_VIEW: MessageKind
    JOIN_VIEW: MessageKind
    VIEW: MessageKind
    GET_VIEW: MessageKind
    GET_HEADERS: MessageKind
    GET_PREPARE: MessageKind
    HEADERS: MessageKind
    PING: MessageKind
    PONG: MessageKind
    OTHER: MessageKind


KIND = {label: getattr(MessageKind, label.upper()) for label in MessageKind.labels}

SLOTS = 32
PIPELINE = 4
CHECKPOINT_OPS = 20
COMPACTION_OPS = 4
HEADER_SIZE = 256
"""Bytes of a message without content, and of each header that it carries."""
SUFFIX = PIPELINE + 1
"""Most headers in a row that a view message carries."""


class Replicas(State):
    """What each replica holds."""

    up: Cells[Replica, Bool] = variable("is the process running?")
    journal_ready: Cells[Replica, Bool] = variable("has the journal been recovered since the start?")
    status: Cells[Replica, Status] = variable("normal, view_change, recovering or recovering_head", init=RECOVERING)
    view: Cells[Replica, View] = variable("the view the replica is in")
    log_view: Cells[Replica, View] = variable("view in which its log was last authoritative")
    op: Cells[Replica, Op] = variable("head of its log; headers below may be missing")
    commit_min: Cells[Replica, Op] = variable("highest op it has executed")
    commit_max: Cells[Replica, Op] = variable("highest op it knows to be committed; may be above op")
    checkpoint: Cells[Replica, Op] = variable("op of its checkpoint, in the superblock")
    current: Cells[Replica, Message] = variable("the message it handles, or handled last")
    outer: Cells[Replica, Message] = variable("the message in the midst of which it handles one of its own")
    asked: Cells[Replica, Message] = variable("the request that it took up last")
    syncing: Cells[Replica, Message] = variable("view message whose checkpoint it jumps to; 0 = none")
    taken: Cells[Replica, Message] = variable("view message whose log it took last; 0 = none in this jump")
    header: Cells[tuple[Replica, Op], Prepare] = variable("header in a slot (op mod slots), in memory; 0 = none")
    dirty: Cells[tuple[Replica, Op], Bool] = variable("is the slot's prepare not known to be durable here?")
    faulty: Cells[tuple[Replica, Op], Bool] = variable("was the slot's content lost to a fault?")
    body: Cells[tuple[Replica, Op], Prepare] = variable("prepare that the replica knows the slot of the ring to hold")
    writing: Cells[tuple[Replica, Prepare], Bool] = variable("is that prepare being written?")
    seen: Cells[tuple[Replica, Prepare], Bool] = variable(
        "did it reach the replica since its start? It may be in memory"
    )
    session: Cells[tuple[Replica, Client], Op] = variable("client table: op of the register; 0 = no entry")
    evicted: Cells[tuple[Replica, Client], Bool] = variable("did its table lose that client's entry since it started?")
    answered: Cells[tuple[Replica, Client], Request] = variable("client table: number of the last executed request")
    replied: Cells[tuple[Replica, Client], Op] = variable("client table: op of the last reply; 0 = not known here")
    nonce: Cells[Replica, Nonce] = variable("nonce of the questions for a view since the start; 0 = none yet")
    list_op: Cells[Replica, Op] = variable("head of the headers of its last join_view or view")
    list_low: Cells[Replica, Op] = variable("lowest op of them")
    list_floor: Cells[Replica, Op] = variable("lowest op of those that it may vote with, known or not, in memory")
    list_header: Cells[tuple[Replica, Op], Prepare] = variable("those headers; 0 = blank")
    next_slot: Cells[Replica, Op] = variable("slot whose recovery is decided next")
    later: Cells[Replica, Bool] = variable("did it start from a checkpoint, or jump to one? Its table is not told")


class Durable(State):
    """What is durable, or is being written."""

    has_disk: Cells[Replica, Bool] = variable("has a data file been made for it?")
    new_disk: Cells[Replica, Bool] = variable("has another one been made since, that it has not started from?")
    disk_of: Cells[DataFile, Option[Replica]] = variable("whose data file has that id")
    opened: Option[Replica] = variable("the replica that started last")

    durable_view: Cells[Replica, View] = variable("view in the superblock")
    durable_log_view: Cells[Replica, View] = variable("log_view in the superblock")
    durable_commit: Cells[Replica, Op] = variable("commit_max in the superblock")
    next_view: Cells[Replica, View] = variable("view of the superblock write asked for last")
    next_log_view: Cells[Replica, View] = variable("its log_view")
    next_commit: Cells[Replica, Op] = variable("its commit_max")
    next_checkpoint: Cells[Replica, Op] = variable("its checkpoint")
    ck_view: Cells[Replica, View] = variable("view of the superblock write for a checkpoint asked for last")
    ck_log_view: Cells[Replica, View] = variable("its log_view")
    ck_commit: Cells[Replica, Op] = variable("its commit_max")
    ck_checkpoint: Cells[Replica, Op] = variable("its checkpoint")
    view_pending: Cells[Replica, Bool] = variable("is a superblock write for a view under way?")
    checkpoint_pending: Cells[Replica, Bool] = variable("is one for a checkpoint under way?")
    on_disk: Cells[tuple[Replica, Prepare], Bool] = variable(
        "was the prepare ever written whole to this replica's ring?"
    )
    kept: Cells[tuple[Replica, Op], Prepare] = variable("prepare last made durable in the slot")


class Votes(State):
    """What it collected of others."""

    exit_from: Cells[tuple[Replica, Replica], Bool] = variable("exit_view of this view received from that replica")
    exit_quorum: Cells[Replica, Bool] = variable("was a quorum of them met?")
    join_of: Cells[tuple[Replica, Replica], Message] = variable("join_view of this view received from that replica")
    join_quorum: Cells[Replica, Bool] = variable("are they merged?")
    pipeline: Cells[tuple[Replica, Op], Prepare] = variable("prepare in the pipeline at that op; in memory only")
    agreed: Cells[tuple[Replica, Prepare], Bool] = variable(
        "did r, as primary, count a quorum of acknowledgements for it?"
    )
    ok_from: Cells[tuple[Replica, Op, Replica], Bool] = variable(
        "acknowledgement of that pipeline entry, of this view, counted"
    )


class Messages(State):
    """What a message of this family is; all else of it is in `headers.Headers`."""

    m_kind: Cells[Message, MessageKind] = variable("its kind; none = it does not exist")
    sent_before: Cells[Replica, Bool] = variable("was what it sent last sent to the same replica before, by anyone?")
    sent_last: Cells[Replica, Message] = variable("the message that it sent last")
    sent_to: Cells[Replica, Replica] = variable("to whom")
    m_checkpoint: Cells[Message, Op] = variable("join_view and view: op of the checkpoint")
    m_nack: Cells[tuple[Message, Op], Bool] = variable("join_view: does the sender say that it never had that prepare?")
    m_present: Cells[tuple[Message, Op], Bool] = variable("join_view: does the sender say that it holds that prepare?")


class History(State):
    """What only invariants read."""

    prepared: Cells[tuple[View, Op], Prepare] = variable("the prepare of that view and op")
    acked: Cells[tuple[Replica, Prepare], Bool] = variable("has the replica ever acknowledged it?")
    promise: Cells[tuple[Replica, Op], Prepare] = variable("prepare it acknowledged there, and no later log dropped")
    canonical: Cells[Op, Prepare] = variable("prepare executed at that op by whoever was first")
    canonical_view: Cells[Op, View] = variable("view of whoever was first")
    executed_top: Op = variable("highest op that any replica executed")
    client_top: Client = variable("highest number of a client whose request was executed")


class July(Headers, Replicas, Durable, Votes, Messages, History):
    """The state of a cluster."""

    cfg: Config


def schema_2026() -> Schema:
    """The variables."""
    return schema_of(Headers, Replicas, Durable, Votes, Messages, History)


def primary(state: July, view: View) -> Replica:
    """The primary of a view."""
    return as_index(Replica, view % state.cfg.replicas)


def leads(state: July, r: Replica) -> Bool:
    """Is r the primary of its view?"""
    return primary(state, state.view[r]) == r


def slot_of(o: Op) -> Op:
    """The slot of the ring that op o is in."""
    return as_index(Op, o % SLOTS)


def at(state: July, r: Replica, o: Op) -> Prepare:
    """Header that r's journal has for op o; 0 = none (its slot may hold another op's)."""
    from viewproof.spec.lang import where

    e = state.header[r, slot_of(o)]
    return where(state.p_op[e] == o, e, 0)


def checkpoint_after(c: Op) -> Op:
    """The checkpoint after checkpoint c."""
    from viewproof.spec.lang import where

    return where(c == 0, as_index(Op, CHECKPOINT_OPS - 1), c + CHECKPOINT_OPS)


def prepare_max(c: Op) -> Op:
    """Highest op a replica with checkpoint c prepares."""
    return checkpoint_after(c) + COMPACTION_OPS + 2 * PIPELINE
