"""How one run goes on: what was kept of it, its new events, the verdict, and what is kept now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from heapq import merge
from itertools import chain, islice

import msgspec

from viewproof.refinement.adapter import adapter, has_facts
from viewproof.refinement.checker import Begun, advance, check_run
from viewproof.refinement.global_facts import RunFacts, merge_facts
from viewproof.refinement.going_on import frames
from viewproof.refinement.going_on.directory import Directory, Entry, StateError
from viewproof.refinement.going_on.frames import DamagedError
from viewproof.refinement.judging import judge_run
from viewproof.refinement.ordering import SequenceGuard, Watched, order_key
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

_CLOCK = INDEX["clock"]
ROWS_A_FRAME = 512


class Kept(msgspec.Struct):
    """What is kept of a run beside its events: the verdict and what else was said of it, the state after its final
    events, and what was watched of them.
    """

    verdict: RunVerdict
    errors: tuple[str, ...] = ()
    begun: Begun | None = None
    watched: Watched = msgspec.field(default_factory=Watched)
    facts: RunFacts | None = None


_decode = msgspec.msgpack.Decoder(Kept).decode


@dataclass
class Run:
    """A run as it was kept (or new), and the events that were not final then."""

    run_id: str
    directory: Directory
    options: AuditOptions
    entry: Entry | None
    kept: Kept | None = None
    waiting: list[Row] = field(default_factory=list)

    @classmethod
    def load(cls, run_id: str, directory: Directory, options: AuditOptions) -> Run:
        """The run as it was kept. Raises `StateError` for a damaged state."""
        entry = directory.index.runs.get(run_id)
        found = cls(run_id, directory, options, entry)
        if entry is not None:
            try:
                pieces = frames.read(directory.state(entry), entry.size)
                found.kept = _decode(next(pieces))
                found.waiting = list(found._rows(pieces))
            except (StopIteration, msgspec.MsgspecError, DamagedError) as error:
                raise StateError(f"{directory.state(entry)}: the state is damaged: {error}") from None
        return found

    def _rows(self, pieces: Iterable[bytes]) -> Iterator[Row]:
        decode = row_decoder(adapter(self.options.adapter).system.table).decode
        for piece in pieces:
            yield from map(decode, msgspec.msgpack.decode(piece, type=list[msgspec.Raw]))

    def __iter__(self) -> Iterator[Row]:
        """All events that were kept, in replay order."""
        if self.entry is not None:
            try:
                yield from self._rows(frames.read(self.directory.log(self.entry), self.entry.log))
            except (msgspec.MsgspecError, DamagedError) as error:
                raise StateError(f"{self.directory.log(self.entry)}: the state is damaged: {error}") from None
        yield from self.waiting

    def go_on(self, new: list[Row], log: ProblemLog) -> tuple[RunVerdict | None, tuple[str, ...]]:
        """Judge the run with its new events, and keep it; if something is wrong with them it goes to `log` instead."""
        new.sort(key=order_key)
        kept = self.kept or Kept(RunVerdict(self.run_id, "inconclusive", 0), facts=RunFacts(self.run_id))
        final = max((clock for _, clock in kept.watched.last.values()), default=-1)
        afresh = new[0][_CLOCK] <= final
        if afresh:  # events that come late: the whole run is looked at again
            rows: list[Row] = list(merge(self, new, key=order_key))
            kept = Kept(kept.verdict, facts=RunFacts(self.run_id))
            self.entry = None if self.entry is None else msgspec.structs.replace(self.entry, log=0)
        else:
            rows = list(merge(self.waiting, new, key=order_key))
        whole = _Whole(self, rows) if kept.begun else rows
        assert kept.facts is not None
        before = (kept.watched, msgspec.msgpack.decode(msgspec.msgpack.encode(kept.facts), type=RunFacts))
        check = partial(check_run, begun=kept.begun, whole=whole) if kept.begun else check_run
        verdict, contradictions, errors = judge_run(self.run_id, rows, self.options, check, log, before=before)
        if log or verdict is None:
            return verdict, tuple(errors)
        verdict, disagreement = merge_facts(verdict, contradictions, self.options)
        said = (*errors, *((disagreement,) if disagreement else ()))
        self._keep(rows, kept, verdict, said)
        return verdict, said

    def _keep(self, rows: list[Row], kept: Kept, verdict: RunVerdict, said: tuple[str, ...]) -> None:
        begun = advance(self.run_id, rows, self.options, kept.begun)
        count = (begun.events if begun else 0) - (kept.begun.events if kept.begun else 0)
        guard = SequenceGuard(ProblemLog())
        guard.go_on(kept.watched)
        assert kept.facts is not None
        through = guard.watch(islice(rows, count))
        for _ in kept.facts.watch(through) if has_facts(self.options.adapter) else through:
            pass
        now = Kept(verdict, said, begun, guard.kept(), kept.facts)
        directory, generation = self.directory, self.directory.generation
        old = self.entry
        anew = old is None or (not old.log and old.log_generation != generation)
        entry = Entry(
            directory.new_number(self.run_id), 0 if old is None else old.log, 0, generation,
            generation if old is None or anew else old.log_generation,
        )  # fmt: skip
        length = (
            frames.write(directory.log(entry), _batches(rows[:count]), at=entry.log) if count or anew else entry.log
        )
        size = frames.write(directory.state(entry), chain([now], _batches(rows[count:])))
        directory.changed[self.run_id] = msgspec.structs.replace(entry, log=length, size=size)


class _Whole:
    """All events of a run: those that are final, and the others."""

    def __init__(self, run: Run, rows: list[Row]) -> None:
        self.run = run
        self.rows = rows

    def __iter__(self) -> Iterator[Row]:
        final = Run(self.run.run_id, self.run.directory, self.run.options, self.run.entry)
        return chain(final, self.rows)


def _batches(rows: list[Row]) -> Iterator[list[Row]]:
    return (rows[at : at + ROWS_A_FRAME] for at in range(0, len(rows), ROWS_A_FRAME))
