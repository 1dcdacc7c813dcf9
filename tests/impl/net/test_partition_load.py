"""What producers may conclude: each kind of lost, doubled or misplaced message is found, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.traces import load
from viewproof.impl.groups.group import BOTH_PLANES, parse_groups
from viewproof.impl.net.partition_load import Append, StoredOffsets, check_appends
from viewproof.impl.net.record import RecordOptions, record
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

A = Append(0, 7, (b"a", b"b"), 10, 20, 0)
B = Append(1, 7, (b"c",), 15, 30, 2)
C = Append(0, 7, (b"d",), 40, 50, 3)
UNKNOWN = Append(1, 7, (b"e",), 35, 60, None)


@pytest.mark.parametrize("messages", [[b"a", b"b", b"c", b"d"], [b"a", b"b", b"c", b"d", b"e"]])
def test_an_append_without_an_answer_may_be_there_or_not(messages: list[bytes]) -> None:
    assert check_appends([A, B, C, UNKNOWN], {7: messages}) == ()


@pytest.mark.parametrize(
    ("appends", "messages", "problem"),
    [
        ([A, B], [b"a", b"b"], "offset 2 was answered for"),
        ([A, B], [b"a", b"b", b"c", b"c"], "are there more than once"),
        ([A, UNKNOWN], [b"a", b"b", b"e", b"e"], "are there more than once"),
        ([A, B], [b"a", b"b", b"c", b"x"], "b'x' was never sent"),
        ([A, B], [b"c", b"a", b"b"], "offset 0 was answered for"),
        ([Append(0, 7, (b"a",), 10, 20, 1), Append(0, 7, (b"c",), 30, 40, 0)], [b"c", b"a"], "after those below 2"),
    ],
)
def test_lost_doubled_and_misplaced_messages_are_found(
    appends: list[Append], messages: list[bytes], problem: str
) -> None:
    found = check_appends(appends, {7: messages})
    assert any(problem in text for text in found), found


def test_a_partition_that_was_not_read_is_a_problem() -> None:
    assert check_appends([A], {}) == ("7: was not read",)


def test_a_recorded_run_of_both_planes_loses_and_doubles_nothing(tmp_path: Path) -> None:
    options = RecordOptions(
        requests=90, clients=2, groups=BOTH_PLANES, features=("database_checksum",), down_seconds=0.3
    )
    result = record(tmp_path / "data", tmp_path / "traces", "run", options)
    assert result.ok, (result.problems, result.check)
    assert result.appends >= 90
    assert result.killed is not None
    assert sorted(path.parent.name for path in result.traces) == ["run.metadata"] * 3 + ["run.partitions"] * 3


def test_a_recorded_run_of_groups_of_one_partition_loses_and_doubles_nothing(tmp_path: Path) -> None:
    groups = parse_groups("partition:0/1/2,partition:0/1/3")
    result = record(
        tmp_path / "data", tmp_path / "traces", "run", RecordOptions(requests=40, groups=groups, down_seconds=0.3)
    )
    assert result.ok, result.problems
    assert result.appends >= 80
    assert result.killed is not None
    for group in groups:
        verdict = check_run(group.run("run"), load(tmp_path / "traces" / group.run("run")), AuditOptions())
        assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


def test_a_stored_offset_is_the_last_answered_or_one_without_an_answer() -> None:
    offsets = StoredOffsets()
    for offset in (3, 5):
        offsets.asked(7, 1, offset)
        offsets.answered(7, 1, offset)
    offsets.asked(7, 1, 9)
    assert offsets.readers == [(7, 1)]
    for right in (5, 9):
        offsets.read(7, 1, right)
    assert offsets.problems == []
    for wrong in (3, None):
        offsets.read(7, 1, wrong)
    assert offsets.problems == [
        "7: consumer 1 stored 5, but 3 was read",
        "7: consumer 1 stored 5, but None was read",
    ]
