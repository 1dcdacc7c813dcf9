"""A run of a stream: events come in pieces and in any order, and the verdict comes once.

Events wait until all before them of their node are there (by `seq`), so nothing that came is ever too late; they are
final once each replica has shown an event above them. A violation among final events ends the run at once. Else it ends
when each replica's last event is there, or when nobody waits for it any longer: then what is missing is named.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain

import msgspec
import zstandard

from viewproof.refinement.adapter import adapter
from viewproof.refinement.checker import Begun, advance, check_run
from viewproof.refinement.global_facts import RunFacts, merge_facts
from viewproof.refinement.judging import judge_run
from viewproof.refinement.ordering import GAPS_SHOWN, SequenceGuard, Watched, order_key
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, InputProblem, RunVerdict

_NODE, _SEQ, _CLOCK, _REPLICAS = (INDEX[name] for name in ("node", "seq", "clock", "replicas"))

Event = tuple[bytes, str | None]
"""A packed row, and the columns of its event that the format does not have, as JSON."""


class Kept(msgspec.Struct):
    """What is kept of an open run between batches; `done` is all that is kept of one that ended.

    `frames` are the final events, compressed, `waiting` the others; `ends` is the seq of a node's last event, where it
    is known. `until`, `moved` and `looked` are of the last look: final below which clock, whether the state went
    on, and how many events it left waiting.
    """

    done: bool = False
    begun: Begun | None = None
    watched: Watched = msgspec.field(default_factory=Watched)
    facts: RunFacts | None = None
    frames: list[bytes] = []
    waiting: list[Event] = []
    ends: dict[int, int] = {}
    problems: list[str] = []
    until: int = -1
    moved: bool = True
    looked: int = 0


_decode = msgspec.msgpack.Decoder(Kept).decode
_events = msgspec.msgpack.Decoder(list[Event]).decode
_encode = msgspec.msgpack.Encoder().encode


class Ended(msgspec.Struct, frozen=True):
    """How a run ended: its verdict (None: it is malformed, or was not judged), and what else is to be said of it.

    `carried` are the own columns of its violations' events, by node and seq.
    """

    verdict: RunVerdict | None
    problems: tuple[str, ...]
    carried: dict[tuple[int, int], str]


class OpenRun:
    """One run of a stream. `kept` is what `keep` gave before, empty for a new one."""

    def __init__(self, run_id: str, kept: bytes, options: AuditOptions) -> None:
        self.run_id, self.options = run_id, options
        self.kept = _decode(zstandard.decompress(kept)) if kept else Kept(facts=RunFacts(run_id))
        self._row = row_decoder(adapter(options.adapter).system.table).decode
        self._own: dict[tuple[int, int], str] = {}
        self._rows = sorted(self._decoded(self.kept.waiting), key=order_key)

    @property
    def done(self) -> bool:
        """Has the run ended? What still comes of it is passed over."""
        return self.kept.done

    def keep(self) -> bytes:
        """What to keep of the run."""
        if not self.kept.done:
            self.kept.waiting = self._packed(self._rows)
        return zstandard.compress(_encode(Kept(done=True) if self.kept.done else self.kept), 1)

    def take(self, events: Iterable[Event], last: dict[int, int], malformed: Iterable[str] = ()) -> Ended | None:
        """Take more events; `last` says of nodes which seq is their last. How the run ended, if it did."""
        self._rows = sorted(chain(self._rows, self._decoded(events)), key=order_key)
        self.kept.ends |= last
        self.kept.problems += malformed
        if self.kept.problems or (repeated := self._repeated()):
            return self._end(None, self.kept.problems or repeated)
        reach = self._reach()
        replicas = self._replicas()
        nodes = range(replicas or 0)
        if replicas and all(reach.get(node, (0, 0))[0] == self.kept.ends.get(node, -1) for node in nodes):
            return self.end()
        until = min((reach.get(node, (0, -1))[1] for node in nodes), default=-1)
        ready = [row for row in self._rows if row[_SEQ] <= reach[row[_NODE]][0]]
        worth = self.kept.moved and until > self.kept.until
        if until > 0 and (worth or len(ready) >= 2 * max(1, self.kept.looked)):
            return self._look(ready, until)
        return None

    def end(self) -> Ended:
        """Judge the run with what there is of it: nothing more is waited for."""
        log = ProblemLog()
        verdict, errors = self._judge(self._rows, log)
        return self._end(verdict, [*map(str, log.problems), *errors])

    def waits_for(self) -> list[str]:
        """What an open run waits for, in words."""
        gaps, at = [], {node: seq for node, (seq, _) in self.kept.watched.last.items()}
        for row in sorted(self._rows, key=lambda row: (row[_NODE], row[_SEQ])):
            node, seq = row[_NODE], row[_SEQ]
            if seq > at.get(node, 0) + 1:
                first, last = at.get(node, 0) + 1, seq - 1
                gaps.append(f"seq {first} of node {node}" if first == last else f"seq {first} to {last} of node {node}")
            at[node] = seq
        replicas = self._replicas()
        gaps += [f"the first event of node {node}" for node in range(replicas or 0) if node not in at]
        gaps += [] if replicas else ["the first event of the run, which says how many replicas there are"]
        return gaps[:GAPS_SHOWN]

    @property
    def events(self) -> tuple[int, int]:
        """How many events were accepted for good, and how many there are."""
        final = self.kept.begun.events if self.kept.begun else 0
        return final, final + len(self._rows)

    def _decoded(self, events: Iterable[Event]) -> Iterator[Row]:
        for packed, own in events:
            row = self._row(packed)
            if own is not None:
                self._own[row[_NODE], row[_SEQ]] = own
            yield row

    def _packed(self, rows: Iterable[Row]) -> list[Event]:
        return [(_encode(row), self._own.get((row[_NODE], row[_SEQ]))) for row in rows]

    def _final(self) -> Iterator[Row]:
        for frame in self.kept.frames:
            yield from self._decoded(_events(zstandard.decompress(frame)))

    def _reach(self) -> dict[int, tuple[int, int]]:
        """Of each node the seq and clock of the last event before which none is missing."""
        reach = dict(self.kept.watched.last)
        for row in sorted(self._rows, key=lambda row: (row[_NODE], row[_SEQ])):
            node, seq = row[_NODE], row[_SEQ]
            if seq == reach.setdefault(node, (0, -1))[0] + 1:
                reach[node] = (seq, row[_CLOCK])
        return reach

    def _replicas(self) -> int | None:
        """How many replicas the run has, if an event that is there says so, or an option."""
        if given := dict(self.options.configuration).get("replicas"):
            return given
        if self.kept.begun is not None:
            found = self.kept.begun.first[_REPLICAS]
        else:
            found = next((row[_REPLICAS] for row in self._rows if row[_REPLICAS] is not None), None)
        return None if found is None else int(found)

    def _repeated(self) -> list[str]:
        known = {node: seq for node, (seq, _) in self.kept.watched.last.items()}
        seen: set[tuple[int, int]] = set()
        found = []
        for row in self._rows:
            node, seq = row[_NODE], row[_SEQ]
            if (node, seq) in seen or seq <= known.get(node, 0):
                once = f"each number once of node {node} in run {self.run_id}"
                found.append(str(InputProblem(f"node {node}", seq, "seq", once, f"{seq} a second time")))
            seen.add((node, seq))
        return found

    def _judge(self, rows: list[Row], log: ProblemLog) -> tuple[RunVerdict | None, list[str]]:
        kept = self.kept
        before = (kept.watched, msgspec.msgpack.decode(_encode(kept.facts), type=RunFacts))
        check = partial(check_run, begun=kept.begun, whole=_Whole(self, rows)) if kept.begun else check_run
        verdict, contradictions, errors = judge_run(self.run_id, rows, self.options, check, log, before=before)
        if verdict is None:
            return None, errors
        merged, disagreement = merge_facts(verdict, contradictions, self.options)
        return merged, [*errors, *((disagreement,) if disagreement else ())]

    def _look(self, ready: list[Row], until: int) -> Ended | None:
        """Judge the events that are there without a gap; those below `until` are final."""
        log = ProblemLog()
        verdict, _ = self._judge(ready, log)
        if log:
            return self.end()
        clocks = {(row[_NODE], row[_SEQ]): row[_CLOCK] for row in ready}
        found = [v for v in verdict.violations if clocks.get((v.node, v.seq), until) < until] if verdict else []
        if verdict is not None and found:
            return self._end(replace(verdict, violations=tuple(found)), [])
        self._go_on(ready, until)
        return None

    def _go_on(self, ready: list[Row], until: int) -> None:
        """Keep the state after those events that are final."""
        kept = self.kept
        begun = advance(self.run_id, ready, self.options, kept.begun)
        count = (begun.events if begun else 0) - (kept.begun.events if kept.begun else 0)
        final = ready[:count]
        guard = SequenceGuard(ProblemLog())
        guard.go_on(kept.watched)
        assert kept.facts is not None
        for _ in kept.facts.watch(guard.watch(final)):
            pass
        kept.watched, kept.begun = guard.kept(), begun
        if final:
            kept.frames.append(zstandard.compress(_encode(self._packed(final)), 1))
        gone = {(row[_NODE], row[_SEQ]) for row in final}
        self._rows = [row for row in self._rows if (row[_NODE], row[_SEQ]) not in gone]
        kept.until, kept.moved, kept.looked = until, bool(count), len(ready) - count

    def _end(self, verdict: RunVerdict | None, problems: Iterable[str]) -> Ended:
        self.kept.done = True
        wanted = {(v.node, v.seq) for v in verdict.violations} if verdict else set()
        return Ended(verdict, tuple(problems), {at: own for at, own in self._own.items() if at in wanted})


class _Whole:
    """All events of a run that are there without a gap: those that are final, and the others."""

    def __init__(self, run: OpenRun, rows: list[Row]) -> None:
        self.run, self.rows = run, rows

    def __iter__(self) -> Iterator[Row]:
        return chain(self.run._final(), self.rows)
