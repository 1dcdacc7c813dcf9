"""State of a cluster as the June 2022 build keeps it (seed 002): journal, quorums, pipeline, messages.

A prepare has a number of its own (1 is the root, op 0), so that two prepares of one view and op can be told apart; so
has a message. A receiver acts on `current[r]`, the message it handles; anything that was addressed to it may become it.
"""

from __future__ import annotations

from viewproof.spec.lang import Bool, Cells, Label, Option, Schema, State, as_index, schema_of, variable
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.tigerbeetle.headers import Headers
from viewproof.spec.vsr.tigerbeetle.sorts import (
    Client,
    Count,
    Digest,
    Message,
    Nonce,
    Op,
    Prepare,
    Replica,
    Request,
    View,
)


class Status(Label):
    """Where a replica stands in the life of its view."""

    NORMAL: Status
    VIEW_CHANGE: Status
    RECOVERING: Status


NORMAL, VIEW_CHANGE, RECOVERING = Status.NORMAL, Status.VIEW_CHANGE, Status.RECOVERING
NIL, EQL, FIX, VSR, CUT = 0, 1, 2, 3, 4


class MessageKind(Label):
    """Kind of a message; none: it does not exist."""

    NONE: MessageKind
    REQUEST: MessageKind
    PREPARE: MessageKind
    PREPARE_OK: MessageKind
    COMMIT: MessageKind
    START_VIEW_CHANGE: MessageKind
    DO_VIEW_CHANGE: MessageKind
    START_VIEW: MessageKind
    RECOVERY: MessageKind
    RECOVERY_RESPONSE: MessageKind
    REQUEST_START_VIEW: MessageKind
    REQUEST_HEADERS: MessageKind
    REQUEST_PREPARE: MessageKind
    HEADERS: MessageKind
    NACK_PREPARE: MessageKind
    PING: MessageKind
    PONG: MessageKind


KIND = {label: getattr(MessageKind, label.upper()) for label in MessageKind.labels}

SLOTS = 128
"""Slots of the journal in the simulator's build; the checkpoint stays 0, so ops end below it."""
PIPELINE = 32
"""Most prepares in the pipeline."""
HEADER_SIZE = 128
"""Bytes of a message without content, and of each header that it carries."""
HEADERS_ASKED = 64
"""Most headers in an answer to request_headers."""
SECTOR = 32
"""Headers per sector of the header ring."""


class Replicas(State):
    """What each replica holds."""

    up: Cells[Replica, Bool] = variable("is the process running?", init=1)
    set_up: Cells[Replica, Bool] = variable("was its memory set up before?")
    journal_ready: Cells[Replica, Bool] = variable("has the journal been recovered since the start?")
    status: Cells[Replica, Status] = variable("normal, view_change or recovering", init=RECOVERING)
    view: Cells[Replica, View] = variable("the view the replica is in; in memory only")
    log_view: Cells[Replica, View] = variable("view in which its log was last authoritative; in memory only")
    op: Cells[Replica, Op] = variable("head of its log; headers below may be missing")
    commit_min: Cells[Replica, Op] = variable("highest op it has executed")
    commit_max: Cells[Replica, Op] = variable("highest op it knows to be committed; may be above op")
    current: Cells[Replica, Message] = variable("the message it handles, or handled last")
    walk_of: Cells[Replica, Message] = variable("the message whose headers it goes through; 0 = those of its votes")
    walk_top: Cells[Replica, Op] = variable("highest op of these headers")
    walk_left: Cells[Replica, Count] = variable("how many are left")
    walked: Cells[tuple[Replica, Op], Count] = variable("how many of that op it went through")
    session: Cells[tuple[Replica, Client], Op] = variable("client table: op of the register; 0 = no entry")
    answered: Cells[tuple[Replica, Client], Request] = variable("client table: number of the last executed request")
    replied: Cells[tuple[Replica, Client], Op] = variable("client table: op of the last reply")


class Journals(State):
    """Its journal."""

    entry: Cells[tuple[Replica, Op], Prepare] = variable("header in the slot, in memory; 0 = none")
    dirty: Cells[tuple[Replica, Op], Bool] = variable("is the slot's prepare not known to be durable here?")
    faulty: Cells[tuple[Replica, Op], Bool] = variable("was the slot's content lost to a fault?")
    unsure: Cells[tuple[Replica, Op], Bool] = variable("is the slot, emptied by a cut, still faulty in older builds?")
    body: Cells[tuple[Replica, Op], Prepare] = variable("prepare that the replica knows its prepares ring to hold")
    writing: Cells[tuple[Replica, Op, Prepare], Bool] = variable("is that prepare being written?")
    disk_body: Cells[tuple[Replica, Op], Prepare] = variable("prepares ring on disk, faults aside")
    disk_header: Cells[tuple[Replica, Op], Prepare] = variable("headers ring on disk, faults aside")
    header_buffer: Cells[tuple[Replica, Op], Prepare] = variable("headers of the sector that is being written")
    sector_busy: Cells[tuple[Replica, Op], Bool] = variable(
        "is the sector of the headers ring from that slot being written?"
    )
    write_first: Cells[tuple[Replica, Op], Count] = variable("number of the write of that slot that is done next")
    write_next: Cells[tuple[Replica, Op], Count] = variable("number of the next write of that slot")
    write_of: Cells[tuple[Replica, Op, Count], Prepare] = variable("what is written by the write of that number")
    next_slot: Cells[Replica, Op] = variable("slot whose recovery is decided next")


