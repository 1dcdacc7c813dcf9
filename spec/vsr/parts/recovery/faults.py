"""Mistakes in nacks and in recovery: what a replica that lost something says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from viewproof.spec.lang import NONE, action, all_of, any_of, between, forall, not_, require, tagged, value_of
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Length, Op, Replica, Restart, View
from viewproof.spec.vsr.parts.recovery import alone, nonce, superblock
from viewproof.spec.vsr.parts.recovery.nonce import Recovering
from viewproof.spec.vsr.parts.recovery.superblock import BySuperblock
from viewproof.spec.vsr.parts.repair import nacks
from viewproof.spec.vsr.parts.repair.options import Repair
from viewproof.spec.vsr.parts.repair.view_change import install_headers
from viewproof.spec.vsr.stand_ins import Fault, beside, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@action
def discard_below_window(state: Recovering, r: Replica, o: Op) -> None:
    """An op below the lowest header of a do_view_change counts as nacked by its sender [seed 002]."""
    nacks.discard_if(
        state, r, o, lambda received, v, q, p: all_of(received.dvc[v, q].sent, received.dvc[v, q].entry[p] == NONE)
    )


@tagged("recovery")
@action
def recover_clearing_faulty(state: Recovering, r: Replica, p: Replica) -> None:
    """To install a header clears the faulty bit of its slot: what was lost there is dirty, as if never held
    [seed 002].
    """
    x = state.nonce[r]
    nonce.require_primary(state, r, x, p)
    v = value_of(state.received(r).answer[x, p].view)
    require(nonce.is_newest(state, r, x, v))
    require(v >= state.durable_view[r])
    nonce.become_backup(state, r, x, p, keeps=False)


@action
def merge_without_copy(state: BySuperblock, r: Replica, b: Replica, n: Length) -> None:
    """An op that is not nacked is taken to be present: nobody has to say that it holds a copy [TigerBeetle]."""
    superblock.require_quorum(state, r, b)
    superblock.require_decision(
        state,
        r,
        state.view[r],
        b,
        n,
        lambda state, received, v, b, o: all_of(
            superblock.canonical_header(received, v, b, o) != NONE,
            not_(superblock.is_nacked(state, received, v, b, o)),
        ),
    )
    superblock.take_decision(state, r, state.view[r], b, n)


@tagged("recovery")
@action
def open_empty(state: Recovering, r: Replica) -> None:
    """A replica that restarts with an empty journal is normal in view 0, as at its first start [seed 002]."""
    log = between(Op, 1, state.op[r])
    require(state.status[r] == RECOVERING)
    require(forall(log, lambda o: all_of(state.body[r, o] == NONE, not_(state.faulty[r, o]))))
    state.status[r] = NORMAL
    state.wiped[r] = False
    state.op[r] = 0


@tagged("recovery")
@action
def recover_with_any_nonce(state: Recovering, r: Replica, p: Replica, x: Restart) -> None:
    """Answers to an earlier nonce of the replica's are taken too [seed 002]."""
    require(x <= state.nonce[r])
    nonce.require_primary(state, r, x, p)
    v = value_of(state.received(r).answer[x, p].view)
    require(nonce.is_newest(state, r, x, v))
    require(v >= state.durable_view[r])
    nonce.become_backup(state, r, x, p)


@tagged("recovery")
@action
def recover_from_any_primary(state: Recovering, r: Replica, p: Replica) -> None:
    """The answer of any primary of its own view is taken, whatever views the others answered [a public TLA+ spec of
    the paper].
    """
    x = state.nonce[r]
    nonce.require_primary(state, r, x, p)
    nonce.become_backup(state, r, x, p)


@tagged("recovery")
@action
def recover_forgetting(state: Recovering, r: Replica, p: Replica) -> None:
    """A replica comes back in a view below one for which it sent a do_view_change [Michael et al. 2017]."""
    x = state.nonce[r]
    nonce.require_primary(state, r, x, p)
    require(nonce.is_newest(state, r, x, value_of(state.received(r).answer[x, p].view)))
    nonce.become_backup(state, r, x, p)


