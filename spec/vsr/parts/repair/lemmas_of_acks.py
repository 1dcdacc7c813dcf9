"""Lemmas about acknowledgements and nacks: what a replica must keep, and when it may let go of it."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    not_,
    some,
)
from viewproof.spec.vsr.core.invariants import carries, reworked
from viewproof.spec.vsr.core.lemmas.words import (
    each_entry,
    each_vote_entry,
    exists_prepare,
)
from viewproof.spec.vsr.core.state import RECOVERING, Entry, Op, Replica, View, entry_of_view, primary
from viewproof.spec.vsr.parts.repair.invariants import void
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.parts.repair.state import Repaired, leading


def waits(s: Repaired, r: Replica) -> Bool:
    """Did r crash, and does not take part in anything yet?"""
    return s.status[r] == RECOVERING


@invariant("repair.ack_kept", "what was acknowledged is in the journal or known as lost")
def ack_kept(s: Repaired) -> Bool:
    """What a replica acknowledged in its log_view is the header it knows there, unless it merged a log since and
    may let go of that; and in its journal, or the slot is faulty.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            all_of(s.ack[v, r, o] != NONE, v == s.log_view[r], not_(waits(s, r))),
            all_of(
                any_of(
                    all_of(o <= s.op[r], s.entry[r, o] == s.ack[v, r, o]),
                    all_of(s.merged[r] > some(v), lambda: lets_go(s, v, r, o, s.ack[v, r, o])),
                ),
                any_of(s.entry[r, o] != s.ack[v, r, o], s.body[r, o] == s.ack[v, r, o], s.faulty[r, o]),
            ),
        )
    )


@invariant("repair.offer_freezes_acks", "an offer covers what its sender acknowledged and what still binds it")
def offer_freezes_acks(s: Repaired) -> Bool:
    """After an offer of view w's log for view v, its sender's acknowledgements in w are in it, or, if the log was
    merged since, bind nobody any more; between w and v it has none.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            s.dvc[v, r].sent,
            lambda: forall(
                between(View, 0, v - 1),
                lambda w: any_of(
                    s.ack[w, r, o] == NONE,
                    w < s.dvc[v, r].log_view,
                    all_of(
                        w == s.dvc[v, r].log_view,
                        any_of(o <= s.dvc[v, r].op, all_of(s.dvc_reworked[v, r], lambda: void(s, w, r, o))),
                    ),
                ),
            ),
        )
    )


def binds(s: Repaired, w: View, r: Replica, o: Op, entry: Entry) -> Bool:
    """Did r acknowledge that entry in view w, or start w with it?"""
    started_with = all_of(s.sv[w].sent, primary(s, w) == r, s.sv[w].entry[o] == entry)
    return all_of(entry != NONE, any_of(s.ack[w, r, o] == entry, started_with))


def only_started_with(s: Repaired, w: View, r: Replica, o: Op, entry: Entry) -> Bool:
    """Did r not acknowledge that entry in view w, and has it executed it, or crashed since, if it started w with it?"""
    return all_of(any_of(o <= s.commit_min[r], s.nonce[r] != 0), s.ack[w, r, o] != entry)


def abandoned(s: Repaired, v: View, o: Op, entry: Entry) -> Bool:
    """Will view v never start with that entry at op o: has its primary left it, or is another, or none, in its log?"""

    def lacks(r: Replica) -> Bool:
        other = all_of(s.entry[r, o] != NONE, s.entry[r, o] != entry)
        return all_of(leading(s, r), any_of(o > s.op[r], other))

    return exists(
        Replica,
        lambda r: all_of(
            primary(s, v) == r,
            s.dvc[v, r].sent,
            not_(s.sv[v].sent),
            any_of(waits(s, r), s.view[r] > v, lambda: lacks(r)),
        ),
    )


def lets_go(s: Repaired, w: View, r: Replica, o: Op, entry: Entry) -> Bool:
    """May r give up its copy of view w's entry at op o: a later view began without it; or r led a view since that will
    not start with it, and in that or one before, so many had left w without acknowledging it, or what it rests on,
    that nobody else needs it?
    """

    def given_up_before(v: View) -> Bool:
        def left(p: Op) -> Bool:
            gone = count(Replica, lambda q: all_of(s.durable_view[q] >= v, s.ack[w, q, p] != entry_of_view(s, w, p)))
            return gone >= quorum_nack(s.cfg)

        return all_of(abandoned(s, v, o, entry), lambda: exists(between(Op, 1, o), left))

    return any_of(
        exists(
            between(View, w + 1, s.durable_view[r]),
            lambda x: all_of(s.sv[x].sent, lambda: not_(carries(s, x, o, entry))),
        ),
        lambda: exists(
            View,
            lambda x: all_of(
                x > w,
                primary(s, x) == r,
                abandoned(s, x, o, entry),
                lambda: exists(between(View, w + 1, x), given_up_before),
            ),
        ),
    )


@invariant("repair.copy_kept", "what binds a replica it holds")
def copy_kept(s: Repaired) -> Bool:
    """What a replica acknowledged, or, if it never crashed, started a view with and has not executed, is in its
    journal, or the slot is faulty, unless it may let go of it, or lost its journal.
    """

    def kept(v: View, r: Replica, o: Op, entry: Entry) -> Bool:
        return any_of(
            not_(binds(s, v, r, o, entry)),
            only_started_with(s, v, r, o, entry),
            s.wiped[r],
            s.body[r, o] == entry,
            s.faulty[r, o],
            lambda: lets_go(s, v, r, o, entry),
        )

    return each_vote_entry(lambda v, r, o: all_of(kept(v, r, o, s.ack[v, r, o]), kept(v, r, o, s.sv[v].entry[o])))


@invariant("repair.nack", "a nack's sender acknowledged nothing that binds it")
def nack(s: Repaired) -> Bool:
    """A nack is of a prepare that was sent in an earlier view; before, its sender acknowledged it in no view, and
    started none with it that it has not executed, unless it may let go of it.
    """
    return each_vote_entry(
        lambda v, r, o: any_of(
            s.nack_sent[v, r, o] == NONE,
            lambda: all_of(
                s.nack_sent[v, r, o] < some(v),
                exists_prepare(s, s.nack_sent[v, r, o], o),
                forall(
                    between(View, 0, v - 1),
                    lambda w: any_of(
                        not_(binds(s, w, r, o, s.nack_sent[v, r, o])),
                        only_started_with(s, w, r, o, s.nack_sent[v, r, o]),
                        lambda: lets_go(s, w, r, o, s.nack_sent[v, r, o]),
                    ),
                ),
            ),
        )
    )


@invariant("repair.offer_gap", "an offer names what its sender acknowledged")
def offer_gap(s: Repaired) -> Bool:
    """What a replica acknowledged in the view whose log it offers is in the headers of its offer, if covered."""
    return each_vote_entry(
        lambda v, r, o: implies(
            all_of(s.dvc[v, r].sent, *(not_(so) for so in reworked(s, v, r)), o >= s.dvc[v, r].low),
            any_of(
                s.ack[s.dvc[v, r].log_view, r, o] == NONE,
                s.dvc[v, r].entry[o] == s.ack[s.dvc[v, r].log_view, r, o],
            ),
        )
    )


@invariant("repair.leader_gap", "a new primary knows what it acknowledged")
def leader_gap(s: Repaired) -> Bool:
    """A header that a new primary does not know below its head is of nothing that it acknowledged in its log_view."""
    return each_entry(
        lambda r, o: implies(
            all_of(leading(s, r), o <= s.op[r], s.entry[r, o] == NONE),
            s.ack[s.log_view[r], r, o] == NONE,
        )
    )


def acknowledged_nothing(s: Repaired, r: Replica, o: Op) -> Bool:
    """Does none of r's acknowledgements at op o bind anybody?"""
    return forall(View, lambda w: any_of(s.ack[w, r, o] == NONE, lambda: void(s, w, r, o)))


