"""What holds of journals with gaps and faulty slots: the catalogue's invariants where repair has more to say."""

from __future__ import annotations

from collections.abc import Callable

from viewproof.spec.lang import (
    NONE,
    Bool,
    Truth,
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
    where,
    witness,
)
from viewproof.spec.vsr.core.invariants import carries, chosen
from viewproof.spec.vsr.core.state import NORMAL, Entry, Op, Replica, View, entry_of_view, prepare_of, primary
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.parts.repair.state import Repaired, WithBits, leading


def committed(s: Repaired, w: View, o: Op) -> Bool:
    """Has view w committed op o: a replication quorum acknowledged it there, and every op before it there or in a view
    before? (Acknowledgements come in any order; what was executed is acknowledged no more.)
    """
    return all_of(chosen(s, w, o), forall(between(Op, 1, o - 1), lambda p: backed(s, w, p)))


def backed(s: Repaired, v: View, o: Op) -> Bool:
    """Did a quorum acknowledge, in some view up to v, the entry that view v has at op o?"""
    return exists(
        between(View, 0, v),
        lambda w: all_of(chosen(s, w, o), lambda: entry_of_view(s, w, o) == entry_of_view(s, v, o)),
    )


def overruled(s: Repaired, v: View, o: Op, entry: Entry) -> Bool:
    """Did a view above v start without that entry at op o?"""
    return exists(View, lambda w: all_of(w > v, s.sv[w].sent, not_(carries(s, w, o, entry))))


def given_up(s: Repaired, v: View, o: Op) -> Bool:
    """Can view v's own entry at op o, or one before it, not be committed there any more: did q_n replicas leave v
    without having acknowledged it?
    """
    return exists(
        between(Op, 1, o),
        lambda p: (
            count(Replica, lambda q: all_of(s.durable_view[q] > v, s.ack[v, q, p] != entry_of_view(s, v, p)))
            >= quorum_nack(s.cfg)
        ),
    )


def void(s: Repaired, v: View, r: Replica, o: Op) -> Bool:
    """Does r's acknowledgement in view v at op o bind nobody any more?"""
    return any_of(overruled(s, v, o, s.ack[v, r, o]), given_up(s, v, o))


def commits_are_backed(s: Repaired, v: View) -> Bool:
    """A commit number sent in view v counts only ops that a quorum acknowledged, all in one view."""
    return forall(between(Op, 1, s.commit_sent[v]), lambda o: backed(s, v, o))


def holds_acknowledged(s: Repaired, v: View, r: Replica, o: Op) -> Bool:
    """Does r's journal hold what it acknowledged in view v at op o?"""
    return s.body[r, o] == s.ack[v, r, o]


def knows_loss(s: Repaired, r: Replica, o: Op) -> Bool:
    """Does r know that its journal may have held a prepare at o that it lost?"""
    return any_of(s.faulty[r, o], s.wiped[r]) if s.cfg.repair.recovery == "nonce" else s.faulty[r, o]


def after_step(s: Repaired) -> Repaired:
    """Bounded is the state after the step: what a slot may not take is a matter of steps."""
    return s.after


def knows_head(s: Repaired, r: Replica) -> Bool:
    """A normal replica knows the header at its head."""
    return any_of(s.after.op[r] == 0, lambda: s.after.entry[r, s.after.op[r]] != NONE, s.after.status[r] != NORMAL)


def keeps_executed(s: Repaired, r: Replica) -> Bool:
    """A slot whose op was executed is given no other prepare."""
    return forall(
        between(Op, 1, s.commit_min[r]),
        lambda o: any_of(
            s.after.body[r, o] == s.body[r, o],
            s.after.body[r, o] == NONE,
            s.after.body[r, o] == s.executed[r, o],
        ),
    )


def chains(s: Repaired) -> tuple[Truth, ...]:
    """Logs have gaps: those which have to be whole are that of every started view, and what every replica executed."""
    started = forall(
        View,
        lambda v: implies(
            s.sv[v].sent,
            lambda: forall(
                between(Op, 1, s.sv[v].op),
                lambda o: follows(s, s.sv[v].entry[o], o, lambda: where(o == 1, NONE, lambda: s.sv[v].entry[o - 1])),
            ),
        ),
    )
    executed = forall(
        Replica,
        lambda r: forall(
            between(Op, 1, s.commit_min[r]),
            lambda o: follows(s, s.executed[r, o], o, lambda: where(o == 1, NONE, lambda: s.executed[r, o - 1])),
        ),
    )
    return (started, executed)


def follows(s: Repaired, entry: Entry, o: Op, before: Callable[[], Entry]) -> Bool:
    """Is `entry` at op o a prepare whose parent is `before`?"""
    return all_of(entry != NONE, lambda: prepare_of(s, entry, o).parent == before(), lambda: before() <= entry)


