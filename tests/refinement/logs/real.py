"""Real logs of Iggy and Oxia, beside the checkout; tests that read them are skipped where they are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewproof.refinement.logs.judge import judge_unit
from viewproof.refinement.verdict import RunVerdict, UnitResult

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "traces" / "real"
IGGY, OXIA = FOLDER / "iggy", FOLDER / "oxia"


def needs(folder: Path) -> pytest.MarkDecorator:
    """Skip where the logs are not there."""
    return pytest.mark.skipif(not folder.is_dir(), reason=f"no logs in {folder}")


def judged(adapter: str, *files: Path) -> UnitResult:
    """The audit of files that belong together."""
    result = judge_unit(tuple(str(file) for file in files), adapter)
    assert not result.tool_errors
    return result


def verdict(adapter: str, *files: Path) -> RunVerdict:
    """The verdict on their first run."""
    result = judged(adapter, *files)
    assert not result.problems
    return result.verdicts[0]


def unpacked(file: Path) -> list[str]:
    """The lines of a packed file."""
    import zstandard

    with file.open("rb") as raw:
        return zstandard.ZstdDecompressor().stream_reader(raw).read().decode().splitlines()


__all__ = ["FOLDER", "IGGY", "OXIA", "judged", "needs", "unpacked", "verdict"]
