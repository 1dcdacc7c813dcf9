"""The invariants of the core, by the names of the catalogue; `witnesses` has a reachable state for each.

Where the core has no part of a statement yet (checkpoints of I5, nacks of I11), the docstring says so.
"""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    Truth,
    all_of,
    any_of,
    between,
    cases,
    count,
    exists,
    forall,
    implies,
    invariant,
    maximum,
    not_,
    point,
    same,
    value_of,
    where,
)
from viewproof.spec.vsr.core.normal import is_request
from viewproof.spec.vsr.core.state import (
    Client,
    Core,
    Entry,
    Op,
    Replica,
    Request,
    View,
    client_of,
    durable,
    entry_of_view,
    parent_of,
    request_of,
)


def chosen(s: Core, w: View, o: Op) -> Bool:
    """Has a replication quorum acknowledged view w's own entry at op o, in view w?"""
    return count(Replica, lambda q: s.ack[w, q, o] == entry_of_view(s, w, o)) >= s.cfg.quorum_replication


def carries(s: Core, v: View, o: Op, entry: Entry) -> Bool:
    """Is the entry in the log that view v started with?"""
    return all_of(o <= s.sv[v].op, lambda: s.sv[v].entry[o] == entry)


@invariant("I1", "agreement")
def agreement(s: Core) -> Bool:
    """Two replicas that both executed an op executed the same prepare: each executed what the first one did."""
    return forall(
        Replica,
        lambda r: forall(Op, lambda o: any_of(s.executed[r, o] == NONE, s.executed[r, o] == s.first_executed[o])),
    )


@invariant("I2", "durability")
def durability(s: Core) -> Bool:
    """An op that was acknowledged by a replication quorum, or replied to, is in the log of every later started view."""
    return forall(View, lambda v: all_of(*kept_by_view(s, v)))


@cases
def kept_by_view(s: Core, v: View) -> tuple[Truth, ...]:
    """What view v keeps: if it started, all that was committed before, or replied to."""

    def kept(o: Op) -> Bool:
        return all_of(
            implies(
                all_of(s.replied_in[o] > NONE, value_of(s.replied_in[o]) < v),
                lambda: carries(s, v, o, s.first_executed[o]),
            ),
            forall(
                View,
                lambda w: implies(
                    all_of(w < v, lambda: is_committed(s, w, o)), lambda: carries(s, v, o, entry_of_view(s, w, o))
                ),
            ),
        )

    return (implies(s.sv[v].sent, lambda: forall(Op, kept)),)


@point
def is_committed(s: Core, w: View, o: Op) -> Bool:
    """Has view w committed op o: has a quorum acknowledged it there?"""
    return chosen(s, w, o)


@invariant("I3", "honest_ack")
def honest_ack(s: Core) -> Bool:
    """An acknowledged entry is durable at the sender, or the sender is excused: overruled by a later started view."""
    return forall(
        View,
        lambda v: forall(
            Replica,
            lambda r: forall(
                Op,
                lambda o: any_of(
                    s.ack[v, r, o] == NONE,
                    holds_acknowledged(s, v, r, o),
                    *excused(s, v, r, o),
                ),
            ),
        ),
    )


@point
def holds_acknowledged(s: Core, v: View, r: Replica, o: Op) -> Bool:
    """Does r hold durably what it acknowledged in view v at op o?"""
    return all_of(durable(s, r, o), s.entry[r, o] == s.ack[v, r, o])


@cases
def excused(s: Core, v: View, r: Replica, o: Op) -> tuple[Truth, ...]:
    """Why r need not hold what it acknowledged in view v at op o: a later view started without it."""
    return (exists(View, lambda w: all_of(w > v, s.sv[w].sent, not_(carries(s, w, o, s.ack[v, r, o])))),)


@invariant("I4", "commit_in_order")
def commit_in_order(s: Core) -> Bool:
    """commit_min grows by exactly 1 per executed op, or the replica starts afresh; and it never passes commit_max. No
    reply comes before its request was executed.
    """
    grows = forall(
        Replica,
        lambda r: all_of(
            s.after.commit_min[r] <= s.after.commit_max[r],
            any_of(
                s.after.commit_min[r] == s.commit_min[r],
                s.after.commit_min[r] == s.commit_min[r] + 1,
                starts_afresh(s, r),
            ),
        ),
    )
    return all_of(grows, *replies_in_order(s))


