"""What another build may do differently and the protocol leaves open is accepted; what it does not, is not."""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from tests.refinement.tigerbeetle.logs import ACKS, judged, lines_of
from tests.refinement.tigerbeetle.test_steps_2026 import Cluster
from viewproof.refinement.verdict import RunVerdict
from viewproof.spec.engines.replay import TAKEN, compile_spec
from viewproof.spec.vsr.tigerbeetle.config import Cluster as Configuration
from viewproof.spec.vsr.tigerbeetle.june_2022 import spec_2022
from viewproof.spec.vsr.tigerbeetle.state_2022 import NORMAL as NORMAL_2022
from viewproof.spec.vsr.tigerbeetle.state_2022 import VIEW_CHANGE as VIEW_CHANGE_2022
from viewproof.spec.vsr.tigerbeetle.state_2026 import KIND, NORMAL, VIEW_CHANGE

REPAIRS = "tigerbeetle-2022-06/seed-7.log.zst"
VOTES = {2022: "tigerbeetle-2022-06/seed-7.log.zst", 2026: "tigerbeetle-2026-07/seed-110.log.zst"}
SIZES = {
    2022: (re.compile(r"sending do_view_change .*checksum = (\d+),.*size = (\d+),"), "checksum = {}, .*?size = ", 128),
    2026: (re.compile(r"sending join_view .*\.checksum=(\w+),.*\.size=(\d+),"), r"\.checksum={},.*?\.size=", 256),
}


def judge(folder: Path, lines: list[str]) -> RunVerdict:
    file = folder / "changed.log"
    file.write_text("\n".join([*lines, ""]))
    (verdict,) = judged(file, ACKS).verdicts
    return verdict


def reversed_repairs(lines: list[str]) -> tuple[list[str], int]:
    """The lines with every row of clean headers that a message brought gone through the other way; how many rows."""
    changed, rows = [], 0
    for clean, group in groupby(lines, lambda line: re.sub(r"op=\d+", "", line) if "(checksum clean)" in line else ""):
        row = list(group)
        rows += bool(clean) and len(row) > 1
        changed += reversed(row) if clean else row
    return changed, rows


def test_headers_that_a_message_brought_are_repaired_in_any_order(tmp_path: Path) -> None:
    changed, rows = reversed_repairs(lines_of(REPAIRS))
    assert rows > 3
    assert judge(tmp_path, changed).verdict == "conforms"


def test_a_header_is_gone_through_as_often_as_it_was_brought(tmp_path: Path) -> None:
    lines = lines_of(REPAIRS)
    at = next(n for n, line in enumerate(lines) if "(checksum clean)" in line and "repair_header" not in lines[n + 1])
    verdict = judge(tmp_path, [*lines[: at + 1], lines[at], *lines[at + 1 :]])
    assert verdict.verdict == "violates"
    assert verdict.violations[0].line == at + 2


@pytest.mark.parametrize("year", VOTES)
@pytest.mark.parametrize("fewer", [1, 100])
def test_how_many_headers_a_vote_carries_is_open(tmp_path: Path, year: int, fewer: int) -> None:
    """A vote that nobody counts carries one header less, or (which cannot be) less than none."""
    lines = lines_of(VOTES[year])
    sent, pattern, size = SIZES[year]
    counted = {
        checksum
        for line, answer in pairwise(line for line in lines if "(replica)" in line)
        if "on_message" in line and "ignoring" not in answer
        for checksum in re.findall(r"\.checksum ?= ?(\w+)", line)
    }
    votes = [found for line in lines if (found := sent.search(line)) and found[1] not in counted]
    checksum, bytes_ = next((vote[1], int(vote[2])) for vote in votes if int(vote[2]) >= 3 * size)
    where = re.compile(f"({pattern.format(checksum)})\\d+")
    changed = [where.sub(rf"\g<1>{bytes_ - fewer * size}", line) if checksum in line else line for line in lines]
    assert changed != lines
    assert judge(tmp_path, changed).verdict == ("conforms" if fewer == 1 else "violates")


@pytest.mark.parametrize(("low", "allowed"), [(0, True), (3, True), (5, True), (6, False)])
def test_a_vote_covers_what_is_not_known_to_be_committed(low: int, allowed: bool) -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_op[1], store.v_commit_min[1], store.v_commit_max[1] = NORMAL, 8, 4, 4
    store.v_m_kind[7], store.v_m_view[7], store.v_current[1] = KIND["exit_view"], 1, 7
    store.v_exit_quorum[1] = True
    assert cluster.takes("start_view_change", r=1, v=1)
    assert store.v_status[1] == VIEW_CHANGE
    assert cluster.takes("join_view", r=1, m=9, low=low) == allowed


@pytest.mark.parametrize("sent", [False, True])
def test_a_message_held_back_stays_sent_by_whoever_sent_it_before(sent: bool) -> None:
    """A client sent its request to replica 1; replica 0 forwards it, and has to hold it back."""
    cluster = Cluster(3, 3)
    if sent:
        assert cluster.takes("client_send", m=5, q=1, k=KIND["request"])
    cluster.store.v_m_view[5] = 4
    assert cluster.takes("address", r=0, m=5, q=1)
    assert cluster.takes("hold_back", r=0, m=5, q=1)
    assert cluster.takes("receive", r=1, m=5) == sent


@pytest.mark.parametrize(
    ("message", "commit", "allowed"),
    [(7, 2, True), (7, 3, True), (7, 1, False), (8, 2, False), (8, 3, True)],
)
def test_the_first_start_view_may_tell_the_commit_number_from_before(message: int, commit: int, allowed: bool) -> None:
    """The view starts with commit number 2; op 3 commits before message 7 is sent, the first start_view."""
    replay = compile_spec(spec_2022(Configuration(3, 2, 2, nodes=3)))
    store, steps = replay.new_store(), replay.functions
    store.v_status[0], store.v_dvc_quorum[0] = VIEW_CHANGE_2022, True
    store.v_op[0] = store.v_commit_min[0] = store.v_commit_max[0] = 2
    for o, e in enumerate((1, 2, 3, 4)):
        store.v_entry[0][o], store.v_p_op[e], store.v_p_parent[e] = e, o, e - 1
    assert steps["start_view"](store, 0) == TAKEN
    assert store.v_status[0] == NORMAL_2022
    store.v_commit_max[0] = 3
    if message == 8:
        assert steps["send_start_view"](store, 0, 7, 0, 3, 2) == TAKEN
    assert (steps["send_start_view"](store, 0, message, 0, 3, commit) == TAKEN) == allowed
