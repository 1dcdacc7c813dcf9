"""Judge the runs of log files: detect family and cluster, replay line by line, say why a line is refused."""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from viewproof.refinement.parts import Progress, judge_here
from viewproof.refinement.places import place_in
from viewproof.refinement.tigerbeetle.bookkeeping import Bookkeeping, Reject
from viewproof.refinement.tigerbeetle.families import FAMILIES, INIT, Cluster, program
from viewproof.refinement.tigerbeetle.parse import Parser
from viewproof.refinement.tigerbeetle.reading import Lines, Segment, segments
from viewproof.refinement.tigerbeetle.reasons import known_deviations, refused, rule_in_words, state_around
from viewproof.refinement.verdict import (
    AllowedUse,
    AuditOptions,
    AuditReport,
    InputProblem,
    RunVerdict,
    Step,
    UnitResult,
    Violation,
)
from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.config import Config

SEARCH_LINES: Final = 200_000
"""So many lines are searched for a replica that starts."""
UNKNOWN_SHOWN: Final = 20
RECENT: Final = 400
"""Judged lines that are kept to tell what led to a violation."""
STEPS_SHOWN: Final = 6
"""Lines told of each replica."""
LINE_SHOWN: Final = 300
"""Characters shown of a line."""

_STANDBYS = re.compile(r"\s+standbys=(\d+)$")
_PANIC = re.compile(r"(thread \d+ )?panic: (.*)")
_NO_PROGRESS: Final = ("unable to complete transitions_max before ticks_max", "no state convergence")
"""Panics of the simulator that say that it gave up waiting, not that something is wrong."""
_PASSED: Final = "          PASSED ("
_SEED: Final = "          SEED="
_SIMULATOR: Final = "[info] (simulator): "
_FIRST_2022: Final = "[debug] (journal): 0: slot_count="
_SECOND_2022 = re.compile(r"\[debug\] \(journal\): 1: slot_count=|\[debug\] \(vsr\): \d+: ping_timeout started$")
"""Where a replica crashes, its memory is set up anew, too: the next line about it says so."""
_BOUNDS: Final = (_PASSED, _SEED, _FIRST_2022)
"""The last line of a run, and the first ones of the next, where the one before was cut off."""
NODES_MAX: Final = 12
"""Replicas and standbys of the largest cluster."""
_NODE = re.compile(r"\[\w+\] \(\w+\): (?:crash replica=|restart replica=| )?(\d+)")
_NO_TEXT = re.compile("[\x00-\x08\x0e-\x1f\ufffd]")


