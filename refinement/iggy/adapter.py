"""The adapter `iggy`: its logs, and the specification that judges them, as Iggy is built."""

from __future__ import annotations

from typing import Any

from viewproof.refinement.iggy.events import EVENTS
from viewproof.refinement.iggy.source import SUFFIXES, is_merged, read
from viewproof.refinement.logs.judge import System
from viewproof.spec.lang import Instance
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.vsr.config import ClientTable, Config, Repair
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.parts.iggy.as_built import as_built
from viewproof.spec.vsr.profiles import profile_options


def specification(config: Any) -> Spec:
    """That of a group of so many replicas: the metadata has a client table, a partition none."""
    n = config.replicas
    options = profile_options("iggy", n)
    slots = (
        ClientTable(config.slots, sessions=True, gaps=True, cached=5, in_flight=0) if config.metadata else ClientTable()
    )
    options |= {"repair": Repair("probe", lasting=True), "client_table": slots}
    return as_built(build(Config(n, profile="iggy", **options), Instance({"Replica": n - 1}), "iggy"))


SYSTEM = System(
    "iggy",
    lambda c: f"iggy, {'metadata' if c.metadata else 'a partition'}, {c.replicas} replicas",
    SUFFIXES,
    read,
    is_merged,
    EVENTS,
    specification,
)
