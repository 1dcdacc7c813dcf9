"""Whether a directory for new traces holds traces of other runs, which an audit of it would read too."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable
from pathlib import Path

from viewproof.refinement.cli.output import note
from viewproof.refinement.discovery import is_trace

_SHOWN = 3


def other_runs(out: Path, runs: Iterable[str]) -> list[str]:
    """Names in `out`, other than the directories of `runs`, that are traces or directories which hold some."""
    ours = set(runs)
    if not out.is_dir():
        return []
    return sorted(path.name for path in out.iterdir() if path.name not in ours and _holds_traces(path))


def note_other_runs(out: Path, runs: Iterable[str]) -> None:
    """Say so, if there are some."""
    found = other_runs(out, runs)
    if found:
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        names = ", ".join(found[:_SHOWN]) + more
        command = shlex.join(["vsr", "audit", str(out)])
        note(
            f"note: {out} holds earlier traces too ({names}), and {command} reads them all; "
            "give another directory to keep runs apart"
        )


def _holds_traces(path: Path) -> bool:
    if not path.is_dir():
        return is_trace(path.name)
    return any(is_trace(name) for _, _, names in os.walk(path) for name in names)