class Judge:
    """The audit of one run; `feed` takes its lines in order."""

    def __init__(self, segment: Segment, cluster: Cluster, options: AuditOptions) -> None:
        family = cluster.family
        allow = tuple(sorted(set(options.allow) & set(family.deviations)))
        self.segment = segment
        self.cluster = cluster
        self.program = program(
            family.profile,
            cluster.replicas,
            cluster.quorum_view_change,
            cluster.quorum_replication,
            cluster.nodes,
            allow,
        )
        self.parser = Parser(family.table)
        self.run = Bookkeeping(cluster.nodes)
        self.run.program = self.program
        self.run.store = self.store = self.program.replay.new_store()
        family.prepare_store(self.store, self.program.replay.spec.cfg, cluster.nodes)
        self.line = segment.first_line - 1
        self.accepted = 0
        self.uses: list[AllowedUse] = []
        self.simulator_passed = False
        self.damaged: list[int] = []
        self.recent: deque[tuple[int, str]] = deque(maxlen=RECENT)
        self.violation: Violation | None = None

    def feed(self, lines: list[str]) -> bool:
        """Judge lines; False once one is refused."""
        match, handlers, run, store = self.parser.match, self.program.handlers, self.run, self.store
        recent = self.recent
        number, accepted = self.line, self.accepted
        pattern = -1
        line = ""
        try:
            for line in lines:
                number += 1
                if line[:1] != "[":
                    self.line = number
                    self._outside(line)
                    continue
                found = match(line, number)
                if found is None:
                    continue
                pattern, groups = found
                handler = handlers[pattern]
                if handler is not None:
                    recent.append((number, line))
                    handler(run, store, groups)
                    accepted += 1
                    if run.uses:
                        self._note_uses(number)
        except Reject as reject:
            self.line, self.accepted = number, accepted
            self.violation = self._explain(reject, pattern, line)
            return False
        self.line, self.accepted = number, accepted
        return True

    def _outside(self, line: str) -> None:
        """A line that no subsystem printed: the end of the run, or of the process."""
        if line.startswith(_PASSED):
            self.simulator_passed = True
        elif (panic := _PANIC.match(line)) and not any(text in line for text in _NO_PROGRESS):
            message = f"the build's own assertion failed: {panic[2]}"
            raise Reject("panic", message, "a run that goes on", panic[2])
        elif _NO_TEXT.search(line):
            self.damaged.append(self.line)

    def _note_uses(self, number: int) -> None:
        for name in self.run.uses:
            fault = name.partition("__")[2].replace("_", ".", 1)
            self.uses.append(AllowedUse(fault, self.segment.file, number, -1, number))
        self.run.uses.clear()

    def _explain(self, reject: Reject, pattern: int, line: str) -> Violation:
        replay, store = self.program.replay, self.store
        event = self.parser.patterns[pattern].event if reject.rule != "panic" else "panic"
        node = self._node(line)
        why: list[str] = []
        place = self._place(event)
        message, expected, observed = reject.message, str(reject.expected), str(reject.observed)
        args: Mapping[str, int] = {}
        if reject.refused is not None:
            action, conjunct, args = reject.refused
            found_false = refused(replay, store, action, conjunct, args)
            expected, observed, place = found_false.guard, ", ".join(found_false.values), found_false.place
            why.append(found_false.text())
        around = state_around(replay, store, node, args) if node >= 0 else {}
        if reject.refused is not None:
            why += known_deviations(replay, store, reject.refused[0], args)
        why.append(f"the line: {line[:LINE_SHOWN]}")
        return Violation(
            run_id=self.segment.run_id,
            seq=self.line,
            file=self.segment.file,
            line=self.line,
            node=node,
            action=event,
            rule_id=reject.rule,
            severity="error",
            message=f"{event}: {message}",
            expected=expected or reject.message,
            observed=observed or line.partition("): ")[2][:LINE_SHOWN],
            rule_fingerprint=hashlib.blake2b(f"{event}|{reject.rule}".encode(), digest_size=8).hexdigest(),
            prefix_length=self.accepted,
            state_before=around,
            why_not=tuple(why),
            rule=rule_in_words(replay.spec, reject.rule),
            story=tuple(self._story()),
            place=place,
        )

    def _node(self, line: str) -> int:
        found = _NODE.match(line)
        return int(found[1]) if found and int(found[1]) < self.cluster.nodes else -1

    def _place(self, event: str) -> str:
        """The first action of the specification that lines of the event may stand for."""
        actions = [name for rule in self.cluster.family.rules if rule.event == event for name in rule.actions]
        return place_in(self.program.replay.spec, *actions)

    def _story(self) -> Iterator[Step]:
        """The last lines of each replica that were judged."""
        last: dict[int, deque[Step]] = {}
        for number, line in self.recent:
            node = self._node(line)
            text = line.partition("] ")[2][:LINE_SHOWN]
            last.setdefault(node, deque(maxlen=STEPS_SHOWN)).append(Step(node, self.segment.file, number, text))
        for node in sorted(last):
            yield from last[node]

    def verdict(self, notes: tuple[str, ...] = ()) -> RunVerdict:
        """The verdict on the lines so far."""
        counts = self.parser.counts
        patterns = self.parser.patterns
        by_event: Counter[str] = Counter()
        by_role: Counter[str] = Counter()
        for count, pattern in zip(counts.by_pattern, patterns, strict=True):
            by_role[pattern.role] += count
            if pattern.event and count:
                by_event[pattern.event] += count
        unknown = counts.unknown.total()
        coverage = {a.name: self.run.coverage[a.name] for a in self.program.replay.spec.actions if "__" not in a.name}
        summary = (
            f"{self.cluster.family.profile}, {self.cluster.replicas} replicas"
            + (
                f" and {self.cluster.nodes - self.cluster.replicas} standbys"
                * (self.cluster.nodes > self.cluster.replicas)
            )
            + f": {self.line - self.segment.first_line + 1:,} lines, of the protocol's "
            f"{by_role.total() + unknown:,} lines {by_role['step']:,} are steps, "
            f"{by_role['message']:,} are messages, "
            f"{by_role['check']:,} are compared, {by_role['change'] + by_role['note']:,} are counted only, "
            f"{unknown:,} are unexplained"
        )
        changing = by_role["step"] + by_role["change"] + unknown
        if changing:
            share = f"{by_role['step']:,} of {changing:,} ({100 * by_role['step'] / changing:.1f} %)"
            summary += f"; of the lines that change a replica's state {share} are checked"
        shapes = [
            f"unexplained, {count} times, first at line {counts.first_unknown[shape]}: {shape}"
            for shape, count in counts.unknown.most_common(UNKNOWN_SHOWN)
        ]
        if len(counts.unknown) > UNKNOWN_SHOWN:
            shapes.append(f"… and {len(counts.unknown) - UNKNOWN_SHOWN} more shapes of unexplained lines")
        missing = [] if self.accepted else ["no line of the protocol was judged"]
        if self.damaged:
            missing.append(f"{len(self.damaged)} damaged lines, first at line {self.damaged[0]}: what they said")
        return RunVerdict(
            self.segment.run_id,
            "violates" if self.violation else "inconclusive" if missing else "conforms",
            self.accepted,
            coverage,
            (self.violation,) if self.violation else (),
            tuple(missing),
            tuple(self.uses),
            by_event,
            notes=(summary, *shapes, *notes),
        )