class Collected(State):
    """What it collected of others."""

    svc_from: Cells[tuple[Replica, Replica], Bool] = variable(
        "start_view_change of this view received from that replica"
    )
    svc_quorum: Cells[Replica, Bool] = variable("enough of them")
    dvc_of: Cells[tuple[Replica, Replica], Message] = variable("do_view_change of this view received from that replica")
    dvc_quorum: Cells[Replica, Bool] = variable("enough of them: the log is merged, repair is allowed")
    installed: Cells[Replica, Bool] = variable("has the log of this view's start_view, or of the answers, been taken?")
    nack_op: Cells[Replica, Op] = variable("op for which nacks are collected; 0 = none")
    nack_from: Cells[tuple[Replica, Replica], Bool] = variable("nack for it received from that replica")
    pipeline: Cells[tuple[Replica, Op], Prepare] = variable("prepare in the pipeline at that op; in memory only")
    pipeline_lo: Cells[Replica, Op] = variable("lowest op of the pipeline", init=1)
    pipeline_hi: Cells[Replica, Op] = variable("highest op of the pipeline; below pipeline_lo if it is empty")
    ok_from: Cells[tuple[Replica, Op, Replica], Bool] = variable(
        "acknowledgement of the pipeline entry counted in this view"
    )
    ok_ever: Cells[tuple[Replica, Op, Replica], Bool] = variable(
        "acknowledgement of the pipeline entry counted in any view"
    )
    nonce: Cells[Replica, Nonce] = variable("nonce of the recovery under way")
    recovers_from: Cells[Replica, Option[Replica]] = variable("whose answer it recovers from")
    response_of: Cells[tuple[Replica, Replica], Message] = variable("newest answer from that replica to this nonce")


class Messages(State):
    """What a message of this family is; all else of it is in `headers.Headers`."""

    m_kind: Cells[Message, MessageKind] = variable("its kind; none = it does not exist")
    m_count: Cells[Message, Count] = variable("how many headers it brings")


class History(State):
    """What only invariants read."""

    prepared: Cells[tuple[View, Op], Prepare] = variable("the prepare of that view and op")
    acked: Cells[tuple[Replica, Prepare], Bool] = variable("has the replica ever acknowledged it?")
    promise: Cells[tuple[Replica, Op], Prepare] = variable("prepare it acknowledged there, and no later log dropped")
    start_commit: Cells[Replica, Op] = variable("commit number when it last started a view, as primary")
    start_message: Cells[Replica, Message] = variable("first start_view of that view; 0 = not sent yet")
    promised: Cells[Replica, View] = variable("highest view it sent a start_view_change or do_view_change of")
    took_part: Cells[Replica, Bool] = variable("has it ever prepared for others, acknowledged or voted?")
    canonical: Cells[Op, Prepare] = variable("prepare executed at that op by whoever was first")
    canonical_view: Cells[Op, View] = variable("view of whoever was first")
    executed_top: Op = variable("highest op that any replica executed")
    client_top: Client = variable("highest number of a client whose request was executed")
    nonce_used: Cells[Nonce, Bool] = variable("has a recovery used it?")
    table_known: Bool = variable("has a slot shown which table of recovery cases this build has?")
    table_early: Bool = variable("is it that of the first week of June?")
    digest: Cells[Replica, Digest] = variable("state of its state machine; 0 = that of an empty log")
    digest_lost: Cells[Replica, Digest] = variable("the state that it lost in a crash; 0 = none")
    digest_first: Digest = variable("the state of an empty log; 0 = not shown yet")
    digest_at: Cells[Op, Digest] = variable("the state after that op")


class June(Headers, Replicas, Journals, Collected, Messages, History):
    """The state of a cluster."""

    cfg: Config


def schema_2022() -> Schema:
    """The variables."""
    return schema_of(Headers, Replicas, Journals, Collected, Messages, History)


def primary(state: June, view: View) -> Replica:
    """The primary of a view."""
    return as_index(Replica, view % state.cfg.replicas)
