"""Lemmas about recovery by nonce: what a replica that waits has, and what the answers to its nonce say."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, any_of, forall, implies, invariant, not_, some, value_of
from viewproof.spec.vsr.core.lemmas.words import each_entry, each_replica, exists_prepare, started
from viewproof.spec.vsr.core.state import Op, Replica, Restart, View, entry_of_view, primary
from viewproof.spec.vsr.parts.recovery.nonce import Recovering
from viewproof.spec.vsr.parts.repair.invariants import backed
from viewproof.spec.vsr.parts.repair.lemmas_of_acks import waits


@invariant("nonce.waits", "who waits has its journal only")
def has_journal(s: Recovering) -> Bool:
    """A replica that waits has a nonce, its journal and what it promised, and nothing else; who lost its journal
    waits.
    """
    alone = each_replica(
        lambda r: all_of(
            s.nonce[r] <= s.restarts,
            implies(s.wiped[r], all_of(waits(s, r), *(() if s.cfg.repair.diskless else (s.op[r] >= 1,)))),
            implies(
                waits(s, r),
                all_of(
                    s.nonce[r] != 0,
                    s.view[r] == 0,
                    s.log_view[r] == 0,
                    s.merged[r] == NONE,
                    s.commit_max[r] == 0,
                    s.commit_min[r] == 0,
                ),
            ),
        )
    )
    journals = each_entry(
        lambda r, o: implies(
            all_of(waits(s, r), o <= s.op[r]),
            all_of(
                s.memory[r, o] == NONE,
                any_of(s.entry[r, o] == s.body[r, o], all_of(s.faulty[r, o], s.body[r, o] == NONE)),
                s.written[r, o] == (s.body[r, o] != NONE),
                implies(s.wiped[r], all_of(s.body[r, o] == NONE, not_(s.faulty[r, o]))),
            ),
        )
    )
    return all_of(alone, journals)


@invariant("nonce.unsent", "only a nonce that was drawn is answered")
def unsent(s: Recovering) -> Bool:
    """No nonce that nobody drew yet is answered, and two replicas never draw the same."""
    drawn = forall(
        Restart,
        lambda x: forall(Replica, lambda q: implies(s.answer[x, q].view != NONE, all_of(x != 0, x <= s.restarts))),
    )
    different = each_replica(
        lambda r: forall(Replica, lambda q: any_of(q == r, s.nonce[r] == 0, s.nonce[q] != s.nonce[r]))
    )
    return all_of(drawn, different)


def answered(s: Recovering, r: Replica, q: Replica, v: View) -> Bool:
    """Has q answered r, which waits, in view v?"""
    return all_of(waits(s, r), s.answer[s.nonce[r], q].view == some(v))


@invariant("nonce.answer", "an answer is of a started view")
def answer(s: Recovering) -> Bool:
    """Who answered a replica that waits took part in a started view, and does so in no earlier one."""
    return each_replica(
        lambda r: forall(
            Replica,
            lambda q: implies(
                all_of(waits(s, r), s.answer[s.nonce[r], q].view != NONE),
                lambda: all_of(
                    q != r,
                    started(s, value_of(s.answer[s.nonce[r], q].view)),
                    value_of(s.answer[s.nonce[r], q].view) <= s.durable_view[q],
                ),
            ),
        )
    )


@invariant("nonce.log_answered", "a primary answers with its view's log")
def log_answered(s: Recovering) -> Bool:
    """The log in a primary's answer is its view's, as far as that went then: all that it began with, and all that who
    waits had of it; its commit number is backed.
    """

    def said(r: Replica, q: Replica, v: View, o: Op) -> Bool:
        found = s.answer[s.nonce[r], q]
        return all_of(
            s.sv[v].op <= found.op,
            any_of(
                o > found.op,
                all_of(
                    found.entry[o] != NONE,
                    found.entry[o] == entry_of_view(s, v, o),
                    exists_prepare(s, found.entry[o], o),
                ),
            ),
            any_of(o <= found.op, all_of(s.ack[v, r, o] == NONE, s.body[r, o] != some(v))),
            any_of(o > found.commit, lambda: backed(s, v, o)),
        )

    return each_entry(
        lambda r, o: forall(
            Replica,
            lambda q: forall(
                View,
                lambda v: implies(all_of(answered(s, r, q, v), primary(s, v) == q), lambda: said(r, q, v, o)),
            ),
        )
    )


LEMMAS = (has_journal, unsent, answer, log_answered)
