"""Mistakes in control entries: when a feature is enabled, where, and what is counted as executed."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import action, require
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import NORMAL, Feature, Replica, primary
from viewproof.spec.vsr.faults.kinds import Fault, instead_of
from viewproof.spec.vsr.parts import control


@action(r=Replica)
def execute_without_advance(state: Any, r: Any) -> None:
    """Executing a control entry enables the feature and leaves commit_min where it was [seed 001]."""
    o = control.require_control(state, r)
    control.enable(state, r, control.next_feature(state, r), o)


@action(r=Replica, f=Feature)
def propose_and_enable(state: Any, r: Any, f: Any) -> None:
    """The leader enables the feature when it proposes it [seed 001]."""
    control.propose_feature.fn(state, r, f)
    control.enable(state, r, f, state.op[r] + 1)


@action(r=Replica)
def execute_nothing(state: Any, r: Any) -> None:
    """Executing a control entry has no effect: the leader enabled the feature already [seed 001]."""
    o = control.require_control(state, r)
    normal.note_executed(state, r, o, state.entry[r, o])


@action(r=Replica, f=Feature)
def propose_own_feature(state: Any, r: Any, f: Any) -> None:
    """The leader proposes a feature that it supports itself, whatever the other members support [seed 001]."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(state.supports[r, f])
    control.require_missing(state, r, f)
    normal.require_room(state, r, state.op[r] + 1)
    control.prepare_feature(state, r, f)


def _needs_features(cfg: Config) -> str:
    return "" if cfg.features else "shows only with control entries"


FAULTS = (
    Fault(
        "control.no_offset_advance",
        (instead_of(control.execute_control, act=execute_without_advance),),
        refuses=_needs_features,
    ),
    Fault(
        "control.applied_on_leader_only",
        (
            instead_of(control.propose_feature, act=propose_and_enable),
            instead_of(control.execute_control, act=execute_nothing),
        ),
        refuses=_needs_features,
    ),
    Fault(
        "control.unsupported_member",
        (instead_of(control.propose_feature, act=propose_own_feature),),
        refuses=_needs_features,
        drops=("forall(Replica, lambda q: received.supports[q, f])",),
    ),
)
