"""Events of boots: the configuration, restarts, and logs that are installed or got back.

Silent steps before a `restart`: the one durable step that a replica was in when it was killed.
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import (
    bit,
    check,
    configured,
    each,
    event,
    holds,
    inferred,
    journaled,
    name_of,
    named_log,
    received,
    shown,
    step,
    tried,
    when,
)
from viewproof.refinement.native.columns import CONFIGURATION, FEATURE_MAX
from viewproof.refinement.native.configuration import has, with_part
from viewproof.spec.lang import all_of, any_of, between, not_, value_of, where
from viewproof.spec.vsr.core import normal, view_change
from viewproof.spec.vsr.core import restart as restarts
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Feature, Op, Replica, primary


def supports_more(state: Any, e: Any) -> None:
    """What the replica supports from this boot on, and did not before."""
    if has(state, "control"):
        with each(between(Feature, 1, FEATURE_MAX)) as f, when(
            all_of(bit(e.supports, f), not_(state.supports[e.node, f]))
        ):  # fmt: skip
            step("announce_feature", r=e.node, f=f)


def boots(state: Any, e: Any) -> None:
    """The configuration is that of the first boot, and the replica supports what is enabled, at least."""
    configured(*(getattr(e, name) for name in CONFIGURATION if name != "journal_slots" or has(state, "checkpoints")))
    if has(state, "control"):
        message = "a feature is enabled at the replica's checkpoint that it does not support: it must not boot"
        with each(between(Feature, 1, FEATURE_MAX)) as f, when(state.enabled_at[e.node, f] != 0):
            holds(bit(e.supports, f), message, e.supports, rule="I14")
    if has(state, "withdrawal"):
        with each(between(Feature, 1, FEATURE_MAX)) as f, when(
            all_of(not_(bit(e.supports, f)), state.supports[e.node, f])
        ):  # fmt: skip
            step("withdraw_feature", r=e.node, f=f)


def start_view_received(state: Any, view: Any, op: Any) -> None:
    """The start_view of a view, and the prepares above its op up to `op`, reach the node."""
    with when(view != 0):
        received(state.sv[view].sent, sent=True)
    received(state.sv[view].op)
    with each(between(Op, 1, state.sv[view].op)) as o:
        received(state.sv[view].entry[o])
    with each(between(Op, state.sv[view].op + 1, op)) as o:
        received(state.prepare[view, o].client, sent=not has(state, "control"))
    if has(state, "control"):
        with each(between(Op, state.sv[view].op + 1, op)) as o:
            received(state.prepare[view, o].feature)


def commit_received(state: Any, e: Any) -> None:
    """The commit number reaches the node. One that it did not have yet is what it knows afterwards, an older one tells
    it nothing.
    """
    learnt = where(state.commit_max[e.node] < e.commit_max, e.commit_max, 0)
    received(state.commit_sent[e.m_view], e.m_commit, otherwise=learnt)


def checkpointed(state: Any, e: Any) -> Any:
    """The replica shows a checkpoint at what it had executed: taken, and not seen before it died."""
    return all_of(e.checkpoint > state.checkpoint[e.node], e.checkpoint == state.commit_min[e.node])


def log_installed(state: Any, e: Any) -> None:
    """The log of a start_view takes the place of the replica's own."""
    start_view_received(state, e.m_view, e.m_op)
    commit_received(state, e)
    if not has(state, "checkpoints"):
        check(e.m_checkpoint, 0, if_shown=True)
        step(view_change.on_start_view, r=e.node, v=e.m_view, n=e.m_op)
    else:
        with when(e.m_checkpoint == 0):
            step(view_change.on_start_view, r=e.node, v=e.m_view, n=e.m_op)
        with when(e.m_checkpoint != 0):
            received(state.snapshot[e.m_view, e.m_checkpoint], sent=True)
            step("install_snapshot", r=e.node, v=e.m_view, n=e.m_op, k=e.m_checkpoint)
    with when(e.m_commit > state.commit_max[e.node]):
        step(normal.on_commit, r=e.node, k=e.m_commit)


