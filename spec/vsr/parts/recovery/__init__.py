"""How a replica comes back after a crash: by asking the others (`nonce`), or by its superblock (`superblock`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import Change, Part, at, replaces
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants as core
from viewproof.spec.vsr.core import restart
from viewproof.spec.vsr.core.lemmas.words import asks_first
from viewproof.spec.vsr.parts.recovery import alone, faults, invariants, lemmas, nonce, superblock
from viewproof.spec.vsr.parts.repair import invariants as repaired
from viewproof.spec.vsr.parts.repair import view_change
from viewproof.spec.vsr.parts.repair.options import Repair
from viewproof.spec.vsr.parts.repair.state import BitMessages

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def of_nonce(cfg: Config) -> tuple[Change, ...]:
    """Crash and recovery by nonce; a cluster of one has nobody to ask."""
    return (
        replaces(restart.restart, alone.restart if cfg.replicas == 1 else nonce.restart),
        at(core.may_regress, invariants.is_recovering),
        at(core.may_forget, invariants.is_recovering),
        at(core.kept_views, invariants.rises_to_durable),
        replaces(core.is_promise_kept, invariants.is_promise_kept),
    )


def of_superblock(cfg: Config) -> tuple[Change, ...]:
    """View changes through the superblock, crash and recovery from it; a cluster of one changes its view by a crash."""
    others = (
        replaces(view_change.start_view_change, superblock.start_view_change),
        replaces(view_change.merge, superblock.merge),
        replaces(view_change.start_view, superblock.start_view),
        replaces(view_change.on_start_view, superblock.on_start_view),
    )
    return (
        replaces(restart.restart, alone.restart if cfg.replicas == 1 else superblock.restart),
        *(others if cfg.replicas > 1 else ()),
        at(core.may_regress, invariants.restarts),
        at(core.may_forget, invariants.restarts),
        at(core.kept_views, invariants.superblock_leads),
        replaces(core.is_promise_kept, invariants.is_promise_durable),
        replaces(asks_first, superblock.asks_first),
    )


SMALL = Bounds(views=2, ops=1, requests=1, restarts=1, rots=1)
NONCE = Part(
    "nonce",
    lambda cfg: cfg.repair.recovery == "nonce",
    state=lambda cfg: (nonce.Nonces, nonce.Answers, nonce.Reworked),
    actions=lambda cfg: (nonce.replace_disk, nonce.answer_recovery, nonce.recover) if cfg.replicas > 1 else (),
    changes=of_nonce,
    witnesses=lambda cfg: (invariants.recovered_later,) if cfg.replicas > 1 else (),
    lemmas=lambda cfg: lemmas.LEMMAS if cfg.replicas > 1 else (),
    needs={"crash": (invariants.recovered_later,)},
    faults=faults.FAULTS,
    models={
        "recovery": Model(SMALL, {"repair": Repair("nonce")}),
        "headers": Model(Bounds(views=2, ops=2, clients=2, requests=1), {"repair": Repair("nonce", headers=1)}),
        "diskless": Model(
            Bounds(views=2, ops=1, requests=1, restarts=1),
            {"repair": Repair("nonce", diskless=True), "quorum_replication": 3, "quorum_view_change": 2},
            replicas=4,
        ),
    },
)
BY_SUPERBLOCK = (superblock.update_superblock, superblock.send_start_view, superblock.answer_request_start_view)
SUPERBLOCK = Part(
    "superblock",
    lambda cfg: cfg.repair.recovery == "superblock",
    state=lambda cfg: (BitMessages, superblock.Unsure, superblock.AnsweredMessages),
    actions=lambda cfg: BY_SUPERBLOCK if cfg.replicas > 1 else (),
    changes=of_superblock,
    removes=lambda cfg: ("do_view_change", "nack", "discard", "drop_header"),
    invariants=lambda cfg: (repaired.copy_known,),
    witnesses=lambda cfg: (invariants.recovered_later, invariants.unsure_of_head) if cfg.replicas > 1 else (),
    needs={
        "crash": (invariants.recovered_later, invariants.unsure_of_head),
        "fault": (invariants.unsure_of_head,),
    },
    models={
        "superblock": Model(SMALL, {"repair": Repair("superblock")}),
        "alone": Model(
            Bounds(views=3, ops=2, clients=2, requests=1, restarts=2, rots=1),
            {"repair": Repair("superblock")},
            replicas=1,
        ),
    },
)
