"""The state as parts see it: with the options of all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from viewproof.spec.vsr.core.state import Core

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


class Protocol(Core):
    """The state of the protocol: the core's, and what the parts that are on declare."""

    cfg: Config
