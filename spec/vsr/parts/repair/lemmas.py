"""Lemmas about journals with gaps and faulty slots: what is in them, and why a discard loses nothing chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    NONE,
    Bool,
    Predicate,
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
    value_of,
)
from viewproof.spec.vsr.core.invariants import carries, reworked
from viewproof.spec.vsr.core.lemmas.words import (
    each_entry,
    each_replica,
    each_view_entry,
    each_vote,
    each_vote_entry,
    exists_prepare,
)
from viewproof.spec.vsr.core.state import NORMAL, VIEW_CHANGE, Op, Replica, View, entry_of_view, primary
from viewproof.spec.vsr.parts.repair.invariants import backed
from viewproof.spec.vsr.parts.repair.state import Repaired, leading

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@invariant("repair.durable_views", "log_view ≤ durable view ≤ view")
def durable_views(s: Repaired) -> Bool:
    """The view in the superblock is at most the replica's, and has reached its log_view and all it promised."""
    return all_of(
        each_replica(lambda r: all_of(s.durable_view[r] <= s.view[r], s.log_view[r] <= s.durable_view[r])),
        each_vote_entry(
            lambda v, r, o: all_of(
                implies(s.dvc[v, r].sent, v <= s.durable_view[r]),
                implies(s.nack_sent[v, r, o] != NONE, v <= s.durable_view[r]),
            )
        ),
    )


@invariant("repair.merged", "a merge is for a view that its primary reached")
def merged(s: Repaired) -> Bool:
    """A replica merged only for a view that it leads and has reached, on do_view_changes of a quorum and its own."""
    return each_vote(
        lambda v, r: implies(
            s.merged[r] == some(v),
            lambda: all_of(
                v > 0,
                primary(s, v) == r,
                v <= s.view[r],
                s.dvc[v, r].sent,
                count(Replica, lambda q: s.dvc[v, q].sent) >= s.cfg.quorum_view_change,
            ),
        )
    )


@invariant("repair.journal", "what is written is in the journal")
def journal(s: Repaired) -> Bool:
    """A clean op is one whose header is that of the prepare in the journal; a faulty slot holds none and lies in the
    log; what a journal or memory holds was prepared.
    """
    return each_entry(
        lambda r, o: all_of(
            s.written[r, o] == all_of(s.entry[r, o] != NONE, s.body[r, o] == s.entry[r, o]),
            implies(s.faulty[r, o], all_of(s.body[r, o] == NONE, o <= s.op[r])),
            any_of(s.body[r, o] == NONE, lambda: exists_prepare(s, s.body[r, o], o)),
            any_of(s.memory[r, o] == NONE, lambda: exists_prepare(s, s.memory[r, o], o)),
        )
    )


@invariant("repair.log_entries", "no header is known above the log")
def log_entries(s: Repaired) -> Bool:
    """A replica knows no header above its log, and that of its head unless it merged a log since; a prepare of its
    view is in its journal only if it is normal there, and it knows the header.
    """
    return each_entry(
        lambda r, o: all_of(
            any_of(o <= s.op[r], all_of(s.entry[r, o] == NONE, not_(s.written[r, o]))),
            any_of(o != s.op[r], s.entry[r, o] != NONE, s.merged[r] > some(s.log_view[r])),
            s.memory[r, o] <= some(s.log_view[r]),
            any_of(s.entry[r, o] < some(s.view[r]), s.status[r] == NORMAL),
            any_of(
                s.body[r, o] < some(s.view[r]),
                all_of(s.status[r] == NORMAL, o <= s.op[r], s.entry[r, o] == s.body[r, o]),
            ),
        )
    )


@invariant("repair.ack_kept", "what was acknowledged is in the journal or known as lost")
def ack_kept(s: Repaired) -> Bool:
    """What a replica acknowledged in its log_view is the header it knows there and in its journal, or the slot is
    faulty; unless it merged a log since.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            all_of(s.ack[v, r, o] != NONE, v == s.log_view[r]),
            all_of(
                any_of(s.merged[r] > some(v), all_of(o <= s.op[r], s.entry[r, o] == s.ack[v, r, o])),
                any_of(s.entry[r, o] != s.ack[v, r, o], s.body[r, o] == s.ack[v, r, o], s.faulty[r, o]),
            ),
        )
    )


@invariant("repair.bounds", "commit_min is a bound of commit_max and op")
def bounds(s: Repaired) -> Bool:
    """A replica executed only what is committed and in its log."""
    return each_replica(lambda r: all_of(s.commit_min[r] <= s.commit_max[r], s.commit_min[r] <= s.op[r]))


@invariant("repair.own_offer", "an offer is what its sender's log is until a merge")
def own_offer(s: Repaired) -> Bool:
    """In a view change, after its offer and before a merge, a replica's log is what it offered."""
    return each_vote_entry(
        lambda v, r, o: implies(
            all_of(s.status[r] == VIEW_CHANGE, s.view[r] == v, s.dvc[v, r].sent, not_(leading(s, r))),
            all_of(
                s.dvc[v, r].log_view == s.log_view[r],
                s.dvc[v, r].op == s.op[r],
                s.dvc[v, r].commit == s.commit_max[r],
                any_of(o < s.dvc[v, r].low, s.dvc[v, r].entry[o] == s.entry[r, o]),
            ),
        )
    )