@cases
def replies_in_order(s: Core) -> tuple[Truth, ...]:
    """What a step replies to: the request that a replica's table holds, which by I9 is the last one executed there."""
    return (
        forall(
            Client,
            lambda c: any_of(
                s.after.replies[c] == s.replies[c],
                exists(Replica, lambda r: s.after.table[r, c] == s.after.replies[c]),
            ),
        ),
    )


@point
def starts_afresh(s: Core, r: Replica) -> Bool:
    """Does the step make r start afresh: a restart, after which it has executed nothing?"""
    return all_of(s.after.restarts == s.restarts + 1, s.after.commit_min[r] == 0)


@invariant("I5", "bounds")
def bounds(s: Core) -> Bool:
    """commit_min ≤ min(commit_max, op), and what parts bound: the checkpoint, the ring, the pipeline, the head and the
    executed slots of a journal with gaps.
    """
    return forall(Replica, lambda r: all_of(*bounds_of(s, r)))


@cases
def bounds_of(s: Core, r: Replica) -> tuple[Truth, ...]:
    """The bounds that r keeps."""
    seen = bounded(s)
    return (seen.commit_min[r] <= seen.commit_max[r], seen.commit_min[r] <= seen.op[r])


@point
def bounded(s: Core) -> Core:
    """The state that is bounded: this one; that after the step where a part says what a step may not do."""
    return s


@invariant("I6", "view_monotone")
def view_monotone(s: Core) -> Bool:
    """view and log_view never regress, restarts included, but where a part says so and what then stands for them;
    log_view ≤ view; every promise that was sent is kept.
    """
    return forall(
        Replica,
        lambda r: all_of(
            any_of(s.view[r] <= s.after.view[r], *may_regress(s, r)),
            any_of(s.log_view[r] <= s.after.log_view[r], *may_forget(s, r)),
            s.after.log_view[r] <= s.after.view[r],
            forall(View, lambda v: is_promise_kept(s, v, r)),
            *kept_views(s, r),
        ),
    )


@cases
def may_regress(s: Core, r: Replica) -> tuple[Truth, ...]:
    """In which steps the view of r may fall: in none."""
    return ()


@cases
def may_forget(s: Core, r: Replica) -> tuple[Truth, ...]:
    """In which steps the log_view of r may fall: in none."""
    return ()


@cases
def kept_views(s: Core, r: Replica) -> tuple[Truth, ...]:
    """What else a step keeps of the views of r: what parts keep beside view and log_view."""
    return ()


@point
def is_promise_kept(s: Core, v: View, r: Replica) -> Bool:
    """After the step: what r said in view v is not above its durable view."""
    said = any_of(s.after.svc[v, r], s.after.dvc[v, r].sent, exists(Op, lambda o: s.after.ack[v, r, o] != NONE))
    return implies(said, v <= s.after.durable_view[r])


@invariant("I7", "one_prepare")
def one_prepare(s: Core) -> Bool:
    """One prepare per (view, op), and one start_view per view: once sent they do not change."""
    return forall(
        View,
        lambda v: all_of(
            implies(s.sv[v].sent, all_of(s.after.sv[v].sent, s.after.sv[v].op == s.sv[v].op)),
            forall(
                Op,
                lambda o: all_of(
                    implies(s.sv[v].sent, s.after.sv[v].entry[o] == s.sv[v].entry[o]),
                    implies(
                        s.prepare[v, o].sent,
                        same(s.after.prepare[v, o], s.prepare[v, o]),
                    ),
                ),
            ),
        ),
    )


@invariant("I8", "exactly_once")
def exactly_once(s: Core) -> Bool:
    """No request of a client is executed at two ops; and what parts say of one op: its reply, its session."""
    return forall(Op, lambda o: all_of(*once(s, o)))


@cases
def once(s: Core, o: Op) -> tuple[Truth, ...]:
    """What holds of op o: what was executed there is no request that was executed at an op before it."""
    return (
        forall(
            between(Op, 1, o - 1),
            lambda p: implies(
                all_of(s.first_executed[o] != NONE, s.first_executed[p] != NONE), lambda: are_different(s, o, p)
            ),
        ),
    )


