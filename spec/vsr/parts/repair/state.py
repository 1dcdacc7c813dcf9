"""State of repair: what is on disk and in memory at each op, and the messages with headers, nacks and bits.

Of an op a replica may know the header (`entry`), hold the prepare in memory (`memory`) or in its journal (`body`).
`written` says that the journal holds the prepare that the header names (clean; else dirty); `faulty`, that the
journal held one there, and it is broken: perhaps it was acknowledged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Fields,
    Sent,
    State,
    Truth,
    all_of,
    any_of,
    between,
    exists,
    field,
    forall,
    ghost,
    largest,
    message,
    some,
    variable,
    where,
)
from viewproof.spec.lang.vocabulary import Between
from viewproof.spec.vsr.core.state import (
    VIEW_CHANGE,
    DoViewChange,
    Entry,
    Log,
    Messages,
    Op,
    Replica,
    Restart,
    Rot,
    View,
    by_replica,
    prepare_of,
)
from viewproof.spec.vsr.parts.protocol import Protocol


class Headers(Fields):
    """What a do_view_change says of the headers that it carries."""

    low: Op = field("lowest op it covers")


class Bits(Fields):
    """What a do_view_change says of each op that it names, where its bits decide."""

    nack: Cells[Op, Bool] = field("the sender never acknowledged it")
    present: Cells[Op, Bool] = field("the sender holds the prepare")


class HeadersOffered(DoViewChange, Headers):
    """A do_view_change with headers."""


class BitsOffered(HeadersOffered, Bits):
    """A do_view_change with headers and their bits."""


class Journals(State):
    """Journals that lose prepares."""

    faulty: Cells[tuple[Replica, Op], Bool] = variable(
        "its journal held a prepare there and lost it, perhaps an acknowledged one"
    )
    body: Cells[tuple[Replica, Op], Entry] = variable("the prepare that its journal holds there; 0 = none")
    memory: Cells[tuple[Replica, Op], Entry] = variable(
        "the prepare that it holds in memory, not yet written; 0 = none"
    )
    merged: Cells[Replica, Entry] = variable("1 + the last view for which it merged do_view_changes; 0 = none")


class RepairMessages(Messages):
    """Messages that carry headers, and nacks."""

    dvc: Sent[tuple[View, Replica], HeadersOffered]
    nack_sent: Cells[tuple[View, Replica, Op], Entry] = message(
        by_replica, to="the primary of the view", title="nack", doc="the prepare it never acknowledged"
    )


class Damage(State):
    """What damaged journals."""

    rots: Rot = ghost("slots of a journal that went bad so far (bounds a finite model)")


class Repaired(RepairMessages, Journals, Damage, Protocol):
    """The state with journals that are repaired, and what recovery by nonce adds to it."""

    wiped: Cells[Replica, Bool]
    nonce: Cells[Replica, Restart]
    dvc_reworked: Cells[tuple[View, Replica], Bool]

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> RepairMessages:
            """The messages that a replica has received."""


class BitMessages(RepairMessages):
    """Messages that carry bits."""

    dvc: Sent[tuple[View, Replica], BitsOffered]


class WithBits(BitMessages, Repaired):
    """The state where bits decide."""

    if TYPE_CHECKING:

        def received(self, receiver: Replica) -> BitMessages:
            """The messages that a replica has received."""


def leading(s: Repaired, r: Replica) -> Bool:
    """Is r the primary of its view that merged a quorum of do_view_changes, and has not started the view yet?"""
    return all_of(s.status[r] == VIEW_CHANGE, s.merged[r] == some(s.view[r]))


def connects(s: Repaired, r: Replica, o: Op) -> Bool:
    """Does the header that r knows at o name the one that r knows below it?"""
    return any_of(o == 1, lambda: prepare_of(s, s.entry[r, o], o).parent == s.entry[r, o - 1])


def chained(s: Repaired, r: Replica, lo: Op | int, hi: Op) -> Bool:
    """Does r know every header from lo to hi, each connected to the one below it?"""
    return forall(between(Op, lo, hi), lambda o: all_of(s.entry[r, o] != NONE, lambda: connects(s, r, o)))


def available(s: Repaired, r: Replica, view: View, o: Op) -> Bool:
    """Can the prepare (view, o) reach r? Some replica must still hold it, unless what was sent may arrive for ever."""
    if s.cfg.repair.lasting:
        return s.received(r).prepare[view, o].sent
    return exists(Replica, lambda q: any_of(s.body[q, o] == some(view), s.memory[q, o] == some(view)))


def set_headers(s: Repaired, r: Replica, ops: Between[Op], header: Log) -> None:
    """Replica r knows these headers at a range of ops now (0: none); those whose prepare it holds are clean."""
    s.entry.update((r, ops), header)
    s.written.update((r, ops), lambda o: all_of(header(o) != NONE, lambda: s.body[r, o] == header(o)))


def set_log(
    s: Repaired,
    r: Replica,
    lo: Op | int,
    n: Op,
    header: Log,
    *,
    lost: Truth = False,
    keeps: Truth = True,
    top: Op | int = 0,
) -> None:
    """The log of r ends at n, with these headers from lo on; what it knew above is gone. A faulty slot stays faulty,
    as it `keeps` what it knows; all are, if the journal was `lost`. What was faulty may be above the log, up to `top`.
    """
    changed = between(Op, lo, largest(n, s.op[r], top))
    set_headers(s, r, changed, lambda o: where(o <= n, lambda: header(o), NONE))
    s.faulty.update((r, changed), lambda o: all_of(keeps, o <= n, any_of(lost, s.faulty[r, o])))
    s.op[r] = n
