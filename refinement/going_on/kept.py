"""What is kept of a run, and where: the judge of a run knows only this."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

import msgspec

from viewproof.refinement.checker import Begun
from viewproof.refinement.global_facts import RunFacts
from viewproof.refinement.ordering import Watched
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import RunVerdict


class Kept(msgspec.Struct):
    """What is kept of a run beside its events: the verdict and what else was said of it, the state after its final
    events, and what was watched of them.
    """

    verdict: RunVerdict
    errors: tuple[str, ...] = ()
    begun: Begun | None = None
    watched: Watched = msgspec.field(default_factory=Watched)
    facts: RunFacts | None = None


class Place(Protocol):
    """Where one run is kept. Reading raises `StateError` for what is damaged."""

    def load(self) -> tuple[Kept, Iterable[Row]] | None:
        """What was kept, and the events that were not final; None of a new run."""

    def final(self) -> Iterator[Row]:
        """The final events, in replay order."""

    def keep(self, kept: Kept, final: list[Row], waiting: list[Row], *, anew: bool) -> None:
        """Keep the run: those events are final, too (`anew`: they are all that are), and those are not."""
