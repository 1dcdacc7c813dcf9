"""Lemmas that a proof without sizes needs besides the others: what those say of neighbouring ops, said of any two.

In an instance they follow from the others, op by op.
"""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, any_of, between, forall, invariant, not_
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_view_entry, exists_prepare
from viewproof.spec.vsr.core.state import Core, Op


@invariant("any_size.executed_prepared", "what was executed was prepared")
def executed_prepared(s: Core) -> Bool:
    """What was executed first at an op names a prepare that was sent."""
    return forall(Op, lambda o: any_of(s.first_executed[o] == NONE, lambda: exists_prepare(s, s.first_executed[o], o)))


@invariant("any_size.executed_prefix", "what was executed is a prefix")
def executed_prefix(s: Core) -> Bool:
    """At each op before one that was executed something was executed."""
    return forall(
        Op,
        lambda o: any_of(
            s.first_executed[o] == NONE,
            lambda: forall(between(Op, 1, o - 1), lambda p: s.first_executed[p] != NONE),
        ),
    )


@invariant("any_size.durable_prefix", "what is durable is a prefix, however long")
def durable_prefix(s: Core) -> Bool:
    """At each op before a durable one the log is durable."""
    return each_entry(
        lambda r, o: any_of(not_(s.written[r, o]), lambda: forall(between(Op, 1, o - 1), lambda p: s.written[r, p]))
    )


@invariant("any_size.prepared_without_gap", "a view's prepares have no gap")
def prepared_without_gap(s: Core) -> Bool:
    """Before a prepare there is one of its view at each op above what the view started with."""
    return each_view_entry(
        lambda v, o: any_of(
            not_(s.prepare[v, o].sent),
            lambda: forall(between(Op, s.sv[v].op + 1, o - 1), lambda p: s.prepare[v, p].sent),
        )
    )


@invariant("any_size.known_executed", "what is known to be committed is what was executed")
def known_executed(s: Core) -> Bool:
    """At each op up to its commit_max a replica's log holds what was executed there first, if anything was."""
    return each_entry(
        lambda r, o: any_of(
            o > s.commit_max[r], o > s.op[r], s.first_executed[o] == NONE, s.entry[r, o] == s.first_executed[o]
        )
    )


FOLLOWING = (known_executed,)
"""What follows from the others in the same state, by agreement of two views: said once, so that steps need not say it
again.
"""
LEMMAS = (executed_prepared, executed_prefix, durable_prefix, prepared_without_gap)
