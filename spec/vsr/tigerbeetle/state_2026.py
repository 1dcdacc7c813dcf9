"""State of a cluster as the July 2026 build keeps it: superblock, slots, checkpoints (TigerBeetle, later).

Prepares and messages are numbered as in `state_2022`. Nodes from `cfg.replicas` on are standbys: they never vote.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import BOOL, Label, Schema, as_index, one_of, up_to
from viewproof.spec.vsr.tigerbeetle.state_2022 import Client, Message, Nonce, Op, Prepare, Replica, Request, View


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
ROOT = 1


def schema_2026() -> Schema:
    """Declare the variables."""
    s = Schema()
    _replica(s)
    _durable(s)
    _votes(s)
    _messages(s)
    _history(s)
    return s


def _replica(s: Schema) -> None:
    s.state("up", (Replica,), BOOL, doc="is the process running?")
    s.state("journal_ready", (Replica,), BOOL, doc="has the journal been recovered since the start?")
    s.state(
        "status", (Replica,), one_of(Status), init=RECOVERING, doc="normal, view_change, recovering or recovering_head"
    )
    s.state("view", (Replica,), up_to(View), doc="the view the replica is in")
    s.state("log_view", (Replica,), up_to(View), doc="view in which its log was last authoritative")
    s.state("op", (Replica,), up_to(Op), doc="head of its log; headers below may be missing")
    s.state("commit_min", (Replica,), up_to(Op), doc="highest op it has executed")
    s.state("commit_max", (Replica,), up_to(Op), doc="highest op it knows to be committed; may be above op")
    s.state("checkpoint", (Replica,), up_to(Op), doc="op of its checkpoint, in the superblock")
    s.state("current", (Replica,), up_to(Message), doc="the message it handles, or handled last")
    s.state("syncing", (Replica,), up_to(Message), doc="view message whose checkpoint it jumps to; 0 = none")
    s.state("taken", (Replica,), up_to(Message), doc="view message whose log it took last; 0 = none in this jump")
    s.state("header", (Replica, Op), up_to(Prepare), doc="header in a slot (op mod slots), in memory; 0 = none")
    s.state("dirty", (Replica, Op), BOOL, doc="is the slot's prepare not known to be durable here?")
    s.state("faulty", (Replica, Op), BOOL, doc="was the slot's content lost to a fault?")
    s.state("body", (Replica, Op), up_to(Prepare), doc="prepare that the replica knows the slot of the ring to hold")
    s.state("writing", (Replica, Prepare), BOOL, doc="is that prepare being written?")
    s.state("seen", (Replica, Prepare), BOOL, doc="did it reach the replica since its start? It may be in memory")
    s.state("session", (Replica, Client), up_to(Op), doc="client table: op of the register; 0 = no entry")
    s.state("evicted", (Replica, Client), BOOL, doc="did its table lose that client's entry since it started?")
    s.state("answered", (Replica, Client), up_to(Request), doc="client table: number of the last executed request")
    s.state("replied", (Replica, Client), up_to(Op), doc="client table: op of the last reply; 0 = not known here")
    s.state("nonce", (Replica,), up_to(Nonce), doc="nonce of the questions for a view since the start; 0 = none yet")
    s.state("list_op", (Replica,), up_to(Op), doc="head of the headers of its last join_view or view")
    s.state("list_low", (Replica,), up_to(Op), doc="lowest op of them")
    s.state(
        "list_floor", (Replica,), up_to(Op), doc="lowest op of those that it may vote with, known or not, in memory"
    )
    s.state("list_header", (Replica, Op), up_to(Prepare), doc="those headers; 0 = blank")
    s.state("next_slot", (Replica,), up_to(Op), doc="slot whose recovery is decided next")


def _durable(s: Schema) -> None:
    s.state("durable_view", (Replica,), up_to(View), doc="view in the superblock")
    s.state("durable_log_view", (Replica,), up_to(View), doc="log_view in the superblock")
    s.state("durable_commit", (Replica,), up_to(Op), doc="commit_max in the superblock")
    s.state("next_view", (Replica,), up_to(View), doc="view of the superblock write asked for last")
    s.state("next_log_view", (Replica,), up_to(View), doc="its log_view")
    s.state("next_commit", (Replica,), up_to(Op), doc="its commit_max")
    s.state("next_checkpoint", (Replica,), up_to(Op), doc="its checkpoint")
    s.state("ck_view", (Replica,), up_to(View), doc="view of the superblock write for a checkpoint asked for last")
    s.state("ck_log_view", (Replica,), up_to(View), doc="its log_view")
    s.state("ck_commit", (Replica,), up_to(Op), doc="its commit_max")
    s.state("ck_checkpoint", (Replica,), up_to(Op), doc="its checkpoint")
    s.state("view_pending", (Replica,), BOOL, doc="is a superblock write for a view under way?")
    s.state("checkpoint_pending", (Replica,), BOOL, doc="is one for a checkpoint under way?")
    s.state("on_disk", (Replica, Prepare), BOOL, doc="was the prepare ever written whole to this replica's ring?")
    s.state("kept", (Replica, Op), up_to(Prepare), doc="prepare last made durable in the slot")


def _votes(s: Schema) -> None:
    s.state("exit_from", (Replica, Replica), BOOL, doc="exit_view of this view received from that replica")
    s.state("exit_quorum", (Replica,), BOOL, doc="was a quorum of them met?")
    s.state("join_of", (Replica, Replica), up_to(Message), doc="join_view of this view received from that replica")
    s.state("join_quorum", (Replica,), BOOL, doc="are they merged?")
    s.state("pipeline", (Replica, Op), up_to(Prepare), doc="prepare in the pipeline at that op; in memory only")
    s.state("agreed", (Replica, Prepare), BOOL, doc="did r, as primary, count a quorum of acknowledgements for it?")
    s.state(
        "ok_from", (Replica, Op, Replica), BOOL, doc="acknowledgement of that pipeline entry, of this view, counted"
    )


def _messages(s: Schema) -> None:
    s.state("sent", (Message, Replica), BOOL, doc="has the message been sent to that replica?")
    s.state("sent_before", (Replica,), BOOL, doc="was what it sent last sent to the same replica before, by anyone?")
    s.state("m_kind", (Message,), one_of(MessageKind), doc="its kind; none = it does not exist")
    s.state("m_from", (Message,), up_to(Replica), doc="the replica that composed it")
    s.state("m_view", (Message,), up_to(View), doc="its view")
    s.state("m_op", (Message,), up_to(Op), doc="its op")
    s.state("m_commit", (Message,), up_to(Op), doc="its commit number: commit_min of a join_view")
    s.state("m_log_view", (Message,), up_to(View), doc="join_view: log_view")
    s.state("m_checkpoint", (Message,), up_to(Op), doc="join_view and view: op of the checkpoint")
    s.state("m_prepare", (Message,), up_to(Prepare), doc="the prepare it is, or is about")
    s.state("m_nonce", (Message,), up_to(Nonce), doc="get_view, and the view that answers it: nonce")
    s.state("m_low", (Message,), up_to(Op), doc="lowest op of the headers in a row that it carries")
    s.state("m_header", (Message, Op), up_to(Prepare), doc="header it carries at that op; 0 = none or blank")
    s.state("m_nack", (Message, Op), BOOL, doc="join_view: does the sender say that it never had that prepare?")
    s.state("m_present", (Message, Op), BOOL, doc="join_view: does the sender say that it holds that prepare?")
    s.state("p_view", (Prepare,), up_to(View), doc="prepare: view")
    s.state("p_op", (Prepare,), up_to(Op), doc="prepare: op")
    s.state("p_parent", (Prepare,), up_to(Prepare), doc="prepare: the one before it")
    s.state("p_commit", (Prepare,), up_to(Op), doc="prepare: commit number of its primary")
    s.state("p_client", (Prepare,), up_to(Client), doc="prepare: client; 0 = the cluster itself")
    s.state("p_request", (Prepare,), up_to(Request), doc="prepare: request number")
    s.state("p_register", (Prepare,), BOOL, doc="prepare: does it register a session?")


def _history(s: Schema) -> None:
    s.state("prepared", (View, Op), up_to(Prepare), doc="the prepare of that view and op")
    s.state("acked", (Replica, Prepare), BOOL, doc="has the replica ever acknowledged it?")
    s.state("promise", (Replica, Op), up_to(Prepare), doc="prepare it acknowledged there, and no later log dropped")
    s.state("canonical", (Op,), up_to(Prepare), doc="prepare executed at that op by whoever was first")
    s.state("canonical_view", (Op,), up_to(View), doc="view of whoever was first")
    s.state("executed_top", (), up_to(Op), doc="highest op that any replica executed")
    s.state("client_top", (), up_to(Client), doc="highest number of a client whose request was executed")


def primary(state: Any, view: Any) -> Any:
    """The primary of a view."""
    return as_index(Replica, view % state.cfg.replicas)


def leads(state: Any, r: Any) -> Any:
    """Is r the primary of its view?"""
    return primary(state, state.view[r]) == r


def slot_of(o: Any) -> Any:
    """The slot of the ring that op o is in."""
    return as_index(Op, o % SLOTS)


def at(state: Any, r: Any, o: Any) -> Any:
    """Header that r's journal has for op o; 0 = none (its slot may hold another op's)."""
    from viewproof.spec.lang import where

    e = state.header[r, slot_of(o)]
    return where(state.p_op[e] == o, e, 0)


def checkpoint_after(c: Any) -> Any:
    """The checkpoint after checkpoint c."""
    from viewproof.spec.lang import where

    return where(c == 0, CHECKPOINT_OPS - 1, c + CHECKPOINT_OPS)


def prepare_max(c: Any) -> Any:
    """Highest op a replica with checkpoint c prepares."""
    return checkpoint_after(c) + COMPACTION_OPS + 2 * PIPELINE
