"""Shorthand of the lemmas."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.spec.lang import Bool, Truth, all_of, any_of, between, exists, forall, point, value_of
from viewproof.spec.vsr.core.invariants import chosen
from viewproof.spec.vsr.core.state import Core, Entry, Op, Replica, View, entry_of_view


@point
def asks_first(s: Core) -> bool:
    """Is a start_view_change sent before a do_view_change?"""
    return True


def started(s: Core, v: View) -> Bool:
    """Has view v started? View 0 has from the beginning."""
    return any_of(v == 0, s.sv[v].sent)


def exists_prepare(s: Core, entry: Entry, o: Op) -> Bool:
    """Was the prepare that this entry names sent?"""
    return s.prepare[value_of(entry), o].sent


def chosen_up_to(s: Core, v: View, o: Op) -> Bool:
    """Was op o chosen in view v or an earlier one?"""
    return exists(between(View, 0, v), lambda w: chosen(s, w, o))


def chosen_as(s: Core, v: View, o: Op, entry: Entry) -> Bool:
    """Was this entry chosen at op o in view v or an earlier one?"""
    return exists(between(View, 0, v), lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == entry))


def chosen_at_all(s: Core, o: Op, entry: Entry) -> Bool:
    """Was this entry chosen at op o in some view?"""
    return exists(View, lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == entry))


def each_replica(body: Callable[[Replica], Truth]) -> Bool:
    """For every replica."""
    return forall(Replica, lambda r: body(r))


def each_entry(body: Callable[[Replica, Op], Truth]) -> Bool:
    """For every replica and op."""
    return forall(Replica, lambda r: forall(Op, lambda o: body(r, o)))


def each_vote(body: Callable[[View, Replica], Truth]) -> Bool:
    """For every view and replica."""
    return forall(View, lambda v: forall(Replica, lambda r: body(v, r)))


def each_vote_entry(body: Callable[[View, Replica, Op], Truth]) -> Bool:
    """For every view, replica and op."""
    return forall(View, lambda v: forall(Replica, lambda r: forall(Op, lambda o: body(v, r, o))))


def each_view_entry(body: Callable[[View, Op], Truth]) -> Bool:
    """For every view and op."""
    return forall(View, lambda v: forall(Op, lambda o: body(v, o)))
