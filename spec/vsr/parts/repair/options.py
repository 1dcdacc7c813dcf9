"""Journals with gaps and faulty slots, and how a replica recovers: the options `repair` of a configuration
(docs/recovery-and-repair.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.clients.options import ClientTable


@dataclass(frozen=True)
class Repair(Options):
    """Repair and recovery. At its defaults the journal is the core's, which has no gaps."""

    recovery: str = option(
        "",
        "how a replica comes back: it asks the others (nonce), reads view and log_view from disk (superblock), or does "
        "and then waits for an answer (probe; docs/iggy.md)",
        among=("", "nonce", "superblock", "probe"),
    )
    headers: int = option(0, "most headers in a do_view_change (0: any number)", least=0)
    diskless: bool = option(False, "a crash loses the journal")
    lasting: bool = option(
        False, "a prepare that was sent may arrive at any time (for traces); else one that no replica holds is lost"
    )

    def go_together(self) -> None:
        """Some are of recovery by nonce."""
        if (self.headers or self.diskless) and self.recovery != "nonce":
            raise SpecError("headers and diskless are options of recovery by nonce")


@dataclass(frozen=True)
class RepairOptions(Options):
    """The option of repair."""

    repair: Repair = option(Repair(), "journals with gaps and faulty slots, and how a replica recovers")

    def go_together(self: Any) -> None:
        """What has no rule yet for a journal with gaps is refused."""
        if not self.repair.recovery:
            return
        if self.checkpoints or self.features:
            raise SpecError("repair does not go together with checkpoints or features yet")
        if self.repair.recovery != "probe" and self.client_table != ClientTable():
            raise SpecError("repair by nonce or superblock does not go together with a bounded client table yet")
        if self.pipeline or self.discards:
            raise SpecError("repair does not go together with a pipeline or discards yet")
