"""Words for steps of several lines (`owes`, `owed`, `let`, `of_row`), on counting nodes; and logs that are streamed.

begin NODE N        node N is about to count to N, and owes the next line
end NODE N          it counted to N
sum NODE N          how far it has counted; may follow an end
died NODE           whatever it owed
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refinement import counters
from viewproof.refinement.adapter import Adapter, Streamed
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import Unit
from viewproof.refinement.events import Column, System, check, event, let, of_row, owed, owes, owes_nothing, step
from viewproof.refinement.judging import judge_unit
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import Row
from viewproof.refinement.text_lines import Segment, TextLines
from viewproof.refinement.verdict import AuditOptions, RunVerdict
from viewproof.spec.lang import Index, Instance, Schema, Spec, SpecError, action, require, up_to


class Kind(Index):
    """What is counted: each kind of its own."""


@action
def count_to(state: Any, r: counters.Node, k: Kind, n: counters.Count) -> None:
    """A node counts one further."""
    require(n == state.count[r, k] + 1)
    state.count[r, k] = n


def spec(cfg: counters.Config) -> Spec:
    """The specification for so many nodes."""
    schema = Schema()
    schema.state("count", (counters.Node, Kind), up_to(counters.Count), doc="how far the node has counted")
    return Spec("kinds", schema, cfg, (count_to,), (), instance=Instance({"Node": cfg.replicas - 1}))


def total(row: Mapping[int, int], least: int) -> int:
    """The sum of a node's counts, those of at least `least`."""
    return sum(value for value in row.values() if value >= least)


@event()
def begin(state: Any, e: Any) -> None:
    """A node is about to count."""
    before = let(state.count[e.node, e.kind])
    owes("end", values=(e.kind, before + 1))
    owes("sum", "pause")


@event()
def end(state: Any, e: Any) -> None:
    """It counted."""
    _, kind, number = owed(Kind, counters.Count)
    check(e.number, number)
    step(count_to, r=e.node, k=kind, n=e.number)


@event(name="sum")
def sum_(state: Any, e: Any) -> None:
    """How far it has counted, all together."""
    owed(must=False)
    check(e.sum, of_row(total, state.count, e.node, 1))


@event()
def pause(state: Any, e: Any) -> None:
    """It does not say."""
    owed()


@event(aside=True)
def died(state: Any, e: Any) -> None:
    """It died."""
    owes_nothing()


def observed(state: Any, e: Any) -> None:
    """No line shows a node's state."""


COLUMNS = (
    Column("nodes", "int", False, "how many nodes there are", minimum=1),
    Column("kind", "int", False, "what it counts", sort=Kind),
    Column("number", "int", False, "how far", sort=counters.Count),
    Column("sum", "int", False, "all together"),
)
PROFILE = replace(counters.PROFILE, spec=spec, boots=(), whole=True)
SYSTEM = System("kinds", COLUMNS, (begin, end, sum_, pause, died), observed, PROFILE)
BY_PARTS = replace(SYSTEM, profile=replace(PROFILE, whole=False))


def row(run: str, file: str, number: int, line: str) -> Row:
    """The record of a line."""
    word, node, *rest = line.split()
    values = dict(zip({"begin": ("kind",), "end": ("number",), "sum": ("sum",)}.get(word, ()), rest, strict=True))
    shown = {name: int(value) for name, value in values.items()}
    base = {"run": run, "node": int(node), "seq": number, "clock": number, "event": word, "nodes": 2}
    return (*({**base, **shown}.get(name) for name in SYSTEM.names), file, number)


class Lines:
    """One run of a file."""

    adapter = f"{__name__}:KINDS"

    def __init__(self, segment: Segment, lines: list[str]) -> None:
        self.run_id = segment.run_id
        self.rows = (row(self.run_id, segment.file, n, line) for n, line in enumerate(lines, segment.first_line))
        self.lines = lines

    def rest(self) -> None:
        """It is in memory."""

    def missing(self) -> tuple[str, ...]:
        """Nothing."""
        return ()

    def doubt(self) -> str:
        """Its lines are in their order."""
        return ""

    def notes(self, *, violated: bool) -> tuple[str, ...]:
        """How many lines."""
        return (f"{len(self.lines)} lines",)

    def text(self, line: int) -> str:
        """The line."""
        return self.lines[line - 1]


