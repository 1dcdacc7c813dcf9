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
    where,
)
from viewproof.spec.vsr.core.invariants import carries, reworked
from viewproof.spec.vsr.core.lemmas.words import (
    each_entry,
    each_replica,
    each_view_entry,
    each_vote,
    each_vote_entry,
    exists_prepare,
    started,
)
from viewproof.spec.vsr.core.state import NORMAL, VIEW_CHANGE, Op, Replica, View, entry_of_view, primary
from viewproof.spec.vsr.parts.repair.invariants import backed
from viewproof.spec.vsr.parts.repair.lemmas_of_acks import (
    ack_kept,
    body_cut,
    copy_kept,
    honest_gap,
    leader_gap,
    nack,
    offer_freezes_acks,
    offer_gap,
    unknown,
    waits,
)
from viewproof.spec.vsr.parts.repair.state import Repaired, leading

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@invariant("repair.durable_views", "log_view ≤ durable view ≤ view")
def durable_views(s: Repaired) -> Bool:
    """The view in the superblock is at most the replica's, and has reached its log_view and all it promised."""
    return all_of(
        each_replica(
            lambda r: any_of(waits(s, r), all_of(s.durable_view[r] <= s.view[r], s.log_view[r] <= s.durable_view[r]))
        ),
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
            any_of(o != s.op[r], s.entry[r, o] != NONE, s.merged[r] > some(s.log_view[r]), waits(s, r)),
            s.memory[r, o] <= some(where(waits(s, r), s.durable_view[r], s.log_view[r])),
            s.body[r, o] <= some(s.durable_view[r]),
            any_of(s.entry[r, o] < some(s.view[r]), s.status[r] == NORMAL, waits(s, r)),
            any_of(
                waits(s, r),
                s.body[r, o] < some(s.view[r]),
                all_of(s.status[r] == NORMAL, o <= s.op[r], s.entry[r, o] == s.body[r, o]),
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


@invariant("repair.offer_merged", "only who led a view since its log_view offers a merged log")
def offer_merged(s: Repaired) -> Bool:
    """An offer of a log that was merged since its log_view is of a replica that merged it for a view between the two,
    which has not started.
    """
    return each_vote(
        lambda v, r: any_of(
            not_(s.dvc_reworked[v, r]),
            all_of(
                s.dvc[v, r].sent,
                exists(
                    between(View, 1, v - 1),
                    lambda w: all_of(
                        s.dvc[v, r].log_view < w,
                        primary(s, w) == r,
                        s.dvc[w, r].sent,
                        not_(s.sv[w].sent),
                    ),
                ),
            ),
        )
    )


@invariant("repair.log_view_started", "a log_view is a started view")
def log_view_started(s: Repaired) -> Bool:
    """A replica's log_view is a view that has started, and its log reaches at least what that view started with,
    unless it merged a log since.
    """
    return each_replica(
        lambda r: all_of(
            started(s, s.log_view[r]),
            any_of(s.sv[s.log_view[r]].op <= s.op[r], s.merged[r] > some(s.log_view[r])),
        )
    )


@invariant("repair.started", "the primary of a started view has reached it")
def view_started(s: Repaired) -> Bool:
    """The log_view of a started view's primary is that view, or a later one."""
    return each_vote(
        lambda v, r: implies(
            all_of(s.sv[v].sent, primary(s, v) == r),
            any_of(v <= s.log_view[r], all_of(waits(s, r), v <= s.durable_view[r])),
        )
    )


@invariant("repair.canonical_log", "a log with gaps is its log_view's")
def canonical_log(s: Repaired) -> Bool:
    """Each header that a replica knows is that of its log_view's log, unless it merged a log since."""
    return each_entry(
        lambda r, o: any_of(
            waits(s, r),
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


def backed_below(s: Repaired, v: View, w: View, o: Op) -> Bool:
    """Was op o chosen as a view that started after v and before w has it, there or before?"""
    return exists(between(View, v + 1, w - 1), lambda x: all_of(s.sv[x].sent, lambda: backed(s, x, o)))


@invariant("repair.known", "commit_max is backed")
def known(s: Repaired) -> Bool:
    """Each op up to a replica's commit_max was chosen, as its log_view has it, there or before; or, if it merged a log
    since, as a view between has it.
    """
    return each_entry(
        lambda r, o: any_of(
            o > s.commit_max[r],
            lambda: backed(s, s.log_view[r], o),
            lambda: exists(View, lambda v: all_of(s.merged[r] == some(v), backed_below(s, s.log_view[r], v, o))),
        )
    )


@invariant("repair.offered", "a commit number offered is backed")
def offered(s: Repaired) -> Bool:
    """Each op up to the commit number of a do_view_change was chosen, as its log_view has it, there or before; or, if
    its log was merged since, as a view between has it.
    """
    return each_vote_entry(
        lambda v, r, o: any_of(
            o > s.dvc[v, r].commit,
            lambda: backed(s, s.dvc[v, r].log_view, o),
            *(all_of(so, lambda: backed_below(s, s.dvc[v, r].log_view, v, o)) for so in reworked(s, v, r)),
        )
    )


def may_be_chosen(s: Repaired, w: View, o: Op) -> Bool:
    """Can view w's entry at op o still be chosen: a replication quorum acknowledged it in w, or has not left w for
    good?
    """
    return (
        count(Replica, lambda q: any_of(s.durable_view[q] <= w, s.ack[w, q, o] == entry_of_view(s, w, o)))
        >= s.cfg.quorum_replication
    )


@invariant("repair.leader_carries", "a merged log lacks only what cannot be committed any more")
def leader_carries(s: Repaired) -> Bool:
    """What the log that a replica merged for a view lacks of an earlier view has at or before it an op that it lacks
    and that cannot be chosen there any more.
    """

    def has(r: Replica, w: View, p: Op) -> Bool:
        return all_of(p <= s.op[r], any_of(s.entry[r, p] == NONE, s.entry[r, p] == entry_of_view(s, w, p)))

    return each_vote_entry(
        lambda w, r, o: implies(
            all_of(s.merged[r] > some(s.log_view[r]), some(w) < s.merged[r]),
            lambda: any_of(
                has(r, w, o),
                exists(between(Op, 1, o), lambda p: not_(any_of(has(r, w, p), may_be_chosen(s, w, p)))),
            ),
        )
    )


@invariant("repair.offer_carries", "the offer of a merged log lacks only what cannot be committed any more")
def offer_carries(s: Repaired) -> Bool:
    """What an offer of a log that was merged since its log_view lacks of that view, or one before it, has at or before
    it an op that it lacks and that cannot be chosen there any more.
    """

    def has(v: View, r: Replica, w: View, p: Op) -> Bool:
        entry = s.dvc[v, r].entry[p]
        return all_of(p <= s.dvc[v, r].op, any_of(p < s.dvc[v, r].low, entry == NONE, entry == entry_of_view(s, w, p)))

    return each_vote_entry(
        lambda v, r, o: implies(
            s.dvc_reworked[v, r],
            lambda: forall(
                between(View, 0, s.dvc[v, r].log_view),
                lambda w: any_of(
                    has(v, r, w, o),
                    exists(between(Op, 1, o), lambda p: not_(any_of(has(v, r, w, p), may_be_chosen(s, w, p)))),
                ),
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
        lambda r: any_of(
            waits(s, r),
            all_of(
                any_of(s.status[r] == NORMAL, s.status[r] == VIEW_CHANGE),
                (s.status[r] == NORMAL) == (s.log_view[r] == s.view[r]),
                implies(leading(s, r), not_(s.sv[s.view[r]].sent)),
            ),
        )
    )


@invariant("repair.ack", "an acknowledgement is of the view's entry")
def ack(s: Repaired) -> Bool:
    """An acknowledgement in a view is of that view's canonical entry, which was prepared; the view has started, and its
    sender's durable view has reached it, as has its log_view unless it waits.
    """
    return each_vote_entry(
        lambda v, r, o: implies(
            s.ack[v, r, o] != NONE,
            lambda: all_of(
                s.ack[v, r, o] == entry_of_view(s, v, o),
                exists_prepare(s, s.ack[v, r, o], o),
                started(s, v),
                v <= s.durable_view[r],
                any_of(waits(s, r), v <= s.log_view[r]),
            ),
        )
    )


@invariant("repair.offer_log_view", "after an offer only a start_view changes log_view")
def offer_log_view(s: Repaired) -> Bool:
    """A replica that offered the log of a view for view v, a later one, still has that log_view, or one of at least
    v.
    """
    return each_vote(
        lambda v, r: implies(
            s.dvc[v, r].sent,
            all_of(
                s.dvc[v, r].log_view < v,
                any_of(waits(s, r), s.log_view[r] == s.dvc[v, r].log_view, s.log_view[r] >= v),
            ),
        )
    )


def lemmas(cfg: Config) -> tuple[Predicate, ...]:
    """The lemmas of a configuration with repair."""
    by_nonce = (
        (
            nack,
            copy_kept,
            body_cut,
            unknown,
            honest_gap,
            leader_gap,
            offer_carries,
            offer_reworked,
            offer_merged,
        )
        if cfg.repair.recovery == "nonce"
        else ()
    )
    return (
        durable_views,
        merged,
        journal,
        log_entries,
        ack_kept,
        bounds,
        own_offer,
        view_started,
        log_view_started,
        offer_freezes_acks,
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
        ack,
        offer_log_view,
        *by_nonce,
    )


REPLACED = frozenset(
    (
        "types.durable_views",
        "types.status",
        "types.durable_prefix",
        "types.log_length",
        "messages.ack",
        "messages.ack_durable",
        "messages.offer_freezes_acks",
        "messages.offer_log_view",
        "messages.offer_prepared",
        "replicas.canonical_log",
        "replicas.log_view_started",
        "replicas.start_durable",
        "committed.offer_covers_commit",
        "committed.known",
        "committed.offered",
        "messages.votes_below_view",
        "quorums.later_views_carry",
    )
)
"""Lemmas of the core that speak of a journal without gaps, or of a restarted primary (`repair.leader` says more)."""
WITH_SUPERBLOCK = frozenset(
    (
        "messages.start_view_unsent",
        "repair.ack",
        "repair.ack_kept",
        "repair.canonical_log",
        "repair.durable_views",
        "repair.journal",
        "repair.known",
        "repair.leader",
        "repair.leader_carries",
        "repair.log_entries",
        "repair.log_view_started",
        "repair.offer_freezes_acks",
        "repair.offer_gap",
        "repair.own_offer",
    )
)
"""Lemmas that are false where views are started through a superblock: no proof covers that yet."""


def without(cfg: Config, crashes: bool) -> frozenset[str]:
    """Lemmas that do not hold under a configuration with repair."""
    if cfg.repair.recovery == "superblock":
        return WITH_SUPERBLOCK | ({"quorums.view_change"} if cfg.replicas == 1 else frozenset())
    return frozenset({"repair.journal"} if crashes and cfg.repair.diskless else ())
