"""State of a cluster as the June 2022 build keeps it (seed 002): journal, quorums, pipeline, messages.

A prepare has a number of its own (1 is the root, op 0), so that two prepares of one view and op can be told apart; so
has a message. A receiver acts on `current[r]`, the message it handles; anything that was addressed to it may become it.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import BOOL, Index, Label, Schema, as_index, one_of, up_to


class Replica(Index):
    """A member of the cluster, numbered from 0."""


class View(Index):
    """A view; its primary follows from it."""


class Op(Index):
    """Place of an entry in the log."""


class Prepare(Index, lo=1):
    """Number of a prepare."""


class Message(Index, lo=1):
    """Number of a message."""


class Client(Index, lo=1):
    """A client."""


class Request(Index):
    """Number of a client's request."""


class Count(Index):
    """How many replicas did something: a number that an event shows."""


class Nonce(Index, lo=1):
    """Number of a recovery, or of its questions."""


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
SECTOR = 32
"""Headers per sector of the header ring."""
ROOT = 1


def schema_2022() -> Schema:
    """Declare the variables."""
    s = Schema()
    _replica(s)
    _journal(s)
    _collected(s)
    _messages(s)
    _history(s)
    return s


def _replica(s: Schema) -> None:
    s.state("up", (Replica,), BOOL, init=1, doc="is the process running?")
    s.state("journal_ready", (Replica,), BOOL, doc="has the journal been recovered since the start?")
    s.state("status", (Replica,), one_of(Status), init=RECOVERING, doc="normal, view_change or recovering")
    s.state("view", (Replica,), up_to(View), doc="the view the replica is in; in memory only")
    s.state("log_view", (Replica,), up_to(View), doc="view in which its log was last authoritative; in memory only")
    s.state("op", (Replica,), up_to(Op), doc="head of its log; headers below may be missing")
    s.state("commit_min", (Replica,), up_to(Op), doc="highest op it has executed")
    s.state("commit_max", (Replica,), up_to(Op), doc="highest op it knows to be committed; may be above op")
    s.state("current", (Replica,), up_to(Message), doc="the message it handles, or handled last")
    s.state("session", (Replica, Client), up_to(Op), doc="client table: op of the register; 0 = no entry")
    s.state("answered", (Replica, Client), up_to(Request), doc="client table: number of the last executed request")
    s.state("replied", (Replica, Client), up_to(Op), doc="client table: op of the last reply")


def _journal(s: Schema) -> None:
    s.state("entry", (Replica, Op), up_to(Prepare), doc="header in the slot, in memory; 0 = none")
    s.state("dirty", (Replica, Op), BOOL, doc="is the slot's prepare not known to be durable here?")
    s.state("faulty", (Replica, Op), BOOL, doc="was the slot's content lost to a fault?")
    s.state("unsure", (Replica, Op), BOOL, doc="is the slot, emptied by a cut, still faulty in older builds?")
    s.state("body", (Replica, Op), up_to(Prepare), doc="prepare that the replica knows its prepares ring to hold")
    s.state("writing", (Replica, Op, Prepare), BOOL, doc="is that prepare being written?")
    s.state("disk_body", (Replica, Op), up_to(Prepare), doc="prepares ring on disk, faults aside")
    s.state("disk_header", (Replica, Op), up_to(Prepare), doc="headers ring on disk, faults aside")
    s.state("header_buffer", (Replica, Op), up_to(Prepare), doc="headers of the sector that is being written")
    s.state("sector_busy", (Replica, Op), BOOL, doc="is the sector of the headers ring from that slot being written?")
    s.state("next_slot", (Replica,), up_to(Op), doc="slot whose recovery is decided next")


