"""Logs judged by compiled code: the same reports, to the letter, as row by row."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import zstandard

from tests.refinement.tigerbeetle.logs import ACKS, CONFORMING, REJECTED, SOLO, lines_of, shipped
from viewproof.api.audit import audit
from viewproof.refinement.flat import whole
from viewproof.refinement.verdict import AuditReport

ALONE = "tigerbeetle-2022-06/seed-12.log.zst"
LATER = "tigerbeetle-2026-07/seed-118.log.zst"
WORDS = ("normal", "view_change", "faulty", "dirty", "commit", "xyz")


def both(monkeypatch: pytest.MonkeyPatch, path: Path | str, allow: tuple[str, ...]) -> list[AuditReport]:
    """The report of compiled code where it can judge, and that of rows."""
    found = []
    for how in ("compiled", "python"):
        monkeypatch.setenv("VSR_REPLAY", how)
        found.append(audit(str(path), input="tigerbeetle", allow=allow))
    return found


def check_same(monkeypatch: pytest.MonkeyPatch, path: Path | str, allow: tuple[str, ...]) -> str:
    """Both say the same, in the same order; the verdict."""
    compiled, rows = both(monkeypatch, path, allow)
    assert compiled.verdicts == rows.verdicts
    assert compiled.problems == rows.problems
    for one, other in zip(compiled.verdicts, rows.verdicts, strict=True):
        assert list(one.coverage) == list(other.coverage)
        assert list(one.events_by_name) == list(other.events_by_name)
    return compiled.verdict


def changed(lines: list[str], seed: int) -> list[str]:
    """The lines with one change: a number, a word, a checksum, a line that is gone, doubled, swapped or damaged."""
    rng, found = random.Random(seed), list(lines)
    at = rng.choice([n for n, line in enumerate(lines) if line.startswith("[") and "): " in line])
    line, how = lines[at], rng.randrange(8)
    if how == 0:
        del found[at]
    elif how == 1:
        found.insert(at, line)
    elif how == 2:
        found[at : at + 2] = reversed(found[at : at + 2])
    elif how == 3:
        found[at] = line[:9] + "\x00" + line[9:]
    else:
        of, by = {4: (r"[a-z_]{4,}", rng.choice(WORDS)), 5: (r"[0-9a-f]{8,}", "1" * 32)}.get(how, (r"\d+", ""))
        if spans := list(re.finditer(of, line)):
            span = rng.choice(spans)
            text = by or str(max(0, int(span[0]) + rng.choice((-1, 1, 2, 10**30))))
            found[at] = line[: span.start()] + text + line[span.end() :]
    return found


def files(folder: Path, name: str, count: int, seeds: range) -> Iterator[Path]:
    """Logs with the first lines of a shipped one, each with one change; some are packed."""
    lines = lines_of(name, count)
    for seed in seeds:
        data = "".join(f"{line}\n" for line in changed(lines, seed)).encode()
        path = folder / f"{seed}.log{'.zst' * (seed % 3 == 0)}"
        path.write_bytes(zstandard.ZstdCompressor().compress(data) if seed % 3 == 0 else data)
        yield path


BOTH = [(ALONE, (SOLO,)), pytest.param(LATER, (), marks=pytest.mark.long)]
"""Log → what of its release's ways is allowed in it."""


@pytest.mark.parametrize(("name", "allow"), BOTH)
def test_a_log_that_plainly_conforms_is_judged_by_compiled_code_alone(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], name: str, allow: tuple[str, ...]
) -> None:
    assert check_same(monkeypatch, shipped(name), allow) == "conforms"
    assert "not judged by compiled code" not in capfd.readouterr().err


def test_what_compiled_code_refuses_is_judged_row_by_row_and_told(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert check_same(monkeypatch, shipped(ALONE), ()) == "violates"
    assert "advance: on_request is refused" in capfd.readouterr().err


@pytest.mark.parametrize(("name", "allow"), BOTH)
def test_of_changed_logs_both_say_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, allow: tuple[str, ...]
) -> None:
    found = {check_same(monkeypatch, path, allow) for path in files(tmp_path, name, 4000, range(6))}
    assert "conforms" in found


def test_an_interrupt_while_compiled_code_asks_is_raised_once_it_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(run: whole.LinesRun, number: int) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(whole.LinesRun, "answer", interrupted)
    monkeypatch.setenv("VSR_REPLAY", "compiled")
    report = audit(str(shipped(LATER)), input="tigerbeetle")
    assert report.stopped.startswith("interrupted")
    assert (list(report.verdicts), report.exit_code) == ([], 4)


def test_runs_one_after_the_other_in_one_packed_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The second of them is refused: its lines are told as they stand in the file."""
    packed = tmp_path / "both.log.zst"
    lines = [*lines_of(LATER), *lines_of(ALONE)]
    packed.write_bytes(zstandard.ZstdCompressor().compress("".join(f"{line}\n" for line in lines).encode()))
    compiled, rows = both(monkeypatch, packed, ())
    assert compiled.verdicts == rows.verdicts
    (violation,) = compiled.verdicts[1].violations
    assert violation.carried["line"] == lines[violation.line - 1][:300]


@pytest.mark.long
@pytest.mark.parametrize("name", [*REJECTED, *CONFORMING])
def test_of_every_shipped_log_and_of_a_hundred_changed_ones_both_say_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    for allow in ((), (ACKS,), (ACKS, SOLO)):
        check_same(monkeypatch, shipped(name), allow)
    for path in files(tmp_path, name, 20_000, range(100, 200)):
        check_same(monkeypatch, path, (ACKS, SOLO))
