"""Logs that are cut, joined, packed and cut, of another system's line ends, or damaged inside."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.refinement.tigerbeetle.logs import judged as judged_file
from tests.refinement.tigerbeetle.logs import lines_of
from viewproof.refinement.verdict import AuditReport

OLD, NEW = "tigerbeetle-2022-06/seed-11.log.zst", "tigerbeetle-2026-07/seed-118.log.zst"


@cache
def text(name: str) -> str:
    """The first 4,000 lines of a shipped log that conforms."""
    return "\n".join([*lines_of(name, 4000), ""])


def judged(file: Path, content: bytes) -> AuditReport:
    """The report on a file of that content."""
    file.write_bytes(content)
    return judged_file(file)


def verdicts(report: AuditReport) -> list[str]:
    """Its verdicts; there are no problems and no tool errors."""
    assert not report.problems
    assert not report.tool_errors
    return [verdict.verdict for verdict in report.verdicts]


def test_line_ends_of_another_system(tmp_path: Path) -> None:
    plain = judged(tmp_path / "a.log", text(OLD).encode())
    other = judged(tmp_path / "b.log", text(OLD).replace("\n", "\r\n").encode())
    assert verdicts(plain) == verdicts(other) == ["conforms"]
    assert plain.verdicts[0].events == other.verdicts[0].events


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_packed_log_that_is_cut_off_is_judged_to_its_end(tmp_path: Path, share: float) -> None:
    packed = gzip.compress(text(OLD).encode())
    report = judged(tmp_path / "a.log.gz", packed[: int(len(packed) * share)])
    assert verdicts(report) == ["conforms"]
    assert report.verdicts[0].events > 100
    assert any("cut off" in note for note in report.verdicts[0].notes)


@pytest.mark.parametrize("names", [(OLD, NEW), (NEW, OLD), (OLD, OLD), (NEW, NEW)])
def test_a_run_that_was_cut_off_may_be_followed_by_another(tmp_path: Path, names: tuple[str, str]) -> None:
    report = judged(tmp_path / "a.log", "".join(map(text, names)).encode())
    assert verdicts(report) == ["conforms", "conforms"]
    assert len({verdict.run_id for verdict in report.verdicts}) == 2


def test_bytes_that_are_no_text_leave_the_verdict_open(tmp_path: Path) -> None:
    lines = text(OLD).encode().split(b"\n")
    report = judged(tmp_path / "a.log", b"\n".join([*lines[:2000], b"\x00\xfe\x01", *lines[2000:]]))
    assert verdicts(report) == ["inconclusive"]
    assert "first at line 2001" in report.verdicts[0].missing[0]


def test_numbers_without_end_are_no_tool_error(tmp_path: Path) -> None:
    line = f"[debug] (replica): 0: commit_op: executing view={'9' * 6000} true op=1 checksum=1 (hash)\n"
    report = judged(tmp_path / "a.log", (text(OLD) + line).encode())
    assert verdicts(report) == ["conforms"]
    assert "1 are unexplained" in report.verdicts[0].notes[0]


def test_a_cluster_that_no_simulator_has_is_refused(tmp_path: Path) -> None:
    report = judged(tmp_path / "a.log", text(NEW).replace("standbys=0", "standbys=99999999").encode())
    assert "at most 12 replicas and standbys" in str(report.problems[0])


def test_a_cache_that_cannot_be_written_is_no_reason_to_refuse_a_log(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_bytes(text(NEW).encode())
    code = "import sys; from viewproof.api.audit import audit; print(audit(sys.argv[1], input='tigerbeetle').verdict)"
    given = {**os.environ, "VSR_CACHE": str(tmp_path / "a.log" / "none")}
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "a.log")], env=given, capture_output=True, text=True
    )
    assert done.stdout == "conforms\n", done.stderr


@pytest.mark.parametrize("name", [OLD, NEW])
def test_a_mark_of_the_byte_order_is_no_part_of_the_first_line(tmp_path: Path, name: str) -> None:
    assert verdicts(judged(tmp_path / "x.log", b"\xef\xbb\xbf" + text(name).encode())) == ["conforms"]


@pytest.mark.parametrize("name", [OLD, NEW])
def test_a_log_without_the_debug_level_is_refused_by_that_name(tmp_path: Path, name: str) -> None:
    kept = [line for line in text(name).split("\n") if not line.startswith("[debug]")]
    report = judged(tmp_path / "x.log", "\n".join(kept).encode())
    assert report.problems[0].expected.startswith("the debug log of a TigerBeetle simulator")


def as_nobody_wrote_it(lines: list[str]) -> dict[str, list[str]]:
    """The lines of a log reversed, sorted, wrapped, cut, with pieces in another order; and what shows it."""
    k = len(lines) // 3
    return {
        "and no line before says that it starts": lines[::-1],
        "asks at line": sorted(lines),
        "goes on in the line after it": [line[at : at + 200] for line in lines for at in range(0, len(line), 200)],
        "are cut at 200 characters": [line[:200] for line in lines],
        "the order of the lines": [*lines[: k + 50], *lines[2 * k :], *lines[k + 50 : 2 * k]],
    }


@pytest.mark.parametrize("name", [OLD, NEW])
def test_lines_that_nobody_wrote_so_accuse_nobody(tmp_path: Path, name: str) -> None:
    for why, lines in as_nobody_wrote_it(text(name).split("\n")[:-1]).items():
        report = judged(tmp_path / "x.log", "\n".join([*lines, ""]).encode())
        assert verdicts(report) == ["inconclusive"], why
        assert why in report.verdicts[0].missing[0]
        assert "is refused as it stands" in report.verdicts[0].missing[0]
