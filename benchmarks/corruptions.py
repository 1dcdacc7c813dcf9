"""How much of a log is really checked: single seeded changes of lines that are judged, each audited like a log.

Classes: a number that a record takes from its line, changed; a line removed, doubled, or swapped with the next one of
the same node; but no change that gives a log which the system may print, as its adapter says (`Joined`).
`python -m benchmarks.corruptions ADAPTER FILE… [--count N] [--seed N]` prints a table, N changes of each log. A change
counts as seen if the log is refused, or if a text of an inconclusive verdict names the place, which the log itself does
not have.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import Unit
from viewproof.refinement.joined.judging import judge_joined
from viewproof.refinement.joined.order import Record
from viewproof.refinement.joined.source import lines_of
from viewproof.refinement.verdict import AuditOptions, UnitResult

CHANGED, REMOVED, DOUBLED, SWAPPED = CLASSES = ("changed", "removed", "doubled", "swapped")
NEAR = 12
"""A text that names a line no further than this from the change names it: what it leads to is later."""

_VALUE = r'(?P<open>"?{name}"?\s*[:=]\s*"?)(?P<value>-?\d+)'


@dataclass(frozen=True, slots=True)
class Corruption:
    """One change: of which class, at which line (from 1), of what, and the lines of the log with it."""

    kind: str
    line: int
    what: str
    lines: list[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the audit said: refused at a line (0: not), or a text that names the place ("": none)."""

    corruption: Corruption
    refused_at: int
    named: str

    @property
    def seen(self) -> bool:
        """Was the change seen?"""
        return bool(self.refused_at or self.named)


class Bench:
    """A log in memory, with the lines that its adapter judges."""

    def __init__(self, adapter: str, file: str) -> None:
        self.adapter = find_adapter(adapter)
        self.options = AuditOptions(adapter=adapter)
        joined = self.adapter.joined
        if joined is None:
            raise ValueError(f"logs of {adapter} are not read together")
        self.lines = [line.text for line in lines_of(file)]
        self.suffix = "".join(Path(file).suffixes).removesuffix(".zst").removesuffix(".gz")
        reading = joined.read((file,), False)
        self.joined = joined
        runs = [[r for r in run.records if r.event in joined.changing] for run in reading.runs]
        self.records: list[Record] = sorted((r for run in runs for r in run), key=lambda r: r.line)
        self.run_of = {id(record): at for at, run in enumerate(runs) for record in run}
        self.plain = self._judge(self.lines)
        self.known = set(_texts(self.plain))
        self.fields = [(r, name, at) for r in self.records for name in joined.fields for at in self._find(r, name)]

    def _find(self, record: Record, name: str) -> list[tuple[int, int]]:
        found = re.finditer(_VALUE.format(name=re.escape(name)), self.lines[record.line - 1])
        return [m.span("value") for m in found][:1]

    def corruptions(self, count: int, seed: int) -> Iterator[Corruption]:
        """`count` corruptions, the classes in turn."""
        rng = random.Random(seed)
        for index in range(count):
            yield self._corruption(CLASSES[index % len(CLASSES)], rng)

    def _corruption(self, kind: str, rng: random.Random) -> Corruption:
        lines = list(self.lines)
        if kind == CHANGED:
            record, name, (start, end) = rng.choice(self.fields)
            text, old = lines[record.line - 1], int(lines[record.line - 1][start:end])
            new = old + 1 if old <= 0 or rng.random() < 0.5 else old - 1
            lines[record.line - 1] = f"{text[:start]}{new}{text[end:]}"
            return Corruption(kind, record.line, f"{record.event}: {name} {old} -> {new}", lines)
        at = rng.randrange(len(self.records))
        record = self.records[at]
        if kind == SWAPPED:
            later = next((r for r in self.records[at + 1 :] if self._follows(record, r)), None)
            same = (
                later is None
                or _with_time(self.lines[later.line - 1], self.lines[record.line - 1]) == self.lines[record.line - 1]
            )
            if later is None or same or self.joined.exchangeable(record, later):
                return self._corruption(kind, rng)
            one, two = record.line - 1, later.line - 1
            lines[one], lines[two] = _with_time(lines[two], lines[one]), _with_time(lines[one], lines[two])
            return Corruption(kind, record.line, f"{record.event} with {later.event}", lines)
        if kind == REMOVED and self.joined.omissible(record, self.records[at + 1 :]):
            return self._corruption(kind, rng)
        if kind == REMOVED:
            del lines[record.line - 1]
        else:
            lines.insert(record.line - 1, lines[record.line - 1])
        return Corruption(kind, record.line, record.event, lines)

    def _follows(self, record: Record, other: Record) -> bool:
        """Is it a later line of the same replica, in the same run?"""
        same = self.run_of[id(record)] == self.run_of[id(other)]
        return same and other.node == record.node and other.line > record.line

    def _judge(self, lines: list[str]) -> UnitResult:
        with tempfile.TemporaryDirectory(prefix="viewproof-") as folder:
            file = Path(folder) / f"log{self.suffix}"
            file.write_text("\n".join(lines) + "\n")
            return judge_joined(Unit(str(file), (str(file),)), self.adapter, self.options, check_run, again=False)

    def outcome(self, corruption: Corruption) -> Outcome:
        """The audit of the log with that change. A failure of the audit itself is an error."""
        result = self._judge(corruption.lines)
        if result.tool_errors:
            raise RuntimeError(f"line {corruption.line}, {corruption.what}: {result.tool_errors[0]}")
        refused = min((v.line for verdict in result.verdicts for v in verdict.violations), default=0)
        if result.problems:
            return Outcome(corruption, 0, str(result.problems[0]))
        new = [text for text in _texts(result) if text not in self.known]
        near = [text for text in new if any(abs(at - corruption.line) <= NEAR for at in _places(text))]
        return Outcome(corruption, refused, next(iter(near), ""))