@invariant("repair.offer_reworked", "only an offer after two view changes was reworked")
def offer_reworked(s: Repaired) -> Bool:
    """An offer of a log that was merged since its log_view is for a view above the one after that."""
    return each_vote(lambda v, r: any_of(not_(s.dvc_reworked[v, r]), s.dvc[v, r].log_view + 2 <= v))


@invariant("repair.started", "the primary of a started view has reached it")
def view_started(s: Repaired) -> Bool:
    """The log_view of a started view's primary is that view, or a later one."""
    return each_vote(lambda v, r: implies(all_of(s.sv[v].sent, primary(s, v) == r), v <= s.log_view[r]))


@invariant("repair.nack", "a nack's sender never acknowledged")
def nack(s: Repaired) -> Bool:
    """A nack is of a prepare that was sent in an earlier view; its sender acknowledged it in no view before."""
    return each_vote_entry(
        lambda v, r, o: any_of(
            s.nack_sent[v, r, o] == NONE,
            lambda: all_of(
                s.nack_sent[v, r, o] < some(v),
                exists_prepare(s, s.nack_sent[v, r, o], o),
                forall(between(View, 0, v - 1), lambda w: s.ack[w, r, o] != s.nack_sent[v, r, o]),
            ),
        )
    )


@invariant("repair.canonical_log", "a log with gaps is its log_view's")
def canonical_log(s: Repaired) -> Bool:
    """Each header that a replica knows is that of its log_view's log, unless it merged a log since."""
    return each_entry(
        lambda r, o: any_of(
            s.entry[r, o] == NONE,
            s.merged[r] > some(s.log_view[r]),
            lambda: s.entry[r, o] == entry_of_view(s, s.log_view[r], o),
        )
    )