@action
def on_start_view_of_any_age(state: BySuperblock, r: Replica, v: View, n: Length) -> None:
    """A replica unsure of its head takes any start_view of its view for the truth [TigerBeetle]."""
    may = any_of(state.status[r] != NORMAL, n > state.op[r])
    require(any_of(v > state.view[r], all_of(v == state.view[r], may)))
    superblock.require_sent(state, r, v, n)
    install_headers(state, r, v, n, top=state.head_limit[r])
    state.head_limit[r] = 0


def _by(recovery: str, model: str) -> Callable[[Config], str]:
    def refuses(cfg: Config) -> str:
        return (
            "" if cfg.repair.recovery == recovery else f"is a mistake of recovery by {recovery}; see the model {model}"
        )

    return refuses


def _nonce_instead(cfg: Config) -> Config:
    return replace(cfg, repair=Repair("nonce"))


@tagged("crash")
@action
def restart_in_same_view(state: Recovering, r: Replica) -> None:
    """A cluster of one goes on in the view in which it crashed [TigerBeetle]."""
    require(not_(state.sv[state.durable_view[r]].sent))
    alone.start_alone(state, r, state.durable_view[r])


def _needs_one(cfg: Config) -> str:
    return "" if cfg.replicas == 1 and cfg.repair.recovery else "is a mistake of a cluster of one; see the model alone"


FAULTS = (
    Fault(
        "nack.below_window",
        (instead_of(nacks.discard, act=discard_below_window),),
        refuses=_by("nonce", "headers"),
        drops=("others >= nacks_needed(state, state.faulty[r, o])",),
    ),
    Fault(
        "nack.clears_faulty",
        (instead_of(nonce.recover, act=recover_clearing_faulty),),
        refuses=_by("nonce", "recovery"),
    ),
    Fault(
        "nack.not_nacked_is_present",
        (instead_of(superblock.merge, act=merge_without_copy),),
        refuses=_by("superblock", "superblock"),
        drops=("forall(between(Op, known + 1, n), lambda o: stays(state, received, v, b, o))",),
    ),
    Fault(
        "recover.empty_journal_is_new",
        comes_on_top=(beside(nonce.recover, open_empty),),
        refuses=_by("nonce", "recovery"),
    ),
    Fault(
        "recover.needs_normal_quorum",
        configure=_nonce_instead,
        refuses=_by("superblock", "superblock"),
    ),
    Fault(
        "recover.stale_nonce",
        (instead_of(nonce.recover, act=recover_with_any_nonce),),
        refuses=_by("nonce", "recovery"),
        drops=(
            "answers(state, r, x) >= state.cfg.quorum_view_change",
            "is_newest(state, r, x, v)",
            "primary(state, value_of(received.answer[x, p].view)) == p",
            "received.answer[x, p].view != NONE",
            "v >= state.durable_view[r]",
        ),
    ),
    Fault(
        "recover.any_primary",
        (instead_of(nonce.recover, act=recover_from_any_primary),),
        refuses=_by("nonce", "recovery"),
        drops=(
            "is_newest(state, r, x, v)",
            "v >= state.durable_view[r]",
        ),
    ),
    Fault(
        "recover.head_from_old_start_view",
        (instead_of(superblock.on_start_view, act=on_start_view_of_any_age),),
        refuses=_by("superblock", "superblock"),
        drops=("any_of(v > state.view[r], all_of(state.status[r] != RECOVERING, if_sure), if_unsure)",),
    ),
    Fault(
        "diskless.forgets_promise",
        (instead_of(nonce.recover, act=recover_forgetting),),
        refuses=_by("nonce", "diskless"),
        drops=("v >= state.durable_view[r]",),
    ),
    Fault(
        "view.solo_keeps_view",
        (instead_of(alone.restart, act=restart_in_same_view),),
        refuses=_needs_one,
    ),
)
