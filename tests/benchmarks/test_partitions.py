"""The benchmark of a partition of many messages runs, and its third replica ends with what the others have."""

from __future__ import annotations

from pathlib import Path

from benchmarks.partitions import boot, fill, poll, transfer


def test_a_small_partition_is_filled_booted_polled_and_transferred(tmp_path: Path) -> None:
    segments, size = fill(tmp_path, 3)
    assert segments == 4
    assert size < 1_000
    assert boot(tmp_path) > 0
    assert poll(tmp_path) > 0
    assert transfer(tmp_path) > 0
    names = [sorted(path.name for path in (tmp_path / node).glob("segment-*.log")) for node in "012"]
    assert names[0] == names[1] == names[2]
    assert len(names[0]) == segments
    shared = [(tmp_path / "0" / name).samefile(tmp_path / "1" / name) for name in names[0]]
    assert shared.count(True) == segments - 1