def _collected(s: Schema) -> None:
    s.state("svc_from", (Replica, Replica), BOOL, doc="start_view_change of this view received from that replica")
    s.state("svc_quorum", (Replica,), BOOL, doc="enough of them")
    s.state("dvc_of", (Replica, Replica), up_to(Message), doc="do_view_change of this view received from that replica")
    s.state("dvc_quorum", (Replica,), BOOL, doc="enough of them: the log is merged, repair is allowed")
    s.state("installed", (Replica,), BOOL, doc="has the log of this view's start_view, or of the answers, been taken?")
    s.state("nack_op", (Replica,), up_to(Op), doc="op for which nacks are collected; 0 = none")
    s.state("nack_from", (Replica, Replica), BOOL, doc="nack for it received from that replica")
    s.state("pipeline", (Replica, Op), up_to(Prepare), doc="prepare in the pipeline at that op; in memory only")
    s.state("pipeline_lo", (Replica,), up_to(Op), init=1, doc="lowest op of the pipeline")
    s.state("pipeline_hi", (Replica,), up_to(Op), doc="highest op of the pipeline; below pipeline_lo if it is empty")
    s.state("ok_from", (Replica, Op, Replica), BOOL, doc="acknowledgement of the pipeline entry counted in this view")
    s.state("ok_ever", (Replica, Op, Replica), BOOL, doc="acknowledgement of the pipeline entry counted in any view")
    s.state("nonce", (Replica,), up_to(Nonce), doc="nonce of the recovery under way")
    s.state("response_of", (Replica, Replica), up_to(Message), doc="newest answer from that replica to this nonce")


def _messages(s: Schema) -> None:
    s.state("sent", (Message, Replica), BOOL, doc="has the message been sent to that replica?")
    s.state("m_kind", (Message,), one_of(MessageKind), doc="its kind; none = it does not exist")
    s.state("m_from", (Message,), up_to(Replica), doc="the replica that composed it")
    s.state("m_view", (Message,), up_to(View), doc="its view")
    s.state("m_op", (Message,), up_to(Op), doc="its op")
    s.state("m_commit", (Message,), up_to(Op), doc="its commit number; of request_headers the lowest op asked for")
    s.state("m_log_view", (Message,), up_to(View), doc="do_view_change: log_view")
    s.state("m_prepare", (Message,), up_to(Prepare), doc="the prepare it is, or is about; 0 = none or any")
    s.state("m_nonce", (Message,), up_to(Nonce), doc="recovery and its answer: nonce")
    s.state("m_low", (Message,), up_to(Op), doc="lowest op of the headers it carries")
    s.state("m_header", (Message, Op), up_to(Prepare), doc="header it carries at that op; 0 = none")
    s.state("p_view", (Prepare,), up_to(View), doc="prepare: view")
    s.state("p_op", (Prepare,), up_to(Op), doc="prepare: op")
    s.state("p_parent", (Prepare,), up_to(Prepare), doc="prepare: the one before it")
    s.state("p_commit", (Prepare,), up_to(Op), doc="prepare: commit number of its primary")
    s.state("p_client", (Prepare,), up_to(Client), doc="prepare: client")
    s.state("p_request", (Prepare,), up_to(Request), doc="prepare: request number")
    s.state("p_register", (Prepare,), BOOL, doc="prepare: does it register a session?")


def _history(s: Schema) -> None:
    s.state("prepared", (View, Op), up_to(Prepare), doc="the prepare of that view and op")
    s.state("acked", (Replica, Prepare), BOOL, doc="has the replica ever acknowledged it?")
    s.state("promise", (Replica, Op), up_to(Prepare), doc="prepare it acknowledged there, and no later log dropped")
    s.state("start_commit", (Replica,), up_to(Op), doc="commit number when it last started a view, as primary")
    s.state("start_message", (Replica,), up_to(Message), doc="first start_view of that view; 0 = not sent yet")
    s.state("promised", (Replica,), up_to(View), doc="highest view it sent a start_view_change or do_view_change of")
    s.state("took_part", (Replica,), BOOL, doc="has it ever prepared for others, acknowledged or voted?")
    s.state("canonical", (Op,), up_to(Prepare), doc="prepare executed at that op by whoever was first")
    s.state("canonical_view", (Op,), up_to(View), doc="view of whoever was first")
    s.state("executed_top", (), up_to(Op), doc="highest op that any replica executed")
    s.state("client_top", (), up_to(Client), doc="highest number of a client whose request was executed")
    s.state("nonce_used", (Nonce,), BOOL, doc="has a recovery used it?")


def primary(state: Any, view: Any) -> Any:
    """The primary of a view."""
    return as_index(Replica, view % state.cfg.replicas)
