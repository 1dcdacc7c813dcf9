"""Partitions of messages: the options `partitions` of a configuration (docs/groups.md)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.options import Options, option


@dataclass(frozen=True)
class Partitions(Options):
    """Partitions. At its defaults there are none."""

    count: int = option(0, "how many partitions there are", least=0)
    files: bool = option(False, "segments and indexes are there, too (for bounded models: no trace shows them)")
    segment: int = option(2, "messages after which a segment is closed, and its index flushed", least=1)


@dataclass(frozen=True)
class PartitionOptions(Options):
    """The option of partitions."""

    partitions: Partitions = option(Partitions(), "ops append messages and store offsets")

    def go_together(self: Any) -> None:
        """Files hold what is checkpointed."""
        if self.repair.recovery and self.partitions.count:
            raise SpecError("repair does not go together with partitions yet")
        if self.partitions.files and not (self.checkpoints and self.partitions.count):
            raise SpecError("segment files need partitions and checkpoints")
