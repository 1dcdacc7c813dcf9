"""Partitions of messages: appends, stored offsets, segments and indexes (docs/groups.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from viewproof.spec.lang import Change, Part, at
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import normal, restart
from viewproof.spec.vsr.parts.checkpoints import checkpoint, snapshot
from viewproof.spec.vsr.parts.partitions import actions, faults, invariants, lemmas, state
from viewproof.spec.vsr.parts.partitions.options import Partitions

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def changes(cfg: Config) -> tuple[Change, ...]:
    """An op is executed once it is known what it asks; messages survive a restart in their files."""
    files = (at(checkpoint.require_flushed, state.require_flushed), at(restart.require_restart, state.require_whole))
    return (
        at(normal.require_committed, state.require_known),
        at(normal.note_executed, state.apply),
        at(restart.load_state, state.load_partitions),
        at(snapshot.install_state, state.take_messages),
        *(files if cfg.partitions.files else ()),
    )


def sizes(cfg: Config) -> dict[str, str]:
    """Damage is to segment files."""
    missing = "" if cfg.partitions.count else "partitions"
    counted = dict.fromkeys(("partitions", "readers", "messages"), missing)
    return {**counted, "rots": "" if cfg.partitions.files else "segment files"}


def fit(cfg: Config, bounds: Bounds) -> Config:
    """As many partitions as the size has."""
    count = bounds.partitions or cfg.partitions.count
    return replace(cfg, partitions=replace(cfg.partitions, count=count))


def ranges(cfg: Config, bounds: Bounds) -> dict[str, int]:
    """One reader of each partition and one message in an append, where nothing is said."""
    count, messages = cfg.partitions.count, bounds.messages or 1
    return {
        "Partition": count - 1,
        "Reader": (bounds.readers or count) - 1,
        "Count": messages,
        "Offset": bounds.ops * messages,
        **({"Rot": bounds.rots} if cfg.partitions.files else {}),
    }


PARTITIONS = Part(
    "partitions",
    lambda cfg: cfg.partitions.count > 0,
    state=state.states,
    actions=actions.of,
    changes=changes,
    invariants=lambda cfg: (invariants.offsets,),
    witnesses=invariants.witnesses,
    lemmas=lambda cfg: lemmas.LEMMAS,
    needs={
        "crash": (invariants.crash_before_manifest, invariants.loss_lowered),
        "fault": (invariants.segment_damaged, invariants.loss_lowered),
    },
    faults=faults.FAULTS,
    sizes=sizes,
    fit=fit,
    ranges=ranges,
    models={
        "partitions": Model(
            Bounds(views=2, ops=2, requests=2, restarts=1, rots=1, partitions=1, readers=1, messages=2),
            {"checkpoints": True, "partitions": Partitions(count=1, files=True)},
            replicas=2,
        )
    },
)