def log_got_back(state: Any, e: Any) -> None:
    """As `log_installed`, by a replica whose own log was lost, and perhaps its snapshot: it may get back what it had.

    If its own snapshot is not one that it is known to have, it had installed that with the log of `m_log_view`, and
    died once more before that was seen.
    """
    message = "the replica comes back in a view below one that was durable: it may have promised not to"
    holds(e.m_view >= state.durable_view[e.node], message, e.m_view, rule="I6")
    if has(state, "checkpoints"):
        _unseen_snapshot(state, e)
    v = e.m_log_view
    was_installed = all_of(
        state.durable_log_view[e.node] < v, v <= e.m_view, any_of(primary(state, v) == e.node, state.sv[v].sent)
    )
    message = (
        "the superblock names the log that the replica had, one of a later view that started, or none if it was lost"
    )
    holds(any_of(v == state.durable_log_view[e.node], v == 0, was_installed), message, v)
    if has(state, "checkpoints"):
        own_snapshot = all_of(e.m_checkpoint == 0, e.checkpoint != 0)
        with when(own_snapshot):
            step("lose_log", r=e.node)
        with when(not_(own_snapshot)):
            step("lose_snapshot", r=e.node)
    else:
        step("lose_log", r=e.node)
    start_view_received(state, e.m_view, e.m_op)
    received(state.commit_sent[e.m_view], e.m_commit)
    if not has(state, "checkpoints"):
        check(e.m_checkpoint, 0, if_shown=True)
    with when(e.m_checkpoint == 0):
        step("recover_log", r=e.node, v=e.m_view, n=e.m_op)
    if has(state, "checkpoints"):
        with when(e.m_checkpoint != 0):
            received(state.snapshot[e.m_view, e.m_checkpoint], sent=True)
            step("recover_snapshot", r=e.node, v=e.m_view, n=e.m_op, k=e.m_checkpoint)
    with when(e.m_commit > state.commit_max[e.node]):
        step(normal.on_commit, r=e.node, k=e.m_commit)


def _unseen_snapshot(state: Any, e: Any) -> None:
    """Of its own log_view it installed no log that ends below the one that it had lost."""
    v = e.m_log_view
    with when(all_of(e.m_checkpoint == 0, e.checkpoint > state.checkpoint[e.node])):
        step("lose_snapshot", r=e.node)
        begun = where(state.sv[v].op > e.checkpoint, state.sv[v].op, e.checkpoint)
        again = all_of(state.log_view[e.node] == v, state.lost_op[e.node] > begun)
        op = where(again, state.lost_op[e.node], begun)
        start_view_received(state, v, op)
        received(state.snapshot[v, e.checkpoint], sent=True)
        step("recover_snapshot", r=e.node, v=v, n=op, k=e.checkpoint)


@event()
def start(state: Any, e: Any) -> None:
    """First boot over a formatted data file."""
    check(e.seq, 1)
    supports_more(state, e)
    boots(state, e)


@event()
def restart(state: Any, e: Any) -> None:
    """Boot over a used data file; what it shows of the node is the recovered state."""
    inferred(e.durable_view, e.view)
    inferred(e.durable_log_view, e.log_view)
    r, v, n = e.node, e.durable_view, e.op
    supports_more(state, e)
    if has(state, "losses") and has(state, "checkpoints"):
        _died_before_it_was_back(state, e)
    if has(state, "checkpoints"):
        with when(checkpointed(state, e)):
            step("take_checkpoint", r=r)
    with when(all_of(v > state.durable_view[r], e.durable_log_view < v)):
        step(view_change.start_view_change, r=r, v=v)
    _view_started(state, e)
    if has(state, "discard"):
        with when(all_of(n > state.op[r], v == state.durable_log_view[r], primary(state, v) != r)):
            start_view_received(state, v, n)
            step(view_change.on_start_view, r=r, v=v, n=n)
        discarded = all_of(n < state.op[r], state.written[r, n + 1])
        with when(not_(discarded)):
            step(restarts.restart, r=r, n=n)
        with when(discarded):
            _discarded(state, e)
    else:
        step(restarts.restart, r=r, n=n)
    with each(between(Op, 1, state.op[r])) as o:
        journaled(state.entry[r, o], afresh=True)
    boots(state, e)


