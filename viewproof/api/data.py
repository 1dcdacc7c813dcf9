"""Files that come with the package: the documents, and traces of a real cluster to try an audit on."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]


def documents() -> Path:
    """The directory of the documents, the pages that the README lists (Markdown)."""
    return _PACKAGE / "docs"


def samples() -> Path:
    """A directory of recorded traces: a run of three processes, `steady`, in the format of traces/README.md."""
    return _PACKAGE / "traces" / "recorded" / "steady"
