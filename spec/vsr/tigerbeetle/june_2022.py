"""The profile `tigerbeetle-2022`: steps of the June 2022 build, and mistakes that an audit may be told to permit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from viewproof.spec.lang import Action, Instance, Number, Spec, action, count, number_of, require
from viewproof.spec.vsr.tigerbeetle import (
    headers,
    journal_2022,
    messages_2022,
    normal_2022,
    recovery_2022,
    repair_2022,
    view_2022,
)
from viewproof.spec.vsr.tigerbeetle.normal_2022 import at_primary, commit_head, compose_prepare
from viewproof.spec.vsr.tigerbeetle.recovery_2022 import new_replica, rejoin
from viewproof.spec.vsr.tigerbeetle.repair_2022 import deny
from viewproof.spec.vsr.tigerbeetle.sorts import Count, Message, Op, Prepare, Replica
from viewproof.spec.vsr.tigerbeetle.state_2022 import June, schema_2022

PROFILE = "tigerbeetle-2022"

ACTIONS = (
    *headers.ACTIONS,
    *journal_2022.ACTIONS,
    *messages_2022.ACTIONS,
    *normal_2022.ACTIONS,
    *view_2022.ACTIONS,
    *repair_2022.ACTIONS,
    *recovery_2022.ACTIONS,
)


def oks_of_any_view(state: June, r: Replica, o: Op) -> Number:
    """Acknowledgements counted for the pipeline entry since it is there, whatever the view."""
    return count(Replica, lambda q: state.ok_ever[r, o, q])


@action
def prepare_oks(state: June, r: Replica, o: Op, k: Count) -> None:
    """Acknowledgements of older views are counted, too [seed 002]."""
    at_primary(state, r, o)
    require(oks_of_any_view(state, r, o) == number_of(k))


@action
def prepare_quorum(state: June, r: Replica, o: Op) -> None:
    """Acknowledgements of older views make a quorum, too [seed 002]."""
    at_primary(state, r, o)
    require(oks_of_any_view(state, r, o) >= state.cfg.quorum_replication)


@action
def commit(state: June, r: Replica, e: Prepare) -> None:
    """A prepare is committed on acknowledgements of older views, too [seed 002]."""
    require(oks_of_any_view(state, r, state.commit_min[r] + 1) >= state.cfg.quorum_replication)
    commit_head(state, r, e)


@action
def on_request(state: June, r: Replica, e: Prepare) -> None:
    """A cluster of one that restarted prepares again in the view it was in [TigerBeetle]."""
    require(state.cfg.replicas == 1)
    require(state.prepared[state.view[r], state.op[r] + 1] != 0)
    normal_2022.may_prepare(state, r, e)
    compose_prepare(state, r, e)


@action
def send_nack(state: June, r: Replica, m: Message, o: Op, e: Prepare) -> None:
    """A header that was installed over a faulty slot hides that the prepare was acknowledged [seed 002]."""
    deny(state, r, m, o, e)


@action
def recover_empty(state: June, r: Replica) -> None:
    """An empty journal makes a replica new that took part before [seed 002]."""
    new_replica(state, r)


@action
def finish_recovery(state: June, r: Replica, b: Replica) -> None:
    """A replica forgets that it voted in a higher view than the one it recovers into [Michael et al. 2017]."""
    rejoin(state, r, b)


DEVIATIONS: Mapping[str, tuple[Action, ...]] = {
    "view.acks_survive_view": (prepare_oks, prepare_quorum, commit),
    "view.solo_keeps_view": (on_request,),
    "nack.clears_faulty": (send_nack,),
    "recover.empty_journal_is_new": (recover_empty,),
    "diskless.forgets_promise": (finish_recovery,),
}
"""Fault of the catalogue → the actions that stand in for those of the same name where it is permitted."""


def spec_2022(cfg: Any) -> Spec:
    """The steps, for a cluster of `cfg.replicas` replicas among `cfg.nodes` nodes."""
    return Spec(PROFILE, schema_2022(), cfg, ACTIONS, (), (), Instance({"Replica": cfg.nodes - 1}))
