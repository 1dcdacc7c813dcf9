"""Where output goes: progress and notes to stderr (rich on a terminal, plain lines elsewhere), results to stdout."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from viewproof.refinement.cli.options import json_option
from viewproof.refinement.reports.escape import printable
from viewproof.refinement.reports.table import write_json

PLAIN_SECONDS = 5.0
"""How often a plain progress line is printed where stderr is no terminal."""
NAME_MAX = 60
"""Characters beside the bar."""

__all__ = ["Steps", "json_option", "note", "save_json", "steps"]


def note(text: str) -> None:
    """One line on stderr."""
    click.echo(printable(text), err=True)


def save_json(result: dict[str, Any], file: Path | None) -> None:
    """Write a command's machine-readable result, where it was asked for."""
    if file is not None:
        write_json(result, file)


class Steps:
    """Progress over a known number of steps; call it with (done, total, name)."""

    def __init__(self, title: str, bar: Progress | None) -> None:
        self._title, self._bar = title, bar
        self._task = bar.add_task(title, total=None) if bar else None
        self._printed = time.monotonic()
        self._standing = ""

    def interrupted(self) -> None:
        """Say how far it came."""
        if self._standing:
            note(f"{self._title}: interrupted, {self._standing} done")

    def __call__(self, done: int, total: int, name: str) -> None:
        """Show that `done` of `total` are done, the last of them `name`."""
        self._standing = f"{done:,} of {total:,}"
        if self._bar is not None and self._task is not None:
            text = escape(printable(f"{self._title}: {name}"[:NAME_MAX]))
            self._bar.update(self._task, completed=done, total=total, description=text)
        elif time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            note(f"{self._title}: {done} of {total} ({name})")


@contextmanager
def steps(title: str) -> Iterator[Steps]:
    """Progress on stderr for the time of a `with`; interrupted, it says how far that came."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True) if sys.stderr.isatty() else None
    shown = Steps(title, bar)
    try:
        with bar or nullcontext():
            yield shown
    except KeyboardInterrupt:
        shown.interrupted()
        raise