def judge_segment(segment: Segment, options: AuditOptions) -> UnitResult:
    """Judge the runs of a segment; a failure to do so is a tool error of this segment alone."""
    started = time.thread_time()
    try:
        result = _judge_segment(segment, options)
    except OSError as error:
        problem = InputProblem(segment.file, 0, "", "a readable file", error.strerror or str(error))
        return UnitResult(segment.run_id, problems=(problem,))
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        return UnitResult(segment.run_id, tool_errors=(f"{segment.run_id}: {type(error).__name__}: {error}",))
    return replace(result, spent={"read, check": time.thread_time() - started})


def _judge_segment(segment: Segment, options: AuditOptions) -> UnitResult:
    lines = Lines(segment)
    verdicts: list[RunVerdict] = []
    source = lines.chunks()
    pending: list[str] = []
    number = segment.first_line
    while True:
        later = len(verdicts) + 1 if verdicts else 0
        part = replace(
            segment, first_line=number, ordinal=segment.ordinal or later, part=later if segment.ordinal else 0
        )
        outcome, pending, number = _judge_run(part, source, pending, lines, options)
        if isinstance(outcome, InputProblem):
            if verdicts and not pending:
                break
            return UnitResult(segment.run_id, problems=(outcome,))
        verdicts.append(outcome)
        if not pending or not any(line.strip() for line in pending):
            break
    return UnitResult(segment.run_id, tuple(v.run_id for v in verdicts), tuple(verdicts))


