"""Lemmas that say: messages are honest."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    all_of,
    any_of,
    between,
    forall,
    implies,
    invariant,
    not_,
    some,
    value_of,
    where,
)
from viewproof.spec.vsr.core.lemmas.words import (
    asks_first,
    each_view_entry,
    each_vote,
    each_vote_entry,
    exists_prepare,
    started,
)
from viewproof.spec.vsr.core.state import NORMAL, Core, Op, View, durable, entry_of_view, primary


@invariant("messages.prepare_fields", "a prepare has a client and a request number")
def prepare_fields(s: Core) -> Bool:
    """A prepare that was sent names a request; one that was not names none."""
    return each_view_entry(lambda v, o: (s.prepare[v, o].client != 0) == (s.prepare[v, o].request != 0))


@invariant("messages.prepare_place", "a prepare follows its view's log")
def prepare_place(s: Core) -> Bool:
    """Prepares exist only in started views, above what the view started with, without gaps, each on its predecessor."""
    return each_view_entry(
        lambda v, o: implies(
            s.prepare[v, o].sent,
            lambda: all_of(
                started(s, v),
                o > s.sv[v].op,
                any_of(o - 1 == s.sv[v].op, lambda: s.prepare[v, o - 1].sent),
                s.prepare[v, o].parent == where(o == 1, NONE, lambda: entry_of_view(s, v, o - 1)),
            ),
        )
    )


@invariant("messages.start_view_unsent", "a view that has not started carries nothing")
def start_view_unsent(s: Core) -> Bool:
    """The log of a start_view has an entry at exactly the ops up to its length; unsent, or of view 0, it is empty."""
    return each_view_entry(
        lambda v, o: all_of(
            implies(any_of(v == 0, not_(s.sv[v].sent)), s.sv[v].op == 0),
            any_of(v != 0, not_(s.sv[v].sent)),
            any_of(o <= s.sv[v].op, s.sv[v].entry[o] == NONE),
        )
    )


@invariant("messages.start_view_log", "a start_view carries a chain of earlier prepares")
def start_view_log(s: Core) -> Bool:
    """Each entry of a start_view was prepared in an earlier view, on the entry before it, and views do not fall."""
    return each_view_entry(
        lambda v, o: any_of(
            o > s.sv[v].op,
            lambda: all_of(
                s.sv[v].entry[o] != NONE,
                s.sv[v].entry[o] < some(v),
                lambda: exists_prepare(s, s.sv[v].entry[o], o),
                lambda: (
                    s.prepare[value_of(s.sv[v].entry[o]), o].parent == where(o == 1, NONE, lambda: s.sv[v].entry[o - 1])
                ),
                where(o == 1, True, lambda: s.sv[v].entry[o - 1] <= s.sv[v].entry[o]),
            ),
        )
    )


@invariant("messages.ack", "an acknowledgement is of the view's entry")
def ack(s: Core) -> Bool:
    """An acknowledgement in a view is of that view's canonical entry, which was prepared; its sender's log_view has
    reached the view, which has started.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            s.ack[v, r, o] != NONE,
            lambda: all_of(
                s.ack[v, r, o] == entry_of_view(s, v, o),
                exists_prepare(s, s.ack[v, r, o], o),
                started(s, v),
                v <= s.log_view[r],
            ),
        )
    )


@invariant("messages.ack_durable", "what a replica acknowledged in its log_view it holds")
def ack_durable(s: Core) -> Bool:
    """An entry that a replica acknowledged in its log_view is durable in its log."""
    return each_vote_entry(
        lambda v, r, o: implies(all_of(s.ack[v, r, o] != NONE, v == s.log_view[r]), durable(s, r, o))
    )


@invariant("messages.votes_below_view", "a vote is for a view its sender has reached")
def votes_below_view(s: Core) -> Bool:
    """The sender of a start_view_change or do_view_change has reached that view; the offer is an earlier one's log."""
    return each_vote(
        lambda v, r: all_of(
            *((any_of(not_(s.svc[v, r]), v <= s.view[r]),) if asks_first(s) else ()),
            any_of(not_(s.dvc[v, r].sent), all_of(v <= s.view[r], s.dvc[v, r].log_view < v)),
        )
    )


