"""Systems that do much without a line: nested conditions and ranges, alternative histories; logs read together."""

from __future__ import annotations

import dataclasses
import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.refinement import counters, walkers
from viewproof import audit
from viewproof.api.audit import AuditOptionError
from viewproof.refinement.events import check, each, event, otherwise, step, when
from viewproof.refinement.verdict import AuditReport
from viewproof.spec.lang import SpecError, between

NAME = "tests.refinement.walkers:WALKERS"


def judged(folder: Path, *lines: str, **options: Any) -> AuditReport:
    """The audit of a log with these lines."""
    (folder / "all.walk").write_text("".join(f"{at} {line}\n" for at, line in enumerate(lines)))
    return audit(folder, adapter=NAME, **options)


@pytest.mark.parametrize(
    ("lines", "verdict"),
    [
        (("0 walked 3", "1 moved 1", "1 moved 3"), "conforms"),
        (("0 walked 3", "1 moved 4"), "violates"),
        (("0 walked 3", "0 walked 2"), "violates"),
        (("0 walked 2", "0 wrote 2", "0 walked 5", "0 wrote 2", "1 got 2 0"), "conforms"),
        (("0 walked 2", "0 wrote 2", "0 walked 5", "0 wrote 5"), "violates"),
        (("0 walked 2", "0 wrote 2", "1 got 3 0"), "violates"),
        (("0 walked 2", "1 got 0 0"), "violates"),
        (("1 walked 1", "0 dozed", "0 walked 2", "0 walked 3"), "inconclusive"),
        (("1 walked 1", "0 dozed", "0 moved 4"), "violates"),
        (("1 walked 1", "0 guessed 1", "0 walked 3"), "inconclusive"),
        (("1 walked 1", "0 guessed 1", "0 walked 1"), "inconclusive"),
    ],
)
def test_nested_lines_and_histories_are_judged(lines: tuple[str, ...], verdict: str, tmp_path: Path) -> None:
    report = judged(tmp_path, *lines)
    assert report.verdict == verdict, report.verdicts
    if verdict != "inconclusive":
        assert bool(report.violations) == (verdict == "violates")


@pytest.mark.parametrize(
    "lines",
    [
        ("0 walked 3", "0 wrote 3", "0 wrote 2"),
        ("0 walked 3", "0 walked 2"),
        ("0 walked 3", "0 wrote 3", "0 got 3 0", "0 got 2 0"),
        ("0 walked 3", "0 got 3 0"),
        ("0 leapt 1",),
    ],
)
def test_both_replays_refuse_the_same_line_by_the_same_rule(lines: tuple[str, ...], tmp_path: Path) -> None:
    """From the first line on that leaves something unknown, Kleene's goes on."""
    (plain,) = judged(tmp_path, "1 walked 1", *lines).violations
    (kleene,) = judged(tmp_path, "1 dozed", *lines).violations
    assert (plain.rule_id, plain.line, plain.message) == (kleene.rule_id, kleene.line, kleene.message)
    assert plain.mapped_at == kleene.mapped_at


def test_where_lines_may_be_missing_anywhere_nothing_is_missed(tmp_path: Path) -> None:
    lines = ("1 walked 1", "0 wrote 0", "0 moved 4", "1 got 0 0")
    (found,) = judged(tmp_path, *lines).violations
    assert found.line == 3
    report = judged(tmp_path, *lines, partial=True)
    assert report.verdict == "inconclusive"
    assert "lines may be missing anywhere (--partial)" in report.verdicts[0].missing
    again = ("0 wrote 0", "0 wrote 3", "0 wrote 4")
    (found,) = judged(tmp_path, *again, partial=True).violations
    assert found.line == 3, "a letter is sent once: two of these say what is in it"


def test_the_events_of_several_files_wait_for_what_they_need(tmp_path: Path) -> None:
    (tmp_path / "a.walk").write_text("1 0 walked 2\n3 0 wrote 2\n")
    (tmp_path / "b.walk").write_text("2 1 got 2 0\n")
    report = audit(tmp_path, adapter=NAME)
    assert (report.verdict, report.events, len(report.verdicts)) == ("conforms", 3, 1)
    (tmp_path / "b.walk").write_text("0 1 got 2 0\n")
    (found,) = audit(tmp_path, adapter=NAME).violations
    assert (found.rule_id, found.file.rpartition("/")[2], found.carried["line"]) == (
        "message.letter",
        "b.walk",
        "0 1 got 2 0",
    )


