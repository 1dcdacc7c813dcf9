"""Shorthand of the lemmas."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import all_of, any_of, between, exists, forall, point, value_of
from viewproof.spec.vsr.core.invariants import chosen
from viewproof.spec.vsr.core.state import Op, Replica, View, entry_of_view, is_prepared


@point
def asks_first(s: Any) -> bool:
    """Is a start_view_change sent before a do_view_change?"""
    return True


def started(s: Any, v: Any) -> Any:
    """Has view v started? View 0 has from the beginning."""
    return any_of(v == 0, s.sv[v])


def exists_prepare(s: Any, entry: Any, o: Any) -> Any:
    """Was the prepare that this entry names sent?"""
    return is_prepared(s, value_of(entry), o)


def chosen_up_to(s: Any, v: Any, o: Any) -> Any:
    """Was op o chosen in view v or an earlier one?"""
    return exists(between(View, 0, v), lambda w: chosen(s, w, o))


def chosen_as(s: Any, v: Any, o: Any, entry: Any) -> Any:
    """Was this entry chosen at op o in view v or an earlier one?"""
    return exists(between(View, 0, v), lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == entry))


def chosen_at_all(s: Any, o: Any, entry: Any) -> Any:
    """Was this entry chosen at op o in some view?"""
    return exists(View, lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == entry))


def each_replica(body: Any) -> Any:
    """For every replica."""
    return forall(Replica, lambda r: body(r))


def each_entry(body: Any) -> Any:
    """For every replica and op."""
    return forall(Replica, lambda r: forall(Op, lambda o: body(r, o)))


def each_vote(body: Any) -> Any:
    """For every view and replica."""
    return forall(View, lambda v: forall(Replica, lambda r: body(v, r)))


def each_vote_entry(body: Any) -> Any:
    """For every view, replica and op."""
    return forall(View, lambda v: forall(Replica, lambda r: forall(Op, lambda o: body(v, r, o))))


def each_view_entry(body: Any) -> Any:
    """For every view and op."""
    return forall(View, lambda v: forall(Op, lambda o: body(v, o)))
