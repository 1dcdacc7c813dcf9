"""The optional parts of the protocol: each declares variables, adds or replaces actions, and states invariants.

A module is a value `MODULE` in the file that holds its actions; `MODULES` lists them in the order in which they apply.
With an option of the configuration at its default the core is left exactly as it is.
"""

from __future__ import annotations

from viewproof.spec.vsr import (
    append_failure,
    checkpoint,
    clients,
    control,
    discard,
    fence,
    loss,
    partitions,
    pipeline,
    recovery,
    repair,
    sessions,
)
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.module import Module

MODULES: tuple[Module, ...] = (
    clients.MODULE,
    sessions.MODULE,
    control.MODULE,
    pipeline.MODULE,
    append_failure.MODULE,
    fence.MODULE,
    discard.MODULE,
    repair.MODULE,
    partitions.MODULE,
    recovery.NONCE,
    recovery.SUPERBLOCK,
    checkpoint.MODULE,  # after the others: it saves what they declare
    loss.MODULE,  # after all whose actions it limits to who takes part
)
"""All optional parts, in the order in which they apply."""


def options_of(cfg: Config) -> frozenset[str]:
    """The options that are on."""
    return frozenset(module.option for module in MODULES if module.is_on(cfg))