@invariant("repair.offer_prepared", "an offered header is of a prepare")
def offer_prepared(s: Repaired) -> Bool:
    """Each header of an offer is of a prepare that was sent."""
    return each_vote_entry(
        lambda v, r, o: any_of(s.dvc[v, r].entry[o] == NONE, lambda: exists_prepare(s, s.dvc[v, r].entry[o], o))
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


@invariant("repair.primary_knows", "a normal primary knows all headers")
def primary_knows(s: Repaired) -> Bool:
    """A normal primary knows every header of its log, and every replica those of what it executed."""
    return each_entry(
        lambda r, o: implies(
            any_of(
                o <= s.commit_min[r],
                all_of(o <= s.op[r], s.status[r] == NORMAL, primary(s, s.view[r]) == r),
            ),
            s.entry[r, o] != NONE,
        )
    )


@invariant("repair.executed_chain", "what was executed is a chain")
def executed_chain(s: Repaired) -> Bool:
    """What was executed first at an op follows what was executed first before it."""
    return forall(
        Op,
        lambda o: any_of(
            s.first_executed[o] == NONE,
            o == 1,
            lambda: s.prepare[value_of(s.first_executed[o]), o].parent == s.first_executed[o - 1],
        ),
    )


@invariant("repair.known", "commit_max is backed")
def known(s: Repaired) -> Bool:
    """Each op up to a replica's commit_max was chosen, as its log_view has it, there or before."""
    return each_entry(lambda r, o: any_of(o > s.commit_max[r], lambda: backed(s, s.log_view[r], o)))


@invariant("repair.offered", "a commit number offered is backed")
def offered(s: Repaired) -> Bool:
    """Each op up to the commit number of a do_view_change was chosen, as its log_view has it, there or before."""
    return each_vote_entry(lambda v, r, o: any_of(o > s.dvc[v, r].commit, lambda: backed(s, s.dvc[v, r].log_view, o)))


def may_be_chosen(s: Repaired, w: View, o: Op) -> Bool:
    """Can view w's entry at op o still be chosen: a replication quorum acknowledged it in w, or has not left w for
    good?
    """
    return (
        count(Replica, lambda q: any_of(s.durable_view[q] <= w, s.ack[w, q, o] == entry_of_view(s, w, o)))
        >= s.cfg.quorum_replication
    )


@invariant("repair.leader_carries", "a new primary's log lacks only what cannot be committed any more")
def leader_carries(s: Repaired) -> Bool:
    """What the log that a new primary merged lacks of an earlier view has at or before it an op that it lacks and
    that cannot be chosen there any more.
    """

    def has(r: Replica, w: View, p: Op) -> Bool:
        return all_of(p <= s.op[r], any_of(s.entry[r, p] == NONE, s.entry[r, p] == entry_of_view(s, w, p)))

    return each_vote_entry(
        lambda w, r, o: implies(
            all_of(leading(s, r), w < s.view[r]),
            lambda: any_of(
                has(r, w, o),
                exists(between(Op, 1, o), lambda p: not_(any_of(has(r, w, p), may_be_chosen(s, w, p)))),
            ),
        )
    )


@invariant("repair.later_views_carry", "a later view lacks only what cannot be committed any more")
def later_views_carry(s: Repaired) -> Bool:
    """What a started view lacks of an earlier one has at or before it an op that it lacks and that cannot be chosen
    there any more.
    """

    def has(v: View, w: View, p: Op) -> Bool:
        return carries(s, v, p, entry_of_view(s, w, p))

    return each_view_entry(
        lambda v, o: any_of(
            not_(s.sv[v].sent),
            lambda: forall(
                between(View, 0, v - 1),
                lambda w: any_of(
                    has(v, w, o),
                    exists(between(Op, 1, o), lambda p: not_(any_of(has(v, w, p), may_be_chosen(s, w, p)))),
                ),
            ),
        )
    )


@invariant("repair.leader", "who leads is in a view change of its own view")
def leader(s: Repaired) -> Bool:
    """A replica whose log_view is its view is normal; one in a view change of its view has not started it."""
    return each_replica(
        lambda r: all_of(
            any_of(s.status[r] == NORMAL, s.status[r] == VIEW_CHANGE),
            (s.status[r] == NORMAL) == (s.log_view[r] == s.view[r]),
            implies(leading(s, r), not_(s.sv[s.view[r]].sent)),
        )
    )


def lemmas(cfg: Config) -> tuple[Predicate, ...]:
    """The lemmas of a configuration with repair."""
    by_nonce = (nack, leader_gap, offer_reworked) if cfg.repair.recovery == "nonce" else ()
    return (
        durable_views,
        merged,
        journal,
        log_entries,
        ack_kept,
        bounds,
        own_offer,
        view_started,
        offer_gap,
        primary_knows,
        executed_chain,
        known,
        offered,
        canonical_log,
        offer_prepared,
        leader_carries,
        later_views_carry,
        leader,
        *by_nonce,
    )


REPLACED = frozenset(
    (
        "types.durable_views",
        "types.status",
        "types.durable_prefix",
        "types.log_length",
        "messages.ack_durable",
        "messages.offer_prepared",
        "replicas.canonical_log",
        "replicas.start_durable",
        "committed.offer_covers_commit",
        "committed.known",
        "committed.offered",
        "quorums.later_views_carry",
    )
)
"""Lemmas of the core that speak of a journal without gaps, or of a restarted primary (`repair.leader` says more)."""
AFTER_RECOVERY = frozenset(
    (
        "messages.ack",
        "messages.offer_log_view",
        "messages.votes_below_view",
        "replicas.log_view_started",
        "repair.ack_kept",
        "repair.canonical_log",
        "repair.durable_views",
        "repair.leader",
        "repair.log_entries",
        "repair.started",
    )
)
"""Lemmas that are false once a replica crashed and recovered by nonce: no proof covers that yet."""
WITH_SUPERBLOCK = (AFTER_RECOVERY - {"messages.offer_log_view", "messages.votes_below_view", "repair.started"}) | {
    "messages.offer_freezes_acks",
    "messages.start_view_unsent",
    "repair.journal",
    "repair.known",
    "repair.leader_carries",
    "repair.offer_gap",
    "repair.own_offer",
}
"""Lemmas that are false where views are started through a superblock: no proof covers that yet."""


def without(cfg: Config, crashes: bool) -> frozenset[str]:
    """Lemmas that do not hold under a configuration with repair."""
    if cfg.repair.recovery == "superblock":
        return WITH_SUPERBLOCK | ({"quorums.view_change"} if cfg.replicas == 1 else frozenset())
    if not crashes:
        return frozenset()
    return AFTER_RECOVERY | ({"repair.journal"} if cfg.repair.diskless else frozenset())
