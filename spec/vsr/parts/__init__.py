"""The core, and the optional parts of the protocol: each declares variables, adds actions, changes others, and states
invariants.

A part is a value in the file that holds its actions; `PARTS` lists them in the order in which they are put together.
With an option of the configuration at its default the core is left exactly as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.lang import Part
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import faults, invariants, normal, restart, state, view_change, witnesses
from viewproof.spec.vsr.core.lemmas import LEMMAS
from viewproof.spec.vsr.parts.append_failure import APPEND_FAILURE
from viewproof.spec.vsr.parts.checkpoints import CHECKPOINTS
from viewproof.spec.vsr.parts.clients import CLIENTS, SESSIONS
from viewproof.spec.vsr.parts.clients.cache import CACHE
from viewproof.spec.vsr.parts.control import CONTROL
from viewproof.spec.vsr.parts.discard import DISCARDS
from viewproof.spec.vsr.parts.fence import FENCE
from viewproof.spec.vsr.parts.frontiers import FRONTIERS
from viewproof.spec.vsr.parts.iggy import IGGY
from viewproof.spec.vsr.parts.loss import LOSSES
from viewproof.spec.vsr.parts.partitions import PARTITIONS
from viewproof.spec.vsr.parts.pipeline import PIPELINE
from viewproof.spec.vsr.parts.recovery import NONCE, SUPERBLOCK
from viewproof.spec.vsr.parts.repair import REPAIR
from viewproof.spec.vsr.parts.withdrawal import WITHDRAWAL

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config

CORE = Part(
    "core",
    lambda cfg: True,
    state=lambda cfg: (state.Replicas, state.Messages, state.History),
    actions=lambda cfg: (
        normal.on_request,
        normal.on_prepare,
        normal.append,
        normal.commit,
        normal.on_commit,
        normal.execute,
        normal.resend_reply,
        view_change.start_view_change,
        view_change.do_view_change,
        view_change.start_view,
        view_change.on_start_view,
        restart.restart,
    ),
    invariants=lambda cfg: invariants.INVARIANTS,
    witnesses=lambda cfg: witnesses.WITNESSES,
    lemmas=lambda cfg: LEMMAS,
    needs={"crash": (witnesses.restarted_normal,)},
    faults=faults.FAULTS,
    models={"core": Model(Bounds(views=3, ops=2)), "core_restart": Model(Bounds(views=2, ops=2, restarts=1))},
)

PARTS: tuple[Part, ...] = (
    CLIENTS,
    SESSIONS,
    CACHE,
    CONTROL,
    WITHDRAWAL,
    PIPELINE,
    FRONTIERS,
    APPEND_FAILURE,
    FENCE,
    DISCARDS,
    REPAIR,
    PARTITIONS,
    NONCE,
    SUPERBLOCK,
    IGGY,
    CHECKPOINTS,  # after the others: it saves what they declare
    LOSSES,  # after checkpoints: it changes how one is installed
)
"""All optional parts, in the order in which they are put together."""


def parts_of(cfg: Config) -> frozenset[str]:
    """The names of the optional parts that are on."""
    return frozenset(part.name for part in PARTS if part.is_on(cfg))
