"""Lemmas that a proof without sizes needs besides the others: what those say of neighbouring ops, said of any two.

In an instance they follow from the others, op by op.
"""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, between, count, forall, invariant, not_
from viewproof.spec.vsr.core.lemmas.quorums import choosable
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_view_entry, each_vote_entry, exists_prepare, started
from viewproof.spec.vsr.core.state import Core, Op, Replica, View, entry_of_view


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


def is_largest_offer(s: Core, v: View, b: Replica) -> Bool:
    """Is b's do_view_change of view v the largest of a quorum: by (log_view, op) in lexicographic order?"""

    def is_no_larger(q: Replica) -> Bool:
        one, best = s.dvc[v, q], s.dvc[v, b]
        return all_of(
            one.sent,
            any_of(one.log_view < best.log_view, all_of(one.log_view == best.log_view, one.op <= best.op)),
        )

    return all_of(s.dvc[v, b].sent, count(Replica, is_no_larger) >= s.cfg.quorum_view_change)


@invariant("any_size.offer_carries", "the largest offer of a quorum carries all that can still be chosen")
def offer_carries(s: Core) -> Bool:
    """What can still be chosen in a view, the largest of a quorum of do_view_changes of a later view carries."""
    return each_vote_entry(
        lambda v, b, o: any_of(
            not_(is_largest_offer(s, v, b)),
            lambda: forall(
                between(View, 0, v - 1),
                lambda w: any_of(
                    not_(choosable(s, w, o)),
                    all_of(o <= s.dvc[v, b].op, s.dvc[v, b].entry[o] == entry_of_view(s, w, o)),
                ),
            ),
        )
    )


@invariant("any_size.offer_known", "the largest offer of a quorum carries all that is known to be committed")
def offer_known(s: Core) -> Bool:
    """It carries all that a replica knows to be committed whose log_view is an earlier one."""
    return each_vote_entry(
        lambda v, b, o: any_of(
            not_(is_largest_offer(s, v, b)),
            lambda: forall(
                Replica,
                lambda r: any_of(
                    s.log_view[r] >= v,
                    o > s.commit_max[r],
                    all_of(o <= s.dvc[v, b].op, any_of(o > s.op[r], s.dvc[v, b].entry[o] == s.entry[r, o])),
                ),
            ),
        )
    )


@invariant("any_size.view_known", "a later view's log carries all that is known to be committed")
def view_known(s: Core) -> Bool:
    """What a replica's log holds at an op that is known there to be committed, the log of a later view holds, too."""
    return each_vote_entry(
        lambda v, r, o: any_of(
            not_(started(s, v)),
            v < s.log_view[r],
            o > s.commit_max[r],
            all_of(
                any_of(o <= s.sv[v].op, v == s.log_view[r]),
                any_of(o > s.op[r], s.entry[r, o] == entry_of_view(s, v, o)),
            ),
        )
    )


FOLLOWING = (known_executed, offer_carries, offer_known, view_known)
"""What follows from the others in the same state, and from those before it, by agreement of two views: said once, so
that steps need not say it again.
"""
LEMMAS = (executed_prepared, executed_prefix, durable_prefix, prepared_without_gap)
