"""The options of checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.options import Options, option


@dataclass(frozen=True)
class CheckpointOptions(Options):
    """Checkpoints, and the journal that they drain."""

    checkpoints: bool = option(False, "replicas take checkpoints")
    journal_slots: int = option(0, "the journal is a ring of so many slots (0: it has no end)", least=0)
    drains_later: bool = option(
        False, "draining is a step after the checkpoint (for bounded models: a crash may come between)"
    )

    def go_together(self) -> None:
        """A ring is emptied by checkpoints."""
        if self.journal_slots and not self.checkpoints:
            raise SpecError("a journal that is a ring needs checkpoints")