@invariant("messages.offer_log_view", "after an offer only a start_view changes log_view")
def offer_log_view(s: Core) -> Bool:
    """A replica that offered the log of a view for view v still has that log_view, or one of at least v."""
    return each_vote(
        lambda v, r: any_of(not_(s.dvc[v, r].sent), s.log_view[r] == s.dvc[v, r].log_view, s.log_view[r] >= v)
    )


@invariant("messages.offer_unsent", "an offer that was not sent is empty")
def offer_unsent(s: Core) -> Bool:
    """The fields of a do_view_change that was not sent are zero; its log has no entry above its length."""
    return each_vote_entry(
        lambda v, r, o: all_of(
            any_of(s.dvc[v, r].sent, all_of(s.dvc[v, r].log_view == 0, s.dvc[v, r].op == 0, s.dvc[v, r].commit == 0)),
            any_of(o <= s.dvc[v, r].op, s.dvc[v, r].entry[o] == NONE),
        )
    )


@invariant("messages.offer_prepared", "an offered entry was prepared")
def offer_prepared(s: Core) -> Bool:
    """Each entry of an offered log names a prepare that was sent."""
    return each_vote_entry(
        lambda v, r, o: any_of(
            o > s.dvc[v, r].op,
            lambda: all_of(s.dvc[v, r].entry[o] != NONE, lambda: exists_prepare(s, s.dvc[v, r].entry[o], o)),
        )
    )


@invariant("messages.offer_freezes_acks", "an offer covers what its sender acknowledged")
def offer_freezes_acks(s: Core) -> Bool:
    """After an offer of view w's log for view v, its sender's acknowledgements in w are in it; between w and v it has
    none.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            s.dvc[v, r].sent,
            lambda: forall(
                between(View, 0, v - 1),
                lambda w: any_of(
                    s.ack[w, r, o] == NONE,
                    w < s.dvc[v, r].log_view,
                    all_of(w == s.dvc[v, r].log_view, o <= s.dvc[v, r].op),
                ),
            ),
        )
    )


@invariant("messages.commit_number", "commit numbers come from a view's primary")
def commit_number(s: Core) -> Bool:
    """A view that has not started has sent none; those of a normal primary's view are at most its commit_max."""
    return each_vote(
        lambda v, r: all_of(
            any_of(started(s, v), lambda: s.commit_sent[v] == 0),
            implies(
                all_of(s.status[r] == NORMAL, s.view[r] == v, primary(s, v) == r), s.commit_sent[v] <= s.commit_max[r]
            ),
        )
    )


@invariant("messages.sent_stays", "what was sent stays as it is")
def sent_stays(s: Core) -> Bool:
    """A step changes no message that was sent and lowers no commit number (prepares and start_views: I7)."""
    return each_vote(
        lambda v, r: all_of(
            *((implies(s.svc[v, r], s.after.svc[v, r]),) if asks_first(s) else ()),
            s.commit_sent[v] <= s.after.commit_sent[v],
            implies(
                s.dvc[v, r].sent,
                all_of(
                    s.after.dvc[v, r].sent,
                    s.after.dvc[v, r].log_view == s.dvc[v, r].log_view,
                    s.after.dvc[v, r].op == s.dvc[v, r].op,
                    s.after.dvc[v, r].commit == s.dvc[v, r].commit,
                ),
            ),
            forall(
                Op,
                lambda o: all_of(
                    any_of(s.ack[v, r, o] == NONE, s.after.ack[v, r, o] == s.ack[v, r, o]),
                    any_of(not_(s.dvc[v, r].sent), s.after.dvc[v, r].entry[o] == s.dvc[v, r].entry[o]),
                ),
            ),
        )
    )


LEMMAS = (
    prepare_fields,
    prepare_place,
    start_view_unsent,
    start_view_log,
    ack,
    ack_durable,
    votes_below_view,
    offer_log_view,
    offer_unsent,
    offer_prepared,
    offer_freezes_acks,
    commit_number,
    sent_stays,
)