def runs(part: Segment, profile: str, log: ProblemLog) -> Iterator[Lines]:
    """The runs of a part: one."""
    yield Lines(part, [line for chunk in TextLines(part.file).chunks() for line in chunk if line])


KINDS = Adapter(
    "kinds", "logs of counting nodes", (".kinds",), None, SYSTEM, streamed=Streamed(lambda f: [Segment(f)], runs)
)

GOOD = (
    "begin 0 3",
    "begin 1 3",
    "end 1 1",
    "end 0 1",
    "sum 0 1",
    "pause 1",
    "begin 0 4",
    "end 0 1",
    "sum 0 2",
    "sum 0 2",
)


def judged(tmp_path: Path, *lines: str) -> RunVerdict:
    """The verdict on a log of these lines."""
    file = tmp_path / "a.kinds"
    file.write_text("\n".join([*lines, ""]))
    result = judge_unit(Unit(str(file), (str(file),)), AuditOptions(adapter=Lines.adapter), check_run)
    assert not result.tool_errors
    (verdict,) = result.verdicts
    return verdict


def test_lines_that_follow_each_other_conform(tmp_path: Path) -> None:
    verdict = judged(tmp_path, *GOOD)
    assert (verdict.verdict, verdict.events, verdict.notes) == ("conforms", len(GOOD), ("10 lines",))
    assert verdict.coverage == {"count_to": 3}


@pytest.mark.parametrize(
    ("lines", "at", "rule"),
    [
        (("begin 0 3", "begin 0 3"), 2, "line.missing"),
        (("begin 0 3", "end 0 1", "end 0 2"), 3, "line.missing"),
        (("end 0 1",), 1, "line.unexpected"),
        (("begin 0 3", "end 0 2"), 2, "event.number"),
        (("begin 0 3", "end 0 1", "sum 0 2"), 3, "event.sum"),
        (("begin 0 3", "died 0", "end 0 1"), 3, "line.unexpected"),
        (("sum 2 0",), 1, "event.node"),
    ],
)
def test_a_line_that_no_line_before_led_to_is_refused(
    tmp_path: Path, lines: tuple[str, ...], at: int, rule: str
) -> None:
    (found,) = judged(tmp_path, *lines).violations
    assert (found.line, found.rule_id, found.carried["line"]) == (at, rule, lines[-1])
    assert found.story[-1].text == lines[-1]


def by_parts(monkeypatch: pytest.MonkeyPatch, *lines: str) -> RunVerdict:
    """The verdict on lines of which each node numbers its own, and some are missing (""): by Kleene's replay."""
    monkeypatch.setattr("tests.refinement.test_owing.KINDS", replace(KINDS, system=BY_PARTS))
    from viewproof.refinement.adapter import adapter

    adapter.cache_clear()
    seqs, rows = [0, 0], []
    for number, line in enumerate(lines, 1):
        text = line.lstrip("-")
        found = list(row("r", "f", number, text))
        seqs[found[1]] += 1
        found[2] = seqs[found[1]]
        if text == line:
            rows.append(tuple(found))
    try:
        return check_run("r", rows, AuditOptions(adapter=Lines.adapter))
    finally:
        adapter.cache_clear()


def test_after_a_hole_it_is_open_what_a_node_owes(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = by_parts(monkeypatch, "-begin 0 3", "end 0 1", "sum 0 1", "begin 1 1", "end 1 1", "sum 1 1")
    assert verdict.verdict == "inconclusive"
    assert any("seq" in text or "event 1" in text for text in verdict.missing)


def test_what_a_node_owes_since_a_hole_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = by_parts(monkeypatch, "begin 1 1", "end 1 1", "sum 1 1", "-died 0", "begin 0 3", "begin 0 3", "sum 1 1")
    assert verdict.verdict == "violates"
    assert verdict.violations[0].rule_id == "line.missing"


def test_what_is_owed_is_asked_for_first() -> None:
    @event()
    def late(state: Any, e: Any) -> None:
        """A line that asks too late."""
        let(state.count[e.node, e.kind])
        owed()

    with pytest.raises(SpecError, match="before everything else"):
        replace(SYSTEM, events=(late,)).rules_for(spec(counters.Config(2)))
