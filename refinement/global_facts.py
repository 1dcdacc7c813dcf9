"""Global facts of a run that need no order: checked relationally, beside the replay and independent of it.

- **I7** one prepare per (view, op): every event that prepares or accepts (view, op) names one checksum.
- **I1** agreement: whoever executes an op executes the same checksum.
- **I14** same digest: equal `commit_min` means an equal digest of state machine and client table.
- **I15** offsets: an offset of a partition is given to the messages of one op, and an op's messages have one place.

Each is of the form "a key has one value". `RunFacts` checks that row by row; `refinement.spark` does the same with
aggregations over a DataFrame; both report the first event (in replay order) that contradicts an earlier one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from viewproof.refinement.invariants import INVARIANTS
from viewproof.refinement.ordering import order_key
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict, Violation

Key = tuple[str, int, int]
"""(rule id, first key, second key); the second is 0 for I1 and I14; for I15 partition and offset, or op and -1."""

Stated = tuple[str, str, int]
"""A value and where it was stated first: (value, file, line)."""

SPECIFIED_BY = {"I15": "ask_append"}
"""Rule → action without which a run's specification does not have it: only the facts show then that it is broken."""

PREPARING = ("on_request", "on_prepare")

_NODE, _SEQ, _EVENT = INDEX["node"], INDEX["seq"], INDEX["event"]
_VIEW, _OP, _CHECKSUM = INDEX["m_view"], INDEX["m_op"], INDEX["m_checksum"]
_COMMIT_MIN, _DIGEST = INDEX["commit_min"], INDEX["digest"]
_NAMESPACE, _OFFSET, _COUNT = INDEX["m_namespace"], INDEX["m_offset"], INDEX["m_count"]


def offsets_of(op: int, row: Row) -> Iterator[tuple[tuple[int, int], str]]:
    """What an `execute` of an append states of offsets; nothing of another operation."""
    namespace, start, count = row[_NAMESPACE], row[_OFFSET], row[_COUNT]
    if namespace is None or start is None or count is None:
        return
    yield (op, -1), f"{start}..{start + count - 1} of namespace {namespace % (1 << 64)}"
    for offset in range(start, start + count):
        yield (namespace, offset), str(op)


def facts_of(row: Row) -> Iterator[tuple[Key, str]]:
    """The facts that one event states: (key, value) pairs. What it did not observe it does not state."""
    event = row[_EVENT]
    op, checksum = row[_OP], row[_CHECKSUM]
    if op is not None and checksum is not None:
        if event in PREPARING and row[_VIEW] is not None:
            yield ("I7", row[_VIEW], op), checksum
        elif event == "execute":
            yield ("I1", op, 0), checksum
            for (first, second), value in offsets_of(op, row):
                yield ("I15", first, second), value
    if row[_COMMIT_MIN] is not None and row[_DIGEST] is not None:
        yield ("I14", row[_COMMIT_MIN], 0), row[_DIGEST]


@dataclass(frozen=True, slots=True)
class Contradiction:
    """An event that states another value for a key than an earlier event did."""

    run_id: str
    key: Key
    value: str
    before: str
    before_at: str
    order: tuple[int, int, int]
    file: str
    line: int
    event: str

    def violation(self) -> Violation:
        """As a violation of the report."""
        rule, first, second = self.key
        subjects = {
            "I7": f"prepare (view {first}, op {second})",
            "I1": f"op {first}",
            "I14": f"commit_min {first}",
            "I15": f"op {first}" if second < 0 else f"offset {second} of namespace {first % (1 << 64)}",
        }
        noun = {"I14": "digest", "I15": "op" if second >= 0 else "place"}.get(rule, "checksum")
        return Violation(
            run_id=self.run_id,
            seq=self.order[2],
            file=self.file,
            line=self.line,
            node=self.order[1],
            action=self.event,
            rule_id=rule,
            severity="error",
            message=f"{subjects[rule]} has two {noun}s; the other is at {self.before_at}",
            expected=self.before,
            observed=self.value,
            rule_fingerprint=f"facts:{rule}",
            rule=INVARIANTS[rule],
        )