@invariant("repair.unknown", "who knows no header acknowledged nothing")
def unknown(s: Repaired) -> Bool:
    """Where a replica knows no header, nothing that it acknowledged binds anybody any more."""
    return each_entry(
        lambda r, o: any_of(s.entry[r, o] != NONE, s.faulty[r, o], s.wiped[r], lambda: acknowledged_nothing(s, r, o))
    )


@invariant("repair.honest_gap", "a gap's sender acknowledged nothing")
def honest_gap(s: Repaired) -> Bool:
    """Where an offer names no header, nothing that its sender acknowledged in an earlier view binds anybody any
    more.
    """
    return each_vote_entry(
        lambda v, r, o: any_of(
            not_(s.dvc[v, r].sent),
            o < s.dvc[v, r].low,
            s.dvc[v, r].entry[o] != NONE,
            lambda: forall(between(View, 0, v - 1), lambda w: any_of(s.ack[w, r, o] == NONE, lambda: void(s, w, r, o))),
        )
    )


@invariant("repair.body_cut", "what a journal holds above the log is of no view to come")
def body_cut(s: Repaired) -> Bool:
    """A prepare that a journal holds above the log is in none that began since, or its holder left the view, or leads
    it, for which it was cut.
    """

    def cut(r: Replica, o: Op, x: View) -> Bool:
        return all_of(
            s.body[r, o] < some(x),
            any_of(
                all_of(s.sv[x].sent, lambda: not_(carries(s, x, o, s.body[r, o]))),
                all_of(primary(s, x) == r, s.dvc[x, r].sent, not_(s.sv[x].sent)),
            ),
        )

    return each_entry(
        lambda r, o: any_of(
            o <= s.op[r],
            s.body[r, o] == NONE,
            exists(between(View, 1, s.durable_view[r]), lambda x: cut(r, o, x)),
        )
    )
