"""How one run goes on: what was kept of it, its new events, the verdict, and what is kept now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from itertools import chain, islice

import msgspec

from viewproof.refinement.adapter import has_facts
from viewproof.refinement.checker import advance, check_run
from viewproof.refinement.global_facts import RunFacts, merge_facts
from viewproof.refinement.going_on.kept import Kept, Place
from viewproof.refinement.judging import judge_run
from viewproof.refinement.ordering import SequenceGuard, order_key
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

_CLOCK = INDEX["clock"]


@dataclass
class Run:
    """A run as it was kept in a place (or new), and the events that were not final then."""

    run_id: str
    place: Place
    options: AuditOptions
    kept: Kept | None = None
    waiting: list[Row] = field(default_factory=list)

    @classmethod
    def load(cls, run_id: str, place: Place, options: AuditOptions) -> Run:
        """The run as it was kept. Raises `StateError` for a damaged state."""
        found = place.load()
        return cls(run_id, place, options) if found is None else cls(run_id, place, options, found[0], list(found[1]))

    def __iter__(self) -> Iterator[Row]:
        """All events that were kept, in replay order."""
        return chain(self.place.final(), self.waiting)

    def go_on(self, new: list[Row], log: ProblemLog) -> tuple[RunVerdict | None, tuple[str, ...]]:
        """Judge the run with its new events, and keep it; if something is wrong with them it goes to `log` instead."""
        new.sort(key=order_key)
        kept = self.kept or Kept(RunVerdict(self.run_id, "inconclusive", 0), facts=RunFacts(self.run_id))
        final = max((clock for _, clock in kept.watched.last.values()), default=-1)
        afresh = new[0][_CLOCK] <= final
        if afresh:  # events that come late: the whole run is looked at again
            rows: list[Row] = list(merge(self, new, key=order_key))
            kept = Kept(kept.verdict, facts=RunFacts(self.run_id))
        else:
            rows = list(merge(self.waiting, new, key=order_key))
        whole = _Whole(self.place, rows) if kept.begun else rows
        assert kept.facts is not None
        before = (kept.watched, msgspec.msgpack.decode(msgspec.msgpack.encode(kept.facts), type=RunFacts))
        check = partial(check_run, begun=kept.begun, whole=whole) if kept.begun else check_run
        verdict, contradictions, errors = judge_run(self.run_id, rows, self.options, check, log, before=before)
        if log or verdict is None:
            return verdict, tuple(errors)
        verdict, disagreement = merge_facts(verdict, contradictions, self.options)
        said = (*errors, *((disagreement,) if disagreement else ()))
        self._keep(rows, kept, verdict, said, anew=afresh)
        return verdict, said

    def _keep(self, rows: list[Row], kept: Kept, verdict: RunVerdict, said: tuple[str, ...], *, anew: bool) -> None:
        begun = advance(self.run_id, rows, self.options, kept.begun)
        count = (begun.events if begun else 0) - (kept.begun.events if kept.begun else 0)
        guard = SequenceGuard(ProblemLog())
        guard.go_on(kept.watched)
        assert kept.facts is not None
        through = guard.watch(islice(rows, count))
        for _ in kept.facts.watch(through) if has_facts(self.options.adapter) else through:
            pass
        self.place.keep(Kept(verdict, said, begun, guard.kept(), kept.facts), rows[:count], rows[count:], anew=anew)


class _Whole:
    """All events of a run: those that are final, and the others."""

    def __init__(self, place: Place, rows: list[Row]) -> None:
        self.place, self.rows = place, rows

    def __iter__(self) -> Iterator[Row]:
        return chain(self.place.final(), self.rows)
