"""Lemmas about what is committed: every commit number is backed by a quorum of acknowledgements."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, forall, invariant, value_of
from viewproof.spec.vsr.core.lemmas.words import (
    chosen_as,
    chosen_at_all,
    chosen_up_to,
    each_entry,
    each_view_entry,
    each_vote,
    each_vote_entry,
)
from viewproof.spec.vsr.core.state import Core, Op


@invariant("committed.known", "commit_max is backed")
def known(s: Core) -> Bool:
    """Each op up to a replica's commit_max was chosen, in a view no later than its log_view."""
    return each_entry(lambda r, o: any_of(o > s.commit_max[r], lambda: chosen_up_to(s, s.log_view[r], o)))


@invariant("committed.sent", "a commit number sent is backed")
def sent(s: Core) -> Bool:
    """Each op up to the commit number sent in a view was chosen, in that view or before."""
    return each_view_entry(lambda v, o: any_of(o > s.commit_sent[v], lambda: chosen_up_to(s, v, o)))


@invariant("committed.offered", "a commit number offered is backed")
def offered(s: Core) -> Bool:
    """Each op up to the commit number of a do_view_change was chosen, in a view no later than its log_view."""
    return each_vote_entry(
        lambda v, r, o: any_of(o > s.dvc[v, r].commit, lambda: chosen_up_to(s, s.dvc[v, r].log_view, o))
    )


@invariant("committed.offer_covers_commit", "an offered log reaches its commit number")
def offer_covers_commit(s: Core) -> Bool:
    """The log of a do_view_change is at least as long as its commit number."""
    return each_vote(lambda v, r: s.dvc[v, r].commit <= s.dvc[v, r].op)


@invariant("committed.executed", "what was executed first was chosen")
def executed(s: Core) -> Bool:
    """What was executed at an op was chosen; and chosen no later than the view of the first reply."""
    return forall(
        Op,
        lambda o: all_of(
            any_of(s.first_executed[o] == NONE, lambda: chosen_at_all(s, o, s.first_executed[o])),
            any_of(
                s.replied_in[o] == NONE,
                lambda: all_of(
                    s.first_executed[o] != NONE, chosen_as(s, value_of(s.replied_in[o]), o, s.first_executed[o])
                ),
            ),
        ),
    )


@invariant("committed.executed_log", "an executed op is what the log holds")
def executed_log(s: Core) -> Bool:
    """At each op up to commit_min the log holds what was executed there first; nothing was executed above a gap."""
    return each_entry(
        lambda r, o: all_of(
            any_of(o > s.commit_min[r], s.first_executed[o] == s.entry[r, o]),
            any_of(o == 1, s.first_executed[o] == NONE, lambda: s.first_executed[o - 1] != NONE),
        )
    )


LEMMAS = (known, sent, offered, offer_covers_commit, executed, executed_log)
