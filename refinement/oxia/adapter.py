"""The adapter `oxia`: its logs, and the specification that judges them, as Oxia is built."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.logs.judge import System
from viewproof.refinement.logs.source import lines_of
from viewproof.refinement.oxia.events import EVENTS
from viewproof.refinement.oxia.source import SUFFIXES, is_merged, read
from viewproof.spec.lang import Instance
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.faults import AS_BUILT
from viewproof.spec.oxia.models import build


def specification(members: Any) -> Spec:
    """That of an ensemble of so many members, with what the build does otherwise than is safe (docs/oxia.md).

    Each of these steps is taken as built; a log in which one did harm breaks an invariant, and that is held.
    """
    cfg = Config(members, faults=frozenset(fault.id for fault in AS_BUILT))
    return build(cfg, Instance({"Replica": members - 1}))


SYSTEM = System(
    "oxia",
    lambda members: f"oxia, {members} members",
    SUFFIXES,
    read,
    lambda file: is_merged(lines_of(file)),
    EVENTS,
    specification,
    frozenset(EVENTS.by_name) - {"applies", "applied", "duplicate", "sent"},
    ("term", "offset", "commit-offset", "head-offset", "max-inclusive", "min-exclusive"),
)
