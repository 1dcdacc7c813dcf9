"""Logs of real servers as they may come: clocks that differ over a restart, files that end early, other levels."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from tests.refinement.real_logs import IGGY, needs, unpacked, verdict

KILLED = IGGY / "server/kill-s3.log.zst"
CRASHED = IGGY / "simulator/crash-3-s12.log.zst"
TIME = re.compile(r"^\S+Z")


def split(folder: Path, change: Callable[[int, list[str]], list[str]]) -> list[Path]:
    """One file per server of a merged log, its lines changed."""
    lines: dict[int, list[str]] = {}
    for line in unpacked(KILLED):
        if line.startswith("[") and line[1].isdecimal():
            lines.setdefault(int(line[1]), []).append(line[4:])
    for node, own in lines.items():
        (folder / f"server{node}.log").write_text("\n".join(change(node, own)) + "\n")
    return sorted(folder.iterdir())


def later(line: str, seconds: float) -> str:
    """The line with another time."""
    found = TIME.match(line)
    if found is None:
        return line
    at = datetime.fromisoformat(found[0][:-1]) + timedelta(seconds=seconds)
    return at.isoformat(timespec="microseconds") + "Z" + line[found.end() :]


@needs(IGGY)
@pytest.mark.parametrize("seconds", [-1.5, pytest.param(-0.4, marks=pytest.mark.long)])
def test_a_clock_that_is_behind_does_not_turn_a_restart_and_what_follows_it_around(
    seconds: float, tmp_path: Path
) -> None:
    files = split(tmp_path, lambda node, own: [later(line, seconds) for line in own] if node == 0 else own)
    assert verdict("iggy", *files).verdict == "inconclusive"


@needs(IGGY)
def test_a_replica_whose_file_ends_before_the_others_is_not_known_from_there(tmp_path: Path) -> None:
    found = verdict("iggy", *split(tmp_path, lambda node, own: own[: len(own) // 2] if node == 1 else own))
    assert found.verdict == "inconclusive"
    assert any("lines of a replica end before those of the others" in text for text in found.missing)


@needs(IGGY)
def test_what_a_primary_prepared_after_the_end_of_its_file_may_have_come_to_a_backup_that_starts_again(
    tmp_path: Path,
) -> None:
    kept = {0: 16, 1: 2, 2: 2}
    found = verdict("iggy", *split(tmp_path, lambda node, own: own[: len(own) // kept[node]]))
    assert found.verdict == "inconclusive"
    assert any("lines of a replica end before those of the others" in text for text in found.missing)


@needs(IGGY)
def test_a_log_below_debug_level_says_so(tmp_path: Path) -> None:
    found = verdict("iggy", *split(tmp_path, lambda _, own: [line for line in own if " DEBUG " not in line]))
    assert found.verdict == "inconclusive"
    assert any("debug level" in text for text in found.missing)


@needs(IGGY)
def test_a_parent_that_no_line_names_is_refused_where_its_view_prepared_another(tmp_path: Path) -> None:
    """Although a server was killed before, and may not have printed all that it prepared."""
    lines = unpacked(KILLED)
    at = next(n for n, line in enumerate(lines) if 'sim_event="PrepareQueued"' in line and " op=126 " in line)
    lines[at] = re.sub(r"parent_checksum=\d+", "parent_checksum=1", lines[at])
    file = tmp_path / "one.log"
    file.write_text("\n".join(lines) + "\n")
    found = verdict("iggy", file)
    assert (found.violations[0].line, found.violations[0].rule_id) == (at + 1, "I10")


@needs(IGGY)
@pytest.mark.parametrize("times", [0, 2])
def test_a_do_view_change_is_sent_as_often_as_it_is_scheduled(times: int, tmp_path: Path) -> None:
    lines = unpacked(CRASHED)
    at = next(n for n, line in enumerate(lines) if 'action="send_do_view_change"' in line)
    lines[at:] = [lines[at]] * times + lines[at + 1 : at + 300]
    file = tmp_path / "one.log"
    file.write_text("\n".join(lines) + "\n")
    found = verdict("iggy", file)
    assert found.verdict == "violates"
    assert found.violations[0].line <= at + 12


@needs(IGGY)
def test_lines_of_several_servers_that_do_not_say_whose_they_are_are_not_judged(tmp_path: Path) -> None:
    """As of `cat node*.log` or of a journal; where each is known by a number in front the same lines are judged."""
    lines = [line for line in unpacked(IGGY / "server/calm.log.zst")[:1100] if not line.startswith("[-]")]
    for name, kept in (("sorted", lines), ("joined", sorted(lines, key=lambda line: line[:3]))):
        file = tmp_path / f"{name}.log"
        file.write_text("".join(line[4:] + "\n" for line in kept))
        found = verdict("iggy", file)
        assert (found.verdict, found.violations, found.events) == ("inconclusive", (), 0)
        assert "whose lines are in" in found.missing[0]


@needs(IGGY)
@pytest.mark.parametrize("begin", [0, 600])
def test_merged_lines_show_it_by_who_leads_where_all_servers_have_one_address(begin: int, tmp_path: Path) -> None:
    """Only the primary's lines have a number; one process is not primary and backup in turns."""
    merged = [line[4:] for line in unpacked(IGGY / "server/calm.log.zst") if not line.startswith("[-]")]
    file = tmp_path / "one.log"
    file.write_text("".join(f"{re.sub(r'127.0.0.1:[0-9]+', '0.0.0.0:1', line)}\n" for line in merged[begin:]))
    found = verdict("iggy", file)
    assert (found.verdict, found.violations, found.events) == ("inconclusive", (), 0)
    assert "whose lines are in" in found.missing[0]


@needs(IGGY)
@pytest.mark.parametrize(("node", "begin"), [(0, 0), (0, 400), (1, 0), (1, 200)])
def test_the_file_of_one_server_alone_is_not_refused(node: int, begin: int, tmp_path: Path) -> None:
    """Of a late one, or of a backup, no line says how many replicas there are: nothing is judged."""
    start = f"[{node}] "
    own = [line[4:] for line in unpacked(IGGY / "server/calm.log.zst") if line.startswith(start)]
    file = tmp_path / "one.log"
    file.write_text("".join(f"{line}\n" for line in own[begin:]))
    found = verdict("iggy", file)
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert (found.events > 0) == ((node, begin) == (0, 0))


@needs(IGGY)
@pytest.mark.parametrize("order", ["reversed", "twice", "pieces", "doubled"])
def test_lines_that_are_not_in_their_order_accuse_nobody(order: str, tmp_path: Path) -> None:
    """Although each says who printed it."""
    lines = unpacked(IGGY / "server/calm.log.zst")[:1200]
    moved = {"reversed": lines[::-1], "twice": lines * 2, "pieces": [*lines[:300], *lines[800:], *lines[300:800]]}
    moved["doubled"] = [line for line in lines for _ in range(2)]
    file = tmp_path / "one.log"
    file.write_text("\n".join(moved[order]) + "\n")
    found = verdict("iggy", file)
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert "the order of the lines in" in found.missing[0] or "there twice" in found.missing[0]
