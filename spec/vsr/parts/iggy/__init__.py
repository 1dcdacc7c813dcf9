"""Iggy's replication (docs/iggy.md): journals that are appended in order, heads that are adopted before their bodies,
merges with nacks, and a replica that is mute after a crash until it is answered. It is put on `repair`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import Action, Change, Part, before, replaces
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core import restart as core_restart
from viewproof.spec.vsr.core.lemmas import LEMMAS
from viewproof.spec.vsr.parts.clients import sessions
from viewproof.spec.vsr.parts.clients.options import ClientTable
from viewproof.spec.vsr.parts.iggy import faults, invariants, restart, view_change
from viewproof.spec.vsr.parts.iggy import journal as iggy
from viewproof.spec.vsr.parts.recovery import alone
from viewproof.spec.vsr.parts.repair import journal, lemmas, state
from viewproof.spec.vsr.parts.repair import view_change as repaired
from viewproof.spec.vsr.parts.repair.options import Repair

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def changes(cfg: Config) -> tuple[Change, ...]:
    """What Iggy does in its own way; a cluster of one has no others to elect or repair from."""
    caught_up = (
        before(normal.on_request, iggy.require_caught_up),
        *((before(sessions.on_register, iggy.require_caught_up),) if cfg.client_table.sessions else ()),
    )
    others = (
        replaces(journal.append, iggy.append),
        replaces(journal.on_prepare, iggy.on_prepare),
        replaces(journal.repair, iggy.repair),
        replaces(repaired.start_view_change, view_change.start_view_change),
        replaces(repaired.do_view_change, view_change.do_view_change),
        replaces(repaired.merge, view_change.merge),
        replaces(repaired.start_view, view_change.start_view),
        replaces(repaired.on_start_view, view_change.on_start_view),
    )
    return (
        *caught_up,
        replaces(journal.execute, normal.execute),
        *(others if cfg.replicas > 1 else ()),
        replaces(core_restart.restart, alone.restart if cfg.replicas == 1 else restart.restart),
    )


def actions(cfg: Config) -> tuple[Action, ...]:
    """A cluster of one replays its journal at once."""
    return (iggy.replay,) if cfg.replicas > 1 else ()


OF_OTHERS = (
    *(invariants.head_without_body, invariants.merged_log_waits),
    *(invariants.replayed, invariants.rejoined),
)
PROBE = Repair("probe")
IGGY = Part(
    "iggy",
    lambda cfg: cfg.repair.recovery == "probe",
    state=lambda cfg: (state.BitMessages,),
    actions=actions,
    changes=changes,
    removes=lambda cfg: ("prepare_ok", "repair_header", "drop_header", "nack", "discard", "rot"),
    invariants=lambda cfg: (invariants.copy_known,) if cfg.replicas > 1 else (),
    witnesses=lambda cfg: (
        invariants.op_claimed,
        *(OF_OTHERS if cfg.replicas > 1 else ()),
    ),
    untrue=lambda cfg, crashes: {lemma.id for lemma in (*LEMMAS, *lemmas.lemmas(cfg))},
    needs={"crash": (invariants.replayed, invariants.rejoined)},
    faults=faults.FAULTS,
    models={
        "iggy_views": Model(Bounds(views=3, ops=1, requests=1), {"repair": PROBE}),
        "iggy_log": Model(Bounds(views=2, ops=2, clients=2, requests=1), {"repair": PROBE}),
        "iggy_crash": Model(Bounds(views=2, ops=1, requests=1, restarts=1), {"repair": PROBE}),
        "iggy_four": Model(
            Bounds(views=2, ops=1, requests=1),
            {"repair": PROBE, "quorum_replication": 2, "quorum_view_change": 3},
            replicas=4,
        ),
        "iggy_whole": Model(
            Bounds(views=2, ops=3, clients=2, requests=1, incarnations=2),
            {"repair": PROBE, "client_table": ClientTable(slots=1, sessions=True, gaps=True, cached=2)},
            replicas=2,
        ),
    },
)
