"""Journals with gaps and faulty slots, repaired header by header and prepare by prepare (seed 002): the options
`repair` of the configuration.
"""

from __future__ import annotations

from viewproof.spec.lang import Action
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.module import Module
from viewproof.spec.vsr.recovery.storage import rot
from viewproof.spec.vsr.repair import invariants, journal, nacks, view_change
from viewproof.spec.vsr.repair.state import declare

OF_JOURNAL = (
    journal.on_request,
    journal.on_prepare,
    journal.append,
    journal.prepare_ok,
    journal.execute,
    journal.repair_header,
    journal.repair,
    rot,
)
OF_NACKS = (
    view_change.start_view_change,
    view_change.do_view_change,
    view_change.merge,
    journal.drop_header,
    nacks.nack,
    nacks.discard,
    view_change.start_view,
    view_change.on_start_view,
)

VIEW_CHANGE = ("start_view_change", "do_view_change", "start_view", "on_start_view", "on_prepare", "on_commit")
"""What a cluster of one never does."""


def actions(cfg: Config) -> tuple[Action, ...]:
    """Actions of the journal, and the view change with nacks as messages of their own; a cluster of one has neither
    others to repair from nor to elect.
    """
    if cfg.replicas == 1:
        return (journal.on_request, journal.append, journal.execute, rot)
    return (*OF_JOURNAL, *OF_NACKS)


MODULE = Module(
    "repair",
    lambda cfg: bool(cfg.repair.recovery),
    declare=declare,
    actions=actions,
    removes=lambda cfg: VIEW_CHANGE if cfg.replicas == 1 else (),
    invariants=lambda cfg: (
        invariants.durability,
        invariants.honest_ack,
        invariants.bounds,
        invariants.chain,
        invariants.honest_nack,
        invariants.log_view_meaning,
    ),
    witnesses=lambda cfg: (invariants.ack_lost, invariants.gap_in_log, invariants.prepare_discarded),
)