def _died_before_it_was_back(state: Any, e: Any) -> None:
    """A replica that got another snapshot, and not by an event that shows it, had lost its log: it died once more
    before it was back.
    """
    r, v, n, k = e.node, e.durable_view, e.op, e.checkpoint
    got_another = any_of(
        k < state.checkpoint[r],
        all_of(state.checkpoint[r] < k, k < state.commit_min[r]),
        all_of(k > state.commit_min[r], state.status[r] == NORMAL, v == state.view[r], n <= state.op[r]),
    )
    with when(all_of(e.durable_log_view == v, primary(state, v) != r, got_another)):
        step("lose_snapshot", r=r)
    lost = state.status[r] == RECOVERING
    with when(lost):
        start_view_received(state, v, n)
    with when(all_of(lost, k == 0)):
        step("recover_log", r=r, v=v, n=n)
    with when(all_of(lost, k != 0)):
        received(state.snapshot[v, k], sent=True)
    with when(all_of(lost, k != 0)):
        step("recover_snapshot", r=r, v=v, n=n, k=k)


def _view_started(state: Any, e: Any) -> None:
    """A log of a view was installed, or the replica started one, before it died."""
    r, v, n = e.node, e.durable_view, e.op
    started = all_of(e.durable_log_view == v, e.durable_log_view > state.durable_log_view[r])

    def same_log(x: Any) -> Any:
        named = any_of(not_(shown(e.head)), name_of(state.dvc[v, x].entry[n], n) == e.head)
        return all_of(state.dvc[v, x].op >= n if has(state, "discard") else state.dvc[v, x].op == n, named)

    with when(all_of(started, primary(state, v) == r)):
        step(view_change.start_view, r=r, b=tried(sort=Replica, where=same_log))
    installed = all_of(started, primary(state, v) != r)
    with when(installed):
        start_view_received(state, v, n)
    if not has(state, "checkpoints"):
        with when(installed):
            step(view_change.on_start_view, r=r, v=v, n=n)
        return
    k = e.checkpoint
    transferred = all_of(k > state.commit_min[r], e.durable_log_view == v, primary(state, v) != r)
    with when(transferred):
        start_view_received(state, v, n)
    with when(all_of(installed, k <= state.commit_min[r])):
        step(view_change.on_start_view, r=r, v=v, n=n)
    with when(transferred):
        received(state.snapshot[v, k], sent=True)
    with when(transferred):
        step("install_snapshot", r=r, v=v, n=n, k=k)


def _discarded(state: Any, e: Any) -> None:
    """An entry that the replica had was discarded on a quorum of nacks."""
    r, o = e.node, e.op + 1
    with each(between(Replica, 0, state.cfg.replicas - 1)) as x:
        nack = state.nack[x, value_of(state.entry[r, o]), o]
        received(nack, nack)
    step("discard", r=r, o=o)


@event(receives="start_view", only=with_part("losses"), needs="ring")
def recover(state: Any, e: Any) -> None:
    """Boot with that log in place of its own, damaged; m_log_view is that of the superblock it booted from."""
    inferred(e.m_view, e.view)
    inferred(e.m_op, e.op)
    check(e.m_type, "start_view", if_shown=True)
    check(e.m_from, primary(state, e.m_view), if_shown=True)
    supports_more(state, e)
    if has(state, "checkpoints"):
        with when(all_of(e.m_checkpoint == 0, checkpointed(state, e))):
            step("take_checkpoint", r=e.node)
    log_got_back(state, e)
    named_log(e.m_log, Op, e.m_op, lambda o: state.entry[e.node, o])
    with each(between(Op, 1, state.op[e.node])) as o:
        journaled(state.entry[e.node, o], afresh=True)
    boots(state, e)


EVENTS = (start, restart, recover)