@dataclass(slots=True)
class RunFacts:
    """Gathers a run's facts from rows in any order that keeps replay order.

    Memory grows with ops and messages, not with events.
    """

    run_id: str
    _prepares: dict[tuple[int, int], Stated] = field(default_factory=dict)
    _executed: dict[int, Stated] = field(default_factory=dict)
    _digests: dict[int, Stated] = field(default_factory=dict)
    _offsets: dict[tuple[int, int], Stated] = field(default_factory=dict)
    _broken: dict[Key, Contradiction] = field(default_factory=dict)

    def watch(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Pass rows through, noting what each states: `facts_of`, spelt out here as every event comes by."""
        prepares, executed, digests = self._prepares, self._executed, self._digests
        for row in rows:
            event, checksum = row[_EVENT], row[_CHECKSUM]
            if checksum is not None and (op := row[_OP]) is not None:
                if event == "execute":
                    known = executed.setdefault(op, (checksum, row[FILE_INDEX], row[LINE_INDEX]))
                    if known[0] != checksum:
                        self._contradict(("I1", op, 0), checksum, known, row)
                    if row[_NAMESPACE] is not None:
                        self._watch_offsets(op, row)
                elif event in PREPARING and (view := row[_VIEW]) is not None:
                    known = prepares.setdefault((view, op), (checksum, row[FILE_INDEX], row[LINE_INDEX]))
                    if known[0] != checksum:
                        self._contradict(("I7", view, op), checksum, known, row)
            digest = row[_DIGEST]
            if digest is not None and (commit_min := row[_COMMIT_MIN]) is not None:
                seen = digests.get(commit_min)
                if seen is None:
                    digests[commit_min] = (digest, row[FILE_INDEX], row[LINE_INDEX])
                elif seen[0] != digest:
                    self._contradict(("I14", commit_min, 0), digest, seen, row)
            yield row

    def _watch_offsets(self, op: int, row: Row) -> None:
        for (first, second), value in offsets_of(op, row):
            known = self._offsets.setdefault((first, second), (value, row[FILE_INDEX], row[LINE_INDEX]))
            if known[0] != value:
                self._contradict(("I15", first, second), value, known, row)

    def _contradict(self, key: Key, value: str, known: Stated, row: Row) -> None:
        if key in self._broken:
            return
        self._broken[key] = Contradiction(
            run_id=self.run_id,
            key=key,
            value=value,
            before=known[0],
            before_at=f"{known[1]}:{known[2]}",
            order=order_key(row),
            file=row[FILE_INDEX],
            line=row[LINE_INDEX],
            event=row[_EVENT],
        )

    def contradictions(self) -> list[Contradiction]:
        """Every key with two values, by the place of the second."""
        return sorted(self._broken.values(), key=lambda c: (c.order, c.key))


def merge_facts(
    verdict: RunVerdict, contradictions: Iterable[Contradiction], options: AuditOptions
) -> tuple[RunVerdict, str | None]:
    """Add the broken facts to a replay's verdict; a rule that the replay reported already is not repeated.

    Of the offsets of one partition the first that is broken is reported.

    Returns the verdict, and an error text where the two disagree: the replay found that the run conforms to the
    spec, whose invariants these facts are, and the facts are broken. With deviations allowed that can happen.
    """
    first: dict[Key, Contradiction] = {}
    for contradiction in contradictions:
        rule, subject, more = contradiction.key
        first.setdefault((rule, subject, 0) if rule == "I15" and more >= 0 else contradiction.key, contradiction)
    found = [contradiction.violation() for contradiction in first.values()]
    if not found:
        return verdict, None
    error = None
    specified = [v for v in found if SPECIFIED_BY.get(v.rule_id, "") in ("", *verdict.coverage)]
    if verdict.verdict == "conforms" and specified and not options.allow:
        rules = ", ".join(sorted({violation.rule_id for violation in specified}))
        error = (
            f"run {verdict.run_id}: the replay says conforms but the facts {rules} are broken "
            f"(first at {specified[0].file}:{specified[0].line}); the audit itself is wrong, please report it"
        )
    reported = {violation.rule_id for violation in verdict.violations}
    merged = verdict.with_violations(violation for violation in found if violation.rule_id not in reported)
    return replace(merged, missing=verdict.missing), error
