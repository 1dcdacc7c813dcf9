"""Journals with gaps and faulty slots, repaired header by header and prepare by prepare (seed 002): the options
`repair` of the configuration.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import Action, Change, Part, at, before, replaces
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants as core
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core import view_change as core_view_change
from viewproof.spec.vsr.parts.recovery.storage import rot
from viewproof.spec.vsr.parts.repair import faults, invariants, journal, lemmas, nacks, view_change
from viewproof.spec.vsr.parts.repair.options import Repair
from viewproof.spec.vsr.parts.repair.state import Damage, Journals, Repaired, RepairMessages

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config

VIEW_CHANGE = ("start_view_change", "do_view_change", "start_view", "on_start_view", "on_prepare", "on_commit")
"""What a cluster of one never does."""


def actions(cfg: Config) -> tuple[Action, ...]:
    """Actions of the journal, and the view change with nacks as messages of their own; a cluster of one has neither
    others to repair from nor to elect.
    """
    if cfg.replicas == 1:
        return (rot,)
    of_journal = (journal.prepare_ok, journal.repair_header, journal.repair, rot)
    return (*of_journal, view_change.merge, journal.drop_header, nacks.nack, nacks.discard)


def changes(cfg: Config) -> tuple[Change, ...]:
    """The core's log has no gaps: whatever reads or fills one is replaced, and what is said of it."""
    others = (
        replaces(normal.on_prepare, journal.on_prepare),
        replaces(core_view_change.start_view_change, view_change.start_view_change),
        replaces(core_view_change.do_view_change, view_change.do_view_change),
        replaces(core_view_change.start_view, view_change.start_view),
        replaces(core_view_change.on_start_view, view_change.on_start_view),
    )
    by_recovery = {
        "nonce": (at(core.reworked, invariants.was_reworked),),
        "superblock": (
            before(normal.on_request, journal.require_view_fixed),
            at(core.has_begun, invariants.was_merged),
        ),
    }
    return (
        *by_recovery.get(cfg.repair.recovery, ()),
        at(normal.prepare, journal.hold_in_memory),
        replaces(normal.append, journal.append),
        replaces(normal.execute, journal.execute),
        *(others if cfg.replicas > 1 else ()),
        replaces(core.is_committed, invariants.committed),
        at(core.kept_by_view, invariants.commits_are_backed),
        replaces(core.holds_acknowledged, invariants.holds_acknowledged),
        at(core.excused, invariants.knows_loss),
        at(core.excused, invariants.given_up),
        replaces(core.bounded, invariants.after_step),
        at(core.bounds_of, invariants.knows_head),
        at(core.bounds_of, invariants.keeps_executed),
        replaces(core.chains, invariants.chains),
        at(core.names_entry, invariants.names_no_header),
    )


REPAIR = Part(
    "repair",
    lambda cfg: bool(cfg.repair.recovery),
    state=lambda cfg: (Journals, RepairMessages, Damage, Repaired),
    actions=actions,
    changes=changes,
    removes=lambda cfg: VIEW_CHANGE if cfg.replicas == 1 else (),
    invariants=lambda cfg: (invariants.honest_nack,),
    witnesses=lambda cfg: (
        invariants.prepare_discarded,
        *(() if cfg.repair.recovery == "probe" else (invariants.ack_lost, invariants.gap_in_log)),
    ),
    lemmas=lemmas.lemmas,
    untrue=lambda cfg, crashes: lemmas.REPLACED | lemmas.without(cfg, crashes),
    needs={"fault": (invariants.ack_lost,)},
    faults=faults.FAULTS,
    sizes=lambda cfg: {"rots": "repair of journals" if cfg.repair.recovery in ("", "probe") else ""},
    ranges=lambda cfg, bounds: {"Rot": bounds.rots},
    models={"repair": Model(Bounds(views=2, ops=1, requests=1, rots=1), {"repair": Repair("nonce")})},
)