_TIME = re.compile(r'"time":\s*"[^"]*"|^(\[[^\]]*\] )?\S+')


def _with_time(line: str, other: str) -> str:
    """The line at the time of another."""
    time = _TIME.search(other)
    return line if time is None else _TIME.sub(lambda _: time[0], line, count=1)


def _texts(result: UnitResult) -> Iterator[str]:
    for verdict in result.verdicts:
        yield from verdict.missing


def _places(text: str) -> list[int]:
    return [int(n) for n in re.findall(r":(\d+):", text)]


def row(name: str, outcomes: list[Outcome]) -> str:
    """A line of the table: tried, refused, named, and of each class those that were not seen."""
    refused = sum(bool(o.refused_at) for o in outcomes)
    seen = sum(o.seen for o in outcomes)
    missed = Counter(o.corruption.kind for o in outcomes if not o.seen)
    share = f"{100 * seen / len(outcomes):.1f} %"
    return f"{name:<40} {len(outcomes):>6} {refused:>8} {seen - refused:>6} {share:>8}  " + " ".join(
        f"{missed[kind]} {kind}" for kind in CLASSES if missed[kind]
    )


def _say(*lines: str) -> None:
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in lines))
    sys.stdout.flush()


def main(given: list[str] | None = None) -> int:
    """Print what was seen of each log and of all, and each change that was not."""
    parser = argparse.ArgumentParser(prog="benchmarks.corruptions")
    parser.add_argument("adapter")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=11)
    asked = parser.parse_args(given)
    every: list[Outcome] = []
    missed: list[str] = []
    _say(f"{'log':<40} {'tried':>6} {'refused':>8} {'named':>6} {'seen':>8}  not seen")
    for file in asked.files:
        bench, name = Bench(asked.adapter, file), "/".join(Path(file).parts[-2:])
        outcomes = [bench.outcome(one) for one in bench.corruptions(asked.count, asked.seed)]
        _say(row(name, outcomes))
        every += outcomes
        left = (o.corruption for o in outcomes if not o.seen)
        missed += [json.dumps({"log": name, "line": one.line, one.kind: one.what}) for one in left]
    _say(row("all", every), *missed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
