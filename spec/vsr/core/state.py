"""State of a cluster: what each replica holds, what was sent, and history that only invariants read.

An entry of a log is named by the view that prepared it: the number view+1, so that 0 means "none". (view, op) names a
prepare for ever; its parent is part of it, so the hash chain is in the model.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    BOOL,
    Index,
    Label,
    Schema,
    any_of,
    as_index,
    joined,
    one_of,
    optional,
    point,
    some,
    up_to,
    value_of,
    where,
)
from viewproof.spec.lang.vocabulary import Between
from viewproof.spec.vsr.config import Config


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
ENTRY = optional(View)
"""An entry: none, or the view that prepared it."""

EXECUTED = "executed"
"""Tag of a variable that is a function of what its replica executed: a restart rebuilds it, a snapshot holds it."""

LOADED_APART = "loaded apart"
"""Tag of such a variable that a part loads by itself at a restart."""

REBUILT = "rebuilt"
"""Tag of a variable that follows from those, and that no snapshot holds."""


def _sender_of_index(position: int) -> Any:
    return lambda *index: index[position]


def declare(s: Schema, cfg: Config) -> None:
    """Declare the variables of the core protocol."""
    _replica_state(s)
    _messages(s, cfg)
    _history(s)


def _replica_state(s: Schema) -> None:
    s.state("status", (Replica,), one_of(Status), doc="normal, view_change or recovering")
    s.state("view", (Replica,), up_to(View), doc="the view the replica is in")
    s.state("log_view", (Replica,), up_to(View), doc="view in which its log was last authoritative (the paper's v')")
    s.state("durable_view", (Replica,), up_to(View), doc="view in the superblock")
    s.state("durable_log_view", (Replica,), up_to(View), doc="log_view in the superblock")
    s.state("op", (Replica,), up_to(Op), doc="highest op in its log")
    s.state("commit_min", (Replica,), up_to(Op), doc="highest op it has executed")
    s.state("commit_max", (Replica,), up_to(Op), doc="highest op it knows to be committed")
    s.state("entry", (Replica, Op), ENTRY, doc="entry known at that op of its log")
    s.state("written", (Replica, Op), BOOL, doc="is that entry durable in its journal (not dirty)?")
    s.state(
        "table",
        (Replica, Client),
        up_to(Request),
        doc="client table: number of the client's last executed request",
        tags=(EXECUTED,),
    )
    s.state("replies", (Client,), up_to(Request), doc="number of the last request the client was sent a reply to")


def _messages(s: Schema, cfg: Config) -> None:
    by_primary = lambda view, *_: as_index(Replica, view % cfg.replicas)  # noqa: E731
    second = _sender_of_index(1)
    s.register("prepare_client", (View, Op), up_to(Client), sender=by_primary, doc="prepare: client; 0 = not sent")
    s.register("prepare_request", (View, Op), up_to(Request), sender=by_primary, doc="prepare: request number")
    s.register("prepare_parent", (View, Op), ENTRY, sender=by_primary, doc="prepare: the entry at the op before")
    s.register("ack", (View, Replica, Op), ENTRY, sender=second, doc="prepare_ok: the entry acknowledged; 0 = none")
    s.watermark("commit_sent", (View,), up_to(Op), sender=by_primary, doc="commit numbers sent by a view's primary")
    s.register("svc", (View, Replica), sender=second, doc="start_view_change sent")
    s.register("dvc", (View, Replica), sender=second, doc="do_view_change sent")
    s.register("dvc_log_view", (View, Replica), up_to(View), sender=second, doc="do_view_change: log_view")
    s.register("dvc_op", (View, Replica), up_to(Op), sender=second, doc="do_view_change: highest op of the log")
    s.register("dvc_commit", (View, Replica), up_to(Op), sender=second, doc="do_view_change: commit_min")
    s.register("dvc_entry", (View, Replica, Op), ENTRY, sender=second, doc="do_view_change: the log")
    s.register("sv", (View,), sender=by_primary, doc="start_view sent: the view has started")
    s.register("sv_op", (View,), up_to(Op), sender=by_primary, doc="start_view: highest op of the log it starts with")
    s.register("sv_entry", (View, Op), ENTRY, sender=by_primary, doc="start_view: the log")


def _history(s: Schema) -> None:
    s.ghost("executed", (Replica, Op), ENTRY, doc="entry that the replica executed last at that op")
    s.ghost("first_executed", (Op,), ENTRY, doc="entry executed at that op by whoever was first")
    s.ghost("replied_in", (Op,), ENTRY, doc="1 + the view in which the op was first replied to; 0 = not yet")
    s.ghost("restarts", (), up_to(Restart), doc="crashes and restarts so far (bounds a finite model)")


def primary(s: Any, view: Any) -> Any:
    """The primary of a view: views go round the replicas (VR Revisited §4)."""
    return as_index(Replica, view % s.cfg.replicas)


def entry_of_view(messages: Any, view: Any, op: Any) -> Any:
    """The entry that a started view has at an op: from its start_view up to that one's op, prepared in the view
    above.
    """
    return where(op <= messages.sv_op[view], lambda: messages.sv_entry[view, op], some(view))


def client_of(s: Any, entry: Any, op: Any) -> Any:
    """The client of the prepare that an entry names."""
    return s.prepare_client[value_of(entry), op]


def request_of(s: Any, entry: Any, op: Any) -> Any:
    """The request number of the prepare that an entry names."""
    return s.prepare_request[value_of(entry), op]


@joined(any_of)
def is_prepared(s: Any, view: Any, op: Any, messages: Any = None) -> Any:
    """Was the prepare (view, op) sent; or, of the `messages` that a replica received, received?"""
    return (s if messages is None else messages).prepare_client[view, op] != 0


@point
def durable(s: Any, r: Any, op: Any) -> Any:
    """Does a crash leave the op on the replica?"""
    return s.written[r, op]


@point
def snapshot_op(s: Any, r: Any) -> Any:
    """The op up to which r needs no log: a crash leaves what it executed up to there."""
    return 0


def executed_state(s: Any) -> tuple[str, ...]:
    """The variables that are a function of what a replica executed."""
    return s.schema.tagged(EXECUTED)  # type: ignore[no-any-return]


def loaded_apart(s: Any) -> tuple[str, ...]:
    """Those of them that a part loads by itself at a restart."""
    return s.schema.tagged(LOADED_APART)  # type: ignore[no-any-return]


def copy(state: Any, to: tuple[Any, ...], source: tuple[Any, ...] | None) -> None:
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