def test_a_copy_of_a_file_is_not_read_and_a_mark_of_the_byte_order_says_nothing(tmp_path: Path) -> None:
    lines = "1 0 walked 2\n3 0 wrote 2\n"
    (tmp_path / "a.walk").write_text(f"\ufeff{lines}")
    (tmp_path / "b.walk").write_text(f"\ufeff{lines}")
    (tmp_path / "c.walk").write_text("2 1 got 2 0\n")
    (tmp_path / "d.walk.gz").write_bytes(gzip.compress(lines.replace("\n", "\r\n").encode()))
    (tmp_path / "e.walk").write_text("3 0 wrote 2\n")
    report = audit(tmp_path, adapter=NAME)
    assert (report.verdict, report.events) == ("conforms", 3)
    for name in ("b.walk", "d.walk.gz", "e.walk"):
        assert any(f"{name} is not read: it is a copy of" in note for note in report.verdicts[0].notes)


def test_pieces_that_overlap_are_read_once(tmp_path: Path) -> None:
    lines = [f"{n} 0 walked {n}" for n in range(1, 7)]
    for name, piece in (("a", lines[:3]), ("b", lines[1:5]), ("c", lines[4:]), ("d", lines[:2])):
        (tmp_path / f"{name}.walk").write_text("\n".join([*piece, ""]))
    report = audit(tmp_path, adapter=NAME)
    assert (list(report.violations), report.events) == ([], 6)
    notes = " ".join(report.verdicts[0].notes)
    assert "b.walk is read from line 3" in notes
    assert "c.walk is read from line 2" in notes
    (tmp_path / "c.walk").write_text("4 0 walked 4\n5 0 walked 6\n")
    report = audit(tmp_path, adapter=NAME)
    assert not any("c.walk" in note for note in report.verdicts[0].notes)


def test_after_a_node_is_replaced_nothing_is_known_of_it(tmp_path: Path) -> None:
    report = judged(tmp_path, "1 walked 1", "0 walked 1", "0 replaced", "0 moved 9")
    assert report.verdict == "inconclusive"
    assert "what the node that came in its place had counted" in " ".join(report.verdicts[0].missing)


def test_a_departure_is_named_allowed_or_forbidden(tmp_path: Path) -> None:
    lines = ("1 walked 1", "0 walked 1", "0 leapt 5", "0 walked 6")
    report = judged(tmp_path, *lines)
    (use,) = report.verdicts[0].allowed_uses
    assert (report.verdict, use.fault, use.line) == ("inconclusive", walkers.SKIPS, 3)
    assert report.verdicts[0].missing[0].startswith(walkers.SKIPS)
    report = judged(tmp_path, *lines, allow=[walkers.SKIPS])
    assert (report.verdict, [use.line for use in report.verdicts[0].allowed_uses]) == ("conforms", [3])
    for forbid in (walkers.SKIPS, "all"):
        (found,) = judged(tmp_path, *lines, forbid=[forbid]).violations
        assert (found.rule_id, found.line, found.message) == (
            walkers.SKIPS, 3, "leapt at node 0: a node passes over numbers",
        )  # fmt: skip
    with pytest.raises(AuditOptionError, match=r"x is no departure that is known; there are: counters\.skips"):
        judged(tmp_path, *lines, forbid=["x"])


def test_malformed_and_unknown_lines_are_named(tmp_path: Path) -> None:
    report = judged(tmp_path, "0 walked 1", "1 walked 1 2 3")
    assert [(p.line, p.expected) for p in report.problems] == [(2, "at most two numbers")]
    report = judged(tmp_path, "0 walked 1", "1 walked 1", "1 sang")
    assert report.verdict == "inconclusive"
    assert "1 lines of the protocol that no pattern knows" in report.verdicts[0].missing
    assert any("not known, 1 times, first at" in note for note in report.verdicts[0].notes)


def test_words_of_histories_are_refused_where_they_do_not_stand() -> None:
    @event()
    def deep(state: Any, e: Any) -> None:
        """A comparison of a column, deep down."""
        with when(e.number > 0):
            check(e.number, 1)

    @event()
    def alone(state: Any, e: Any) -> None:
        """Nothing is before it."""
        with otherwise():
            step(counters.count_to, r=e.node, n=e.number)

    @event()
    def unknown(state: Any, e: Any) -> None:
        """A departure that nobody knows."""
        walkers.departs("counters.flies")

    @event()
    def twice(state: Any, e: Any) -> None:
        """A range in a range."""
        with each(between(counters.Count, 1, 2)), each(between(counters.Count, 1, 2)) as n:
            step(counters.count_to, r=e.node, n=n)

    spec = walkers.spec(counters.Config(2))
    for declared, text in (
        (deep, "below a condition or range stand"),
        (alone, "otherwise stands right below a when"),
        (unknown, r"walkers has no departure counters\.flies"),
    ):
        with pytest.raises(SpecError, match=text) as refused:
            dataclasses.replace(walkers.SYSTEM, events=(declared,)).rules_for(spec)
        assert refused.value.source is not None
        assert refused.value.source.file == "tests/refinement/test_histories.py"
    for declared, text in ((twice, "a range in a range"), (alone, "histories=True")):
        with pytest.raises(SpecError, match=text):
            dataclasses.replace(walkers.SYSTEM, events=(declared,), histories=False).rules_for(spec)
