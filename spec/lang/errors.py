"""Errors of the specification language. Every message names the source line that caused it."""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

_PASSED_OVER = [str(Path(__file__).parent)]
"""Directories of code that records: a place in a specification, or in a mapping, is never in them."""
_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Source:
    """Where a piece of specification text stands: file, first line (1-based) and the text itself."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class SpecError(Exception):
    """A specification (or a change of it) that the language refuses, with the place that caused it."""

    def __init__(self, message: str, source: Source | None = None) -> None:
        self.message = message
        self.source = source
        super().__init__(f"{source}: {message}" if source else message)


class RangeError(SpecError):
    """A value left the declared range of its variable, or an index the declared sort."""


class Disabled(Exception):  # noqa: N818 - not an error: the action's guard is false here
    """Raised inside a concrete action when a guard conjunct (0-based, as in the recorded guards) is false."""

    def __init__(self, conjunct: int) -> None:
        self.conjunct = conjunct
        super().__init__(conjunct)


def pass_over(directory: Path) -> None:
    """Code below the directory records what others write: places of errors are those of its callers."""
    if str(directory) not in _PASSED_OVER:
        _PASSED_OVER.append(str(directory))


def _spec_frame() -> FrameType | None:
    """The innermost frame outside the recorders: the line of the specification that is at work."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(tuple(_PASSED_OVER)):
        frame = frame.f_back
    return frame


def evaluated(annotations: Mapping[str, Any]) -> dict[str, Any]:
    """Annotations of a class or function of the specification, with the names that stand where it is defined."""
    frame = _spec_frame()
    assert frame is not None
    names = frame.f_globals, frame.f_locals
    return {name: eval(of, *names) if isinstance(of, str) else of for name, of in annotations.items()}  # noqa: S307


def here() -> Source:
    """The specification line being evaluated now, with its full source segment."""
    frame = _spec_frame()
    if frame is None:
        return Source("<unknown>", 0, "")
    code = frame.f_code
    positions = list(code.co_positions())
    start, end, col, end_col = positions[frame.f_lasti // 2]
    line = start or frame.f_lineno
    lines = [linecache.getline(code.co_filename, n) for n in range(line, (end or line) + 1)]
    if lines and col is not None and end_col is not None:
        lines[-1] = lines[-1].encode()[:end_col].decode(errors="replace")
        lines[0] = lines[0].encode()[col:].decode(errors="replace")
    text = " ".join(part.strip() for part in lines)
    return Source(_short(code.co_filename), line, text)


@lru_cache(maxsize=1024)
def _short(filename: str) -> str:
    """Path relative to the project (`spec/vsr/core/normal.py`), so that messages do not depend on the checkout."""
    try:
        return str(Path(filename).resolve().relative_to(_ROOT))
    except ValueError:
        return filename


def source_of(fn: Callable[..., Any]) -> Source:
    """File and line of a specification function; of the one that it wraps, if it does."""
    inner = inspect.unwrap(fn)
    code = inner.__code__
    return Source(_short(code.co_filename), code.co_firstlineno, inner.__name__)
