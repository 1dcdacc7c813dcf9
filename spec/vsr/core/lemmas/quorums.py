"""Lemmas about quorums: why a later view cannot miss what an earlier one may have chosen."""

from __future__ import annotations

from viewproof.spec.lang import Bool, any_of, between, count, forall, invariant, not_
from viewproof.spec.vsr.core.invariants import carries
from viewproof.spec.vsr.core.lemmas.words import each_view_entry
from viewproof.spec.vsr.core.state import Core, Op, Replica, View, entry_of_view


@invariant("quorums.view_change", "a started view has a quorum of offers")
def view_change(s: Core) -> Bool:
    """A view starts only with do_view_changes of a view-change quorum."""
    return forall(
        View,
        lambda v: any_of(not_(s.sv[v].sent), count(Replica, lambda r: s.dvc[v, r].sent) >= s.cfg.quorum_view_change),
    )


def choosable(s: Core, w: View, o: Op) -> Bool:
    """Can view w's entry at op o still be chosen: a replication quorum acknowledged it in w, or has not left w."""
    return (
        count(Replica, lambda q: any_of(s.view[q] <= w, s.ack[w, q, o] == entry_of_view(s, w, o)))
        >= s.cfg.quorum_replication
    )


@invariant("quorums.later_views_carry", "a later view carries all that can still be chosen")
def later_views_carry(s: Core) -> Bool:
    """If an entry of a view can still be chosen there, every later started view carries it. The main lemma: the plain
    form, of what is already chosen, is true but not inductive.
    """
    return each_view_entry(
        lambda v, o: any_of(
            not_(s.sv[v].sent),
            lambda: forall(
                between(View, 0, v - 1),
                lambda w: any_of(not_(choosable(s, w, o)), carries(s, v, o, entry_of_view(s, w, o))),
            ),
        )
    )


LEMMAS = (view_change, later_views_carry)
