"""Where the shipped logs are, and what the audit must say of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from viewproof.api.audit import audit
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.reading import Lines
from viewproof.refinement.verdict import AuditReport

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "traces" / "real"

ACKS, SOLO = "view.acks_survive_view", "view.solo_keeps_view"

REJECTED = {
    "tigerbeetle-2022-06/seed-1.log.zst": (10648, ACKS),
    "tigerbeetle-2022-06/seed-4.log.zst": (19852, ACKS),
    "tigerbeetle-2022-06/seed-7.log.zst": (17718, ACKS),
    "tigerbeetle-2022-06/seed-12.log.zst": (2574, SOLO),
    "tigerbeetle-2022-06/seed-43.log.zst": (140338, ACKS),
}
"""Log → line at which it is rejected, and the deviation that explains it."""

CONFORMING = (
    "tigerbeetle-2022-06/seed-11.log.zst",
    "tigerbeetle-2026-07/seed-103.log.zst",
    "tigerbeetle-2026-07/seed-108.log.zst",
    "tigerbeetle-2026-07/seed-109.log.zst",
    "tigerbeetle-2026-07/seed-118.log.zst",
    "tigerbeetle-2026-07/seed-110.log.zst",
)


def judged(path: Path | str, *allow: str) -> AuditReport:
    """The report on one file."""
    return audit(str(path), input="tigerbeetle", allow=allow)


def lines_of(name: str, count: int = 0) -> list[str]:
    """The lines of a shipped log, or so many of them."""
    found: list[str] = []
    for chunk in Lines(Segment(shipped(name))).chunks():
        found += chunk
        if count and len(found) >= count:
            break
    return found[:count] if count else found


def shipped(name: str) -> str:
    """Path of a shipped log; the test is skipped where the logs are not at hand."""
    path = FOLDER / name
    if not path.exists():
        pytest.skip(f"{path} is not here")
    return str(path)
