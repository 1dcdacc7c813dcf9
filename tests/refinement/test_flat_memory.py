"""The memory of the compiled replay of one large run is flat: whatever is old is let go."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.giant_data import giant
from viewproof.refinement import judging
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import discover
from viewproof.refinement.flat import dictionary, program, streaming
from viewproof.refinement.judging import judge_plain, judge_unit
from viewproof.refinement.verdict import AuditOptions

EVENTS = 60_000


@pytest.mark.long
def test_memory_is_flat_after_the_first_tenth_of_a_large_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VSR_REPLAY", "compiled")
    monkeypatch.setattr(judging, "STREAM_BYTES", 0)
    monkeypatch.setattr(streaming, "PART_ROWS", 1 << 9)
    monkeypatch.setattr(program, "WINDOW_MAX", 1 << 8)
    monkeypatch.setattr(dictionary, "TEXTS_KEPT", 1 << 11)
    taken: list[tuple[int, int]] = []

    class Counted(program.FlatRun):
        def take(self, *given: Any) -> bool:
            whole = super().take(*given)
            taken.append((self.events, self.bytes))
            return whole

    monkeypatch.setattr(program, "FlatRun", Counted)
    (unit,) = discover([str(giant(tmp_path, EVENTS))]).units
    result = judge_plain(unit, AuditOptions(), check_run, 0)
    assert result is not None
    assert result.verdicts[0].events >= EVENTS
    (first,) = {held for events, held in taken if events >= EVENTS // 10}
    assert first < 4 << 20
    monkeypatch.setenv("VSR_REPLAY", "python")
    assert replace(judge_unit(unit, AuditOptions(), check_run), spent={}) == replace(result, spent={})