@point
def are_different(s: Core, o: Op, p: Op) -> Bool:
    """Is what was executed at o another request than what was executed at p, or none?"""
    return any_of(
        not_(is_request(s, s.first_executed[o], o)),
        client_of(s, s.first_executed[o], o) != client_of(s, s.first_executed[p], p),
        request_of(s, s.first_executed[o], o) != request_of(s, s.first_executed[p], p),
    )


@invariant("I9", "table_is_function")
def table_is_function(s: Core) -> Bool:
    """The client table is that of the executed prefix; and what parts say of how an op changed it."""
    told = forall(Replica, lambda r: forall(Client, lambda c: is_as_executed(s, r, c)))
    return all_of(told, *as_determined(s))


@point
def is_as_executed(s: Core, r: Replica, c: Client) -> Bool:
    """Does r remember of client c the largest request number that was executed up to its commit_min?"""
    return s.table[r, c] == last_request(s, c, s.commit_min[r])


@cases
def as_determined(s: Core) -> tuple[Truth, ...]:
    """What else is determined by the executed prefix."""
    return ()


def last_request(s: Core, c: Client, limit: Op) -> Request:
    """The largest request number of client c executed up to that op."""
    return maximum(
        between(Op, 1, limit),
        lambda o: where(
            s.first_executed[o] == NONE,
            0,
            lambda: where(client_of(s, s.first_executed[o], o) == c, lambda: request_of(s, s.first_executed[o], o), 0),
        ),
    )


@invariant("I10", "chain")
def chain(s: Core) -> Bool:
    """Along every log that has to be whole each entry's parent is the entry at the op before it, and views do not fall.
    (The core has no timestamps.)
    """
    return all_of(*chains(s))


@cases
def chains(s: Core) -> tuple[Truth, ...]:
    """That the logs which have to be whole are chains: those of the replicas."""
    return (
        forall(
            Replica,
            lambda r: forall(
                between(Op, 1, s.op[r]),
                lambda o: all_of(
                    s.entry[r, o] != NONE,
                    lambda: s.prepare[value_of(s.entry[r, o]), o].parent == parent_of(s, r, o),
                    where(o == 1, True, lambda: s.entry[r, o - 1] <= s.entry[r, o]),
                ),
            ),
        ),
    )


@invariant("I12", "log_view_meaning")
def log_view_meaning(s: Core) -> Bool:
    """A do_view_change with log_view x carries exactly the log that x started with and entries prepared in x after it,
    but for what parts excuse.
    """
    return forall(
        View,
        lambda v: forall(
            Replica,
            lambda r: implies(s.dvc[v, r].sent, lambda: any_of(*reworked(s, v, r), carries_log_view(s, v, r))),
        ),
    )


@cases
def reworked(s: Core, v: View, r: Replica) -> tuple[Truth, ...]:
    """Why the log that r offers to view v need not be that of its log_view: for nothing."""
    return ()


def carries_log_view(s: Core, v: View, r: Replica) -> Bool:
    """Does r's do_view_change of view v carry the log of its log_view, and did that view begin?"""
    return all_of(
        any_of(s.dvc[v, r].log_view == 0, *has_begun(s, v, r)),
        reaches_start(s, v, r),
        forall(between(Op, 1, s.dvc[v, r].op), lambda o: any_of(*names_entry(s, v, r, o))),
    )


@cases
def has_begun(s: Core, v: View, r: Replica) -> tuple[Truth, ...]:
    """How the log_view of r's do_view_change of view v began: it was started."""
    return (s.sv[s.dvc[v, r].log_view].sent,)


@cases
def names_entry(s: Core, v: View, r: Replica, o: Op) -> tuple[Truth, ...]:
    """What r's do_view_change of view v may say of op o: the entry that its log_view has there."""
    return (s.dvc[v, r].entry[o] == entry_of_view(s, s.dvc[v, r].log_view, o),)


@point
def reaches_start(s: Core, v: View, r: Replica) -> Bool:
    """Is all of the log that its log_view started with in r's do_view_change of view v?"""
    return s.sv[s.dvc[v, r].log_view].op <= s.dvc[v, r].op


INVARIANTS = (
    agreement,
    durability,
    honest_ack,
    commit_in_order,
    bounds,
    view_monotone,
    one_prepare,
    exactly_once,
    table_is_function,
    chain,
    log_view_meaning,
)