@invariant("I11", "honest_nack")
def honest_nack(s: WithBits) -> Bool:
    """A nack, a gap in the headers of a do_view_change or a nack bit comes from a replica that never acknowledged what
    it speaks of, unless that binds nobody any more; an op is discarded (by nonce: a merge by superblock discards none)
    only where q_n replicas never acknowledged it.
    """
    nacks = forall(
        View,
        lambda v: forall(
            Replica,
            lambda r: forall(Op, lambda o: implies(says_nack(s, v, r, o), lambda: never_acked(s, v, r, o))),
        ),
    )
    if s.cfg.repair.recovery != "nonce":
        return nacks
    discarded = forall(Replica, lambda r: implies(discards(s, r), lambda: many_never_acked(s, r, s.after.op[r] + 1)))
    return all_of(nacks, discarded)


def says_nack(s: WithBits, v: View, r: Replica, o: Op) -> Bool:
    """Does r, in a message of view v, say that it never had what the log has at o?"""
    gap = all_of(s.dvc[v, r].sent, o >= s.dvc[v, r].low, s.dvc[v, r].entry[o] == NONE)
    if s.cfg.repair.recovery != "nonce":
        return all_of(s.dvc[v, r].sent, any_of(s.dvc[v, r].op < o, s.dvc[v, r].nack[o]))
    return any_of(s.nack_sent[v, r, o] != NONE, gap)


def never_acked(s: Repaired, v: View, r: Replica, o: Op) -> Bool:
    """No view before v has an acknowledgement by r at o that stands, of the nacked entry or, for a gap, of any."""
    return forall(
        between(View, 0, v - 1),
        lambda w: any_of(
            s.ack[w, r, o] == NONE,
            all_of(s.nack_sent[v, r, o] != NONE, s.ack[w, r, o] != s.nack_sent[v, r, o]),
            void(s, w, r, o),
        ),
    )


def discards(s: Repaired, r: Replica) -> Bool:
    """Does the step cut an op off the log of a new primary?"""
    return all_of(
        leading(s, r),
        s.after.restarts == s.restarts,
        s.after.view[r] == s.view[r],
        s.after.op[r] < s.op[r],
    )


def many_never_acked(s: Repaired, r: Replica, o: Op) -> Bool:
    """q_n replicas never acknowledged, in a view before r's, the entry that r knows at o; or, if it knows none,
    anything there that still binds them.
    """
    entry = s.entry[r, o]

    def never(w: View, q: Replica) -> Bool:
        no_ack = any_of(s.ack[w, q, o] == NONE, lambda: void(s, w, q, o))
        return where(entry == NONE, no_ack, s.ack[w, q, o] != entry)

    replicas = count(Replica, lambda q: forall(between(View, 0, s.view[r] - 1), lambda w: never(w, q)))
    return replicas >= quorum_nack(s.cfg)


def was_reworked(s: Repaired, v: View, r: Replica) -> Bool:
    """The log that r offers to view v was merged for a view that did not start: it names what that merge left."""
    return s.dvc_reworked[v, r]


def was_merged(s: Repaired, v: View, r: Replica) -> Bool:
    """By superblock a new primary has a log_view before that view starts."""
    return primary(s, s.dvc[v, r].log_view) == r


def names_no_header(s: Repaired, v: View, r: Replica, o: Op) -> Bool:
    """Below its head a do_view_change may have gaps."""
    return all_of(s.dvc[v, r].entry[o] == NONE, o < s.dvc[v, r].op)


@invariant("L1_copy", "copy_known")
def copy_known(s: WithBits) -> Bool:
    """A new primary that chose its view's log by nack and present bits chose no op above the commit point of which
    nobody said that it holds it: it could wait for that prepare for ever.
    """
    return forall(
        Replica,
        lambda r: implies(
            leading(s, r),
            lambda: forall(
                between(Op, s.commit_max[r] + 1, s.op[r]),
                lambda o: exists(
                    Replica,
                    lambda q: all_of(
                        s.dvc[s.view[r], q].sent,
                        s.dvc[s.view[r], q].entry[o] == s.entry[r, o],
                        s.dvc[s.view[r], q].present[o],
                    ),
                ),
            ),
        ),
    )


@witness("I3.lost", "an acknowledged prepare is lost by its sender")
def ack_lost(s: Repaired) -> Bool:
    """A replica acknowledged what its journal does not hold any more, and knows it."""
    return exists(
        View, lambda v: exists(Replica, lambda r: exists(Op, lambda o: all_of(s.ack[v, r, o] != NONE, s.faulty[r, o])))
    )


@witness("I10.gap", "a log has a gap")
def gap_in_log(s: Repaired) -> Bool:
    """A normal replica does not know a header below its head."""
    return exists(
        Replica,
        lambda r: all_of(s.status[r] == NORMAL, exists(between(Op, 1, s.op[r]), lambda o: s.entry[r, o] == NONE)),
    )


@witness("I11", "a new primary discarded a prepare of its own log")
def prepare_discarded(s: Repaired) -> Bool:
    """A new primary whose do_view_change has the highest log_view offered an op that is above its log now: nacks
    decided.
    """
    return exists(
        Replica,
        lambda r: all_of(
            s.merged[r] == some(s.view[r]),
            s.dvc[s.view[r], r].op > s.op[r],
            forall(Replica, lambda q: s.dvc[s.view[r], q].log_view <= s.dvc[s.view[r], r].log_view),
        ),
    )
