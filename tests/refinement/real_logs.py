"""Real logs of Iggy and Oxia, beside the checkout; tests that read them are skipped where they are not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from viewproof.refinement.adapter import adapter as find_adapter
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import Unit
from viewproof.refinement.joined.judging import judge_joined
from viewproof.refinement.verdict import AuditOptions, RunVerdict, UnitResult

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "traces" / "real"
IGGY, OXIA = FOLDER / "iggy", FOLDER / "oxia"


def needs(folder: Path) -> pytest.MarkDecorator:
    """Skip where the logs are not there."""
    return pytest.mark.skipif(not folder.is_dir(), reason=f"no logs in {folder}")


def judged(adapter: str, *files: Path, **options: Any) -> UnitResult:
    """The audit of files that belong together."""
    unit = Unit(str(files[0] if len(files) == 1 else files[0].parent), tuple(str(file) for file in files))
    result = judge_joined(unit, find_adapter(adapter), AuditOptions(adapter=adapter, **options), check_run)
    assert not result.tool_errors
    return result


def verdict(adapter: str, *files: Path, **options: Any) -> RunVerdict:
    """The verdict on their first run."""
    result = judged(adapter, *files, **options)
    assert not result.problems
    return result.verdicts[0]


def unpacked(file: Path) -> list[str]:
    """The lines of a packed file."""
    import zstandard

    with file.open("rb") as raw:
        return zstandard.ZstdDecompressor().stream_reader(raw).read().decode().splitlines()


__all__ = ["FOLDER", "IGGY", "OXIA", "judged", "needs", "unpacked", "verdict"]