def _judge_run(
    segment: Segment, source: Iterator[list[str]], pending: list[str], lines: Lines, options: AuditOptions
) -> tuple[RunVerdict | InputProblem, list[str], int]:
    """One run from the lines at hand and to come: its verdict, the lines beyond its end, and the number of the next."""
    head: list[str] = list(pending)
    cluster = find_cluster(head)
    while cluster is None and len(head) < SEARCH_LINES:
        more = next(source, None)
        if more is None:
            break
        head += more
        cluster = find_cluster(head)
    if cluster is None:
        return _no_log(segment, head), [], segment.first_line + len(head)
    if options.profile not in ("core", cluster.family.profile):
        expected = f"a log of profile {options.profile}"
        return InputProblem(segment.file, 0, "", expected, f"one of {cluster.family.profile}"), [], 0
    if cluster.nodes > NODES_MAX:
        expected = f"a cluster of at most {NODES_MAX} replicas and standbys"
        return InputProblem(segment.file, segment.first_line, "", expected, str(cluster.nodes)), [], 0
    try:
        Config(cluster.replicas, cluster.quorum_replication, cluster.quorum_view_change)
    except SpecError as error:
        return _bad_configuration(segment, head, error), [], 0
    judge = Judge(segment, cluster, options)
    chunk: list[str] | None = head
    going, position = True, segment.first_line
    before = ""
    begun = next((i for i, line in enumerate(head) if INIT.match(line)), 0)
    while chunk is not None:
        own, rest = _split_at_end(chunk, begun, before)
        begun, before = 0, chunk[-1]
        going = going and judge.feed(own)
        position += len(own)
        if rest is not None:
            return judge.verdict(_end_notes(judge, "")), rest, position
        chunk = next(source, None)
    return judge.verdict(_end_notes(judge, lines.cut)), [], position


def _split_at_end(chunk: list[str], begun: int, before: str) -> tuple[list[str], list[str] | None]:
    """The lines up to the end of a run, and those beyond it (None: it does not end here).

    From line `begun` on another run may start; `before` is the line before the first.
    """
    for position, line in enumerate(chunk):
        if line.startswith(_BOUNDS):
            if line.startswith(_PASSED):
                return chunk[: position + 1], chunk[position + 1 :]
            starts = (
                any(_SECOND_2022.match(later) for later in chunk[position + 3 : position + 4])
                if line.startswith(_FIRST_2022)
                else (chunk[position - 1] if position else before) == _SIMULATOR
            )
            if starts and position >= begun:
                return chunk[:position], chunk[position:]
    return chunk, None


def _end_notes(judge: Judge, cut: str) -> tuple[str, ...]:
    if judge.violation is not None or judge.simulator_passed:
        return ()
    return (f"the log is cut off: {cut or 'it ends before the simulator says that it is done'}; judged up to there",)


def find_cluster(lines: list[str]) -> Cluster | None:
    """Family and configuration, from the first replica that starts and the simulator's own settings."""
    standbys = 0
    for line in lines:
        if line[:1] != "[":
            if found := _STANDBYS.match(line):
                standbys = int(found[1])
            continue
        if "init: replica_count=" in line and (init := INIT.match(line)):
            name = "2026" if init["release"] else "2022"
            family = next((f for f in FAMILIES if f.name == name), None)
            if family is None:
                return None
            n = int(init["n"])
            return Cluster(family, n, int(init["q_v"]), int(init["q_r"]), n + standbys)
    return None


def _no_log(segment: Segment, head: list[str]) -> InputProblem:
    expected = (
        "the debug log of a TigerBeetle simulator (June 2022 or July 2026), with the line of a replica that starts"
    )
    first = next((line for line in head if line.strip()), "")
    got = f"no such line; it begins with: {first[:80]}" if first else "an empty file"
    return InputProblem(segment.file, segment.first_line, "", expected, got)


def _bad_configuration(segment: Segment, head: list[str], error: SpecError) -> RunVerdict:
    line = next((i for i, text in enumerate(head) if INIT.match(text)), 0)
    violation = Violation(
        segment.run_id,
        line,
        segment.file,
        segment.first_line + line,
        -1,
        "init",
        "configuration",
        "error",
        error.message,
    )
    return RunVerdict(segment.run_id, "violates", 0, violations=(violation,))


def audit(
    files: list[str], options: AuditOptions, *, workers: int = 1, progress: Progress | None = None
) -> AuditReport:
    """Audit log files in this process, or in several; interrupted, report what is judged so far."""
    judge = partial(judge_segment, options=options)
    return judge_here(partial(find_segments, files), judge, options, what="runs", workers=workers, progress=progress)


def find_segments(files: list[str]) -> list[Segment]:
    """The runs of all files; of one that cannot be read, itself."""
    return [segment for file in files for segment in _segments(file)]


def _segments(file: str) -> list[Segment]:
    try:
        return segments(file)
    except OSError:
        return [Segment(file)]
