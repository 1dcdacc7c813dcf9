"""A client is told of a newer instance only if there is one (L2: otherwise it would stop for nothing)."""

from __future__ import annotations

from viewproof.impl.sim.checkers.base import Checker, FinalState


class FencesChecker(Checker):
    """Judges what the clients noted."""

    name = "fences"

    def finish(self, final: FinalState) -> None:
        for text in final.fenced_wrongly:
            self.fail(text)
