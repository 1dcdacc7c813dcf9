"""State of repair: what is on disk and in memory at each op, and the messages with headers, nacks and bits.

Of an op a replica may know the header (`entry`), hold the prepare in memory (`memory`) or in its journal (`body`).
`written` says that the journal holds the prepare that the header names (clean; else dirty); `faulty`, that the
journal held one there, and it is broken: perhaps it was acknowledged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewproof.spec.lang import (
    NONE,
    Schema,
    all_of,
    any_of,
    between,
    exists,
    forall,
    largest,
    some,
    up_to,
    value_of,
    where,
)
from viewproof.spec.lang.vocabulary import Between
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core.state import ENTRY, VIEW_CHANGE, Op, Replica, Rot, View, is_prepared


def declare(s: Schema, cfg: Config) -> None:
    """Declare journals that lose prepares, and messages that carry headers."""
    second = lambda *index: index[1]  # noqa: E731
    s.state("faulty", (Replica, Op), doc="its journal held a prepare there and lost it, perhaps an acknowledged one")
    s.state("body", (Replica, Op), ENTRY, doc="the prepare that its journal holds there; 0 = none")
    s.state("memory", (Replica, Op), ENTRY, doc="the prepare that it holds in memory, not yet written; 0 = none")
    s.state("merged", (Replica,), ENTRY, doc="1 + the last view for which it merged do_view_changes; 0 = none")
    s.register("dvc_low", (View, Replica), up_to(Op), sender=second, doc="do_view_change: lowest op it covers")
    s.register("nack_sent", (View, Replica, Op), ENTRY, sender=second, doc="nack: the prepare it never acknowledged")
    s.ghost("rots", (), up_to(Rot), doc="slots of a journal that went bad so far (bounds a finite model)")


def declare_bits(s: Schema) -> None:
    """Declare what a do_view_change says of each op that it names, where its bits decide."""
    second = lambda *index: index[1]  # noqa: E731
    s.register("dvc_nack", (View, Replica, Op), sender=second, doc="do_view_change: the sender never acknowledged it")
    s.register("dvc_present", (View, Replica, Op), sender=second, doc="do_view_change: the sender holds the prepare")


def leading(s: Any, r: Any) -> Any:
    """Is r the primary of its view that merged a quorum of do_view_changes, and has not started the view yet?"""
    return all_of(s.status[r] == VIEW_CHANGE, s.merged[r] == some(s.view[r]))


def parent_of(s: Any, entry: Any, o: Any) -> Any:
    """The entry at o-1 that the prepare named by `entry` at op o follows."""
    return s.prepare_parent[value_of(entry), o]


def connects(s: Any, r: Any, o: Any) -> Any:
    """Does the header that r knows at o name the one that r knows below it?"""
    return any_of(o == 1, lambda: parent_of(s, s.entry[r, o], o) == s.entry[r, o - 1])


def chained(s: Any, r: Any, lo: Any, hi: Any) -> Any:
    """Does r know every header from lo to hi, each connected to the one below it?"""
    return forall(between(Op, lo, hi), lambda o: all_of(s.entry[r, o] != NONE, lambda: connects(s, r, o)))


def available(s: Any, r: Any, view: Any, o: Any) -> Any:
    """Can the prepare (view, o) reach r? Some replica must still hold it, unless what was sent may arrive for ever."""
    if s.cfg.repair.lasting:
        return is_prepared(s, view, o, s.received(r))
    return exists(Replica, lambda q: any_of(s.body[q, o] == some(view), s.memory[q, o] == some(view)))


def set_headers(s: Any, r: Any, ops: Between[Op], header: Callable[[Any], Any]) -> None:
    """Replica r knows these headers at a range of ops now (0: none); those whose prepare it holds are clean."""
    s.entry.update((r, ops), header)
    s.written.update((r, ops), lambda o: all_of(header(o) != NONE, lambda: s.body[r, o] == header(o)))


def set_log(
    s: Any, r: Any, lo: Any, n: Any, header: Callable[[Any], Any], *, lost: Any = False, keeps: Any = True, top: Any = 0
) -> None:
    """The log of r ends at n, with these headers from lo on; what it knew above is gone. A faulty slot stays faulty,
    as it `keeps` what it knows; all are, if the journal was `lost`. What was faulty may be above the log, up to `top`.
    """
    changed = between(Op, lo, largest(n, s.op[r], top))
    set_headers(s, r, changed, lambda o: where(o <= n, lambda: header(o), NONE))
    s.faulty.update((r, changed), lambda o: all_of(keeps, o <= n, any_of(lost, s.faulty[r, o])))
    s.op[r] = n
