"""benchmarks.iggy: copies up to a size, the floor, and the figures of an audit, on logs that are made here."""

from __future__ import annotations

import json
from pathlib import Path

import zstandard

from benchmarks.iggy import copy, floor, judge
from tests.refinement.iggy.test_logs import calm, simulated


def test_the_logs_are_copied_searched_and_judged(tmp_path: Path) -> None:
    logs, copies, out = tmp_path / "shipped", tmp_path / "copies", tmp_path / "figures.json"
    for folder, file in (("simulator", simulated(tmp_path)), ("server", calm().write(tmp_path))):
        (logs / folder).mkdir(parents=True)
        (logs / folder / "calm.log.zst").write_bytes(zstandard.compress(file.read_bytes()))
    copies.mkdir()
    size, lines = copy(copies, logs, megabytes=0)
    assert (size, lines, list(copies.iterdir())) == (0, 0, [])
    size, lines = copy(copies, logs, megabytes=1)
    assert size > 1_000_000
    assert lines > 1_000
    for extra in sorted(copies.iterdir())[6:]:
        extra.unlink()
    assert floor(copies) > 0
    judge(copies, "local", 1, out)
    assert json.loads(out.read_text())["verdicts"] == {"conforms": 3, "inconclusive": 3}
