"""Search a portfolio, shape by shape, and say what was covered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from viewproof.spec.engines import explicit
from viewproof.spec.engines.portfolio.outcome import Outcome, Shape, search
from viewproof.spec.lang.definitions import Spec


@dataclass
class Covered:
    """What became of each shape, in order, up to the first in which something broke: then `result` holds that search.

    `unwitnessed`: witness id → title, reached in no shape; `untaken`: actions taken in none; `excused`: those of either
    that were not to be met here → why.
    """

    outcomes: list[tuple[Shape, Outcome]] = field(default_factory=list)
    result: explicit.Result | None = None
    unwitnessed: dict[str, str] = field(default_factory=dict)
    untaken: list[str] = field(default_factory=list)
    excused: dict[str, str] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """holds, violated, or inconclusive: a shape was not searched as far as it says, or something was never met."""
        if self.result is not None and self.result.verdict == "violated":
            return "violated"
        if any(outcome.verdict == "inconclusive" for _, outcome in self.outcomes):
            return "inconclusive"
        return "inconclusive" if self.unwitnessed or self.untaken else "holds"

    @property
    def seconds(self) -> float:
        """Spent on searches now."""
        return sum(outcome.seconds for _, outcome in self.outcomes if not outcome.recalled)

    def reason(self) -> str:
        """Why it is inconclusive."""
        parts = [f"{shape.name}: {o.broken}" for shape, o in self.outcomes if o.verdict == "inconclusive"]
        if self.unwitnessed:
            parts.append(f"the witness of {', '.join(self.unwitnessed)} is reached in no shape: vacuous")
        if self.untaken:
            parts.append(f"{', '.join(self.untaken)} is taken in no shape")
        return "; ".join(parts)


def cover(
    shapes: Iterable[Shape], *, workers: int | None = None, max_memory_bytes: int | None = None, fresh: bool = False,
    begin: Callable[[Shape], None] = lambda shape: None,
    end: Callable[[Shape, Outcome], None] = lambda shape, outcome: None,
    progress: Callable[[explicit.Progress], None] | None = None, notify: Callable[[str], None] = lambda text: None,
    unmet: Mapping[str, str] | None = None,
) -> Covered:  # fmt: skip
    """Search the shapes in order; stop at the first in which an invariant breaks, or at an interrupt.

    `unmet`: witnesses and actions that need not be met in these shapes → why.

    A shape searched before comes from the cache unless `fresh`. `begin` and `end` are called around each. A step that
    leaves its range raises `OutOfRangeError`, as `explicit.explore`.
    """
    covered = Covered()
    specs: list[Spec] = []
    for shape in shapes:
        begin(shape)
        outcome, result = search(
            shape, workers=workers, max_memory_bytes=max_memory_bytes, fresh=fresh, progress=progress, notify=notify
        )
        if outcome.verdict in ("violated", "range") and result is None:  # known to break: the behaviour is wanted
            result = explicit.explore(shape.spec, workers=workers, max_memory_bytes=max_memory_bytes, notify=notify)
        end(shape, outcome)
        covered.outcomes.append((shape, outcome))
        specs.append(shape.spec)
        if outcome.verdict not in ("holds", "bounded"):
            covered.result = result
            return covered
    witnessed = {id for _, outcome in covered.outcomes for id in outcome.witnessed}
    taken = {name for _, outcome in covered.outcomes for name in outcome.taken}
    witnesses = {p.name: p.title for spec in specs for p in spec.witness_irs if not p.is_transition}
    idle = dict.fromkeys(a.name for spec in specs for a in spec.actions if a.name not in taken)
    lacking = {id: title for id, title in witnesses.items() if id not in witnessed}
    covered.excused = {name: why for name, why in (unmet or {}).items() if name in idle or name in lacking}
    covered.unwitnessed = {id: title for id, title in lacking.items() if id not in covered.excused}
    covered.untaken = [name for name in idle if name not in covered.excused]
    return covered
