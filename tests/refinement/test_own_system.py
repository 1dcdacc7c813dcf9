"""An adapter with columns, events and a specification of its own goes through the same audit."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refinement import counters
from viewproof import audit
from viewproof.refinement.adapter import Record
from viewproof.refinement.events import check, event, may_step, received, settle, step
from viewproof.refinement.reports import sarif
from viewproof.refinement.reports.text import violation_lines
from viewproof.refinement.schema import Column
from viewproof.refinement.verdict import AuditReport
from viewproof.spec.lang import SpecError

NAME = "tests.refinement.counters:COUNTERS"
GOOD = """\
1 0 1 up 2
1 1 1 up 2
2 0 2 counted 1
3 0 3 counted 2
4 1 2 heard 0:3 2 2
5 1 3 counted 3
6 0 4 heard 1:3 3 3
"""


def judged(tmp_path: Path, text: str, **options: Any) -> AuditReport:
    (tmp_path / "run.count").write_text(text)
    return audit(tmp_path, adapter=NAME, **options)


def test_a_good_run_conforms_by_both_replays(tmp_path: Path) -> None:
    for interp in (False, True):
        report = judged(tmp_path, GOOD, interp=interp)
        assert (report.verdict, report.events) == ("conforms", 7), report.verdicts
        assert report.coverage == {"count_to": 3, "follow": 2}


@pytest.mark.parametrize(
    ("old", "new", "rule", "line"),
    [
        ("5 1 3 counted 3", "5 1 3 counted 4", "count_to/0", 6),
        ("4 1 2 heard 0:3 2 2", "4 1 2 heard 0:3 2 1", "observed.count", 5),
        ("4 1 2 heard 0:3 2 2", "4 1 2 heard 0:2 2 2", "message.number", 5),
        ("1 1 1 up 2", "1 1 1 up 3", "configuration", 2),
    ],
)
def test_a_wrong_line_is_refused_and_the_rule_is_named(
    old: str, new: str, rule: str, line: int, tmp_path: Path
) -> None:
    (found,) = judged(tmp_path, GOOD.replace(old, new)).violations
    assert (found.rule_id, found.line) == (rule, line)


def test_the_line_of_the_event_function_that_refused_is_known(tmp_path: Path) -> None:
    report = judged(tmp_path, GOOD.replace("counted 3", "counted 4"))
    (found,) = report.violations
    file, _, line = found.mapped_at.rpartition(":")
    assert file == "tests/refinement/counters.py"
    assert inspect.getsource(counters).splitlines()[int(line) - 1].strip() == "step(count_to, r=e.node, n=e.number)"
    assert f"        stands for it: {found.mapped_at}" in violation_lines(found)
    (result,) = sarif.to_dict(report)["runs"][0]["results"]
    related = result["relatedLocations"][-1]
    assert related["physicalLocation"] == {"artifactLocation": {"uri": file}, "region": {"startLine": int(line)}}


def test_a_missing_line_leaves_it_open(tmp_path: Path) -> None:
    report = judged(tmp_path, GOOD.replace("3 0 3 counted 2\n", ""))
    assert report.verdict == "inconclusive"
    assert "seq 3 of node 0: no such event" in report.verdicts[0].missing[0]


def test_a_column_can_be_left_out(tmp_path: Path) -> None:
    wrong = GOOD.replace("heard 0:3 2 2", "heard 0:3 2 1")
    report = judged(tmp_path, wrong, without=["count"])
    assert report.verdict == "inconclusive"
    assert "count of node 0 is not observed" in " ".join(report.verdicts[0].missing)


UNSHOWN = """\
1 0 1 up 2
1 1 1 up 2
3 1 2 heard 0:- 2 2
4 0 2 counted 3
"""


def test_what_may_happen_without_a_line_is_not_held_against_a_run(tmp_path: Path) -> None:
    (tmp_path / "run.count").write_text(UNSHOWN)
    (found,) = audit(tmp_path, adapter=NAME).violations
    assert (found.rule_id, found.line) == ("message.told", 3)
    report = audit(tmp_path, adapter="tests.refinement.counters:QUIET")
    assert (report.verdict, report.events) == ("inconclusive", 4), report.verdicts
    assert "told may change without a line" in report.verdicts[0].missing[0]
    assert "whether told was sent" in report.verdicts[0].missing[0]
    (tmp_path / "run.count").write_text(UNSHOWN + "5 0 3 counted 2\n")
    (found,) = audit(tmp_path, adapter="tests.refinement.counters:QUIET").violations
    assert (found.rule_id, found.line) == ("count_to/0", 5), "what only rises has not fallen"


def test_a_cell_that_may_have_changed_is_known_again_once_it_is_shown(tmp_path: Path) -> None:
    slept = GOOD + "7 0 5 slept\n8 0 6 counted 7\n"
    report = judged(tmp_path, slept)
    assert report.verdict == "inconclusive"
    assert "count may change without a line" in " ".join(report.verdicts[0].missing)
    (found,) = judged(tmp_path, slept.replace("counted 7", "counted 2")).violations
    assert (found.rule_id, found.line) == ("count_to/0", 9)
    (found,) = judged(tmp_path, slept + "9 0 7 counted 9\n").violations
    assert (found.rule_id, found.line) == ("count_to/0", 10)


@event()
def dozed(state: Any, e: Any) -> None:
    """A node wrote nothing for a while; it may have counted once."""
    may_step(counters.count_to, r=e.node, n=state.count[e.node] + 1)


@event()
def reached(state: Any, e: Any) -> None:
    """A number reached another node, which follows it at once, if it is larger than its own."""
    received(state.told[e.node], e.number, by=e.m_from)
    settle(counters.follow, r=e.m_from, q=e.node, n=e.number)


SILENT = replace(
    counters.COUNTERS,
    records=lambda file: silent_records(file),
    system=replace(counters.SYSTEM, events=(*counters.SYSTEM.events, dozed, reached)),
)


def silent_records(file: str) -> Iterator[tuple[int, Record | None]]:
    """The lines of a log, and two more words: dozed; reached NODE NUMBER."""
    for line, record in counters.records(file):
        words = Path(file).read_text().splitlines()[line - 1].split()
        base = {"run": "run", "node": int(words[1]), "seq": int(words[2]), "clock": int(words[0]), "event": words[3]}
        if words[3] == "reached":
            record = {**base, "m_from": int(words[4]), "number": int(words[5])}
        yield line, base if words[3] == "dozed" else record


BEGIN = "1 0 1 up 2\n1 1 1 up 2\n2 0 2 counted 1\n3 0 3 counted 2\n4 0 4 reached 1 2\n"


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ("5 1 2 counted 3\n6 0 5 counted 3\n", "conforms"),
        ("5 1 2 counted 2\n", "violates"),
        ("5 0 5 dozed\n6 0 6 counted 3\n7 1 2 counted 3\n", "inconclusive"),
        ("5 0 5 dozed\n6 0 6 counted 4\n7 1 2 counted 3\n", "inconclusive"),
        ("5 0 5 dozed\n6 0 6 counted 5\n7 1 2 counted 3\n", "violates"),
    ],
)
def test_steps_without_a_line_are_taken_if_possible_or_left_open(more: str, verdict: str, tmp_path: Path) -> None:
    (tmp_path / "run.count").write_text(BEGIN + more)
    report = audit(tmp_path, adapter=f"{__name__}:SILENT")
    assert report.verdict == verdict, report.verdicts
    if verdict == "inconclusive":
        assert "count_to may be taken without a line" in " ".join(report.verdicts[0].missing)


def test_what_does_not_fit_the_specification_is_refused_with_its_line() -> None:
    @event()
    def mixed(state: Any, e: Any) -> None:
        """A number is compared with a node."""
        check(e.number, e.node)

    @event()
    def incomplete(state: Any, e: Any) -> None:
        """A parameter is missing."""
        step(counters.follow, r=e.node, n=e.number)

    @event()
    def fails(state: Any, e: Any) -> None:
        """It raises."""
        raise KeyError("x")

    @event(receives="letter")
    def unsaid(state: Any, e: Any) -> None:
        """In which columns sender and receiver agree is not said."""

    spec = counters.spec(counters.Config(2))
    for declared, text in (
        (fails, "fails: KeyError: 'x'"),
        (mixed, "number is compared"),
        (incomplete, "follow takes r, q, n, not r, n"),
        (unsaid, "unsaid is about a message 'letter', and MESSAGES has no columns for it"),
    ):
        with pytest.raises(SpecError, match=text) as refused:
            counters.System(
                "x", counters.SYSTEM.columns, (declared,), counters.observed, counters.SYSTEM.profile
            ).rules_for(spec)
        assert refused.value.source is not None
        assert refused.value.source.file == "tests/refinement/test_own_system.py"


def test_columns_and_events_have_names_of_their_own_and_a_known_kind() -> None:
    known = counters.SYSTEM
    with pytest.raises(ValueError, match="'integer' is no kind of a column: string, int, strings"):
        Column("n", "integer", False, "")  # type: ignore[arg-type]
    for columns, events, text in (
        ((*known.columns, known.columns[0]), known.events, "two columns have the name"),
        (known.columns, (*known.events, known.events[0]), "two events have the name"),
    ):
        with pytest.raises(ValueError, match=text):
            counters.System("x", columns, events, counters.observed, known.profile)


@pytest.mark.spark
def test_executors_judge_it_too(tmp_path: Path, spark_session: Any) -> None:
    from viewproof.api.audit import audit_options, survey_inputs
    from viewproof.refinement import spark
    from viewproof.refinement.checker import check_run

    for number in range(2):
        (tmp_path / f"run{number}.count").write_text(GOOD)
    options = audit_options("native", "core", (), (), NAME)
    report = spark.audit(survey_inputs([str(tmp_path)], options), options, check_run, session=spark_session)
    assert report.count("conforms") == 2, report
