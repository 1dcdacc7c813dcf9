"""Types of options, and what keeps a command from writing over what it reads. Wrong ones are usage errors (exit 2)."""

from __future__ import annotations

import math
import os
import stat
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import click

from viewproof.refinement.discovery import is_trace

EMPTY = "the path is empty (a variable that is not set?); . is the directory at hand"
SIZE_MAX = 4096
"""Of a bounded model: more is a slip, and is refused before memory runs out."""


class Place(click.Path):
    """A path that is not empty; a directory, where `file_okay` is false, is not a device or a pipe either."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path."""
        if not str(value):
            self.fail(EMPTY, param, ctx)
        path = super().convert(value, param, ctx)
        if not self.file_okay and os.path.exists(value) and not os.path.isdir(value):
            self.fail(f"{value} is no directory", param, ctx)
        return path


class FaultName(click.Choice):  # type: ignore[type-arg,unused-ignore]
    """A known mistake; a name that is none is refused with those that are like it, not with all of them."""

    def __init__(self, known: Iterable[str]) -> None:
        super().__init__(sorted(known))

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name, if there is such a mistake."""
        if value in self.choices:
            return str(value)
        like = get_close_matches(str(value), self.choices, n=3)
        like = like or [name for name in self.choices if name.startswith(str(value).partition(".")[0] + ".")]
        meant = f"; did you mean {' or '.join(like)}?" if like else ""
        return self.fail(f"{value!r} is no mistake that is known here{meant} (all of them: docs/faults.md)", param, ctx)


class RunName(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """The id of a run, which is the name of a directory too."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The id, if a directory may have that name."""
        if value in ("", ".", "..") or "/" in value or "\0" in value:
            self.fail(f"{value!r} is not the name of one directory", param, ctx)
        return str(value)


class OutputFile(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A file to write: one that cannot be written is refused before the work starts, not after.

    With `made`, its directory may be missing, as the command makes it.
    """

    name = "file"

    def __init__(self, *, made: bool = False) -> None:
        self._made = made

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """The path, if it can be written."""
        if not str(value):
            self.fail(EMPTY, param, ctx)
        path = Path(value)
        if str(path) == "-":
            self.fail("- is not standard output here; that is /dev/stdout, or ./- is a file of this name", param, ctx)
        problem = self._problem(path)
        if problem:
            self.fail(f"{path} cannot be written: {problem}", param, ctx)
        return path

    def _problem(self, path: Path) -> str:
        try:
            if path.is_dir():
                return "it is a directory"
            if path.exists():
                return "" if os.access(path, os.W_OK) else "permission denied"
            directory = Path(os.path.realpath(path)).parent
            if not directory.exists():
                return "" if self._made else f"there is no directory {directory}"
            if not directory.is_dir():
                return f"{directory} is no directory"
        except OSError as error:
            return error.strerror or str(error)
        return "" if os.access(directory, os.W_OK | os.X_OK) else f"permission denied in {directory}"


class Seconds(click.FloatRange):
    """A finite number of seconds above 0, or with `zero` from 0 on."""

    def __init__(self, *, zero: bool = False) -> None:
        super().__init__(min=0, min_open=not zero)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number; refuses infinity and what is no number."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


addresses_option = click.option("--addresses", required=True, help="HOST:PORT of all replicas by index, with commas.")
CLUSTER_MAX = (1 << 64) - 1
cluster_id_option = click.option(
    "--cluster", "cluster_id", type=click.IntRange(0, CLUSTER_MAX), default=1, show_default=True, help="Its number."
)
json_option = click.option("--json", "json_file", type=OutputFile(), help="Write the result as JSON.")
tls_option = click.option(
    "--tls",
    type=Place(file_okay=False, exists=True),
    help="Directory with certificate.pem, key.pem and ca.pem, as `vsr authority` makes them.",
)
json_option_of_maker = click.option("--json", "json_file", type=OutputFile(made=True), help="Write the result as JSON.")
"""For commands that make directories, in which the file may lie."""


def protect(
    outputs: Mapping[str, Path | None], files: Iterable[str | Path] = (), directories: Iterable[str | Path] = ()
) -> None:
    """Refuse an output (by option) that is one of the `files` that are read, or lies among traces, or two that are one.

    Among traces it lies in one of the `directories`, or below it, under the name of a trace: the next audit of the
    directory would read it.
    """
    read = {_identity(file): str(file) for file in files}
    searched = [os.path.realpath(directory) for directory in directories]
    written: dict[tuple[Any, ...], str] = {}
    for option, path in outputs.items():
        if path is None or _is_stream(path):
            continue
        identity, real = _identity(path), os.path.realpath(path)
        if identity in read:
            raise _refusal(option, f"{path} is an input ({read[identity]}) and would be overwritten")
        if is_trace(path.name) or is_trace(real):
            for directory in searched:
                if _lies_in(real, directory) or _lies_in(os.path.abspath(path), directory):
                    raise _refusal(option, f"{path} has the name of a trace and lies among traces, in {directory}")
        if identity in written:
            raise _refusal(option, f"{path} is written by {written[identity]} too")
        written[identity] = option


def protect_data(option: str, path: Path | None, directories: Iterable[Path]) -> None:
    """Refuse an output inside a replica's data directory."""
    for directory in directories:
        if path is not None and not _is_stream(path) and _lies_in(os.path.realpath(path), os.path.realpath(directory)):
            raise _refusal(option, f"{path} lies in a replica's data directory, {directory}")


def _refusal(option: str, text: str) -> click.BadParameter:
    return click.BadParameter(text, param_hint=option)


def _lies_in(path: str, directory: str) -> bool:
    return os.path.commonpath([path, directory]) == directory


def _is_stream(path: Path) -> bool:
    """Is it a terminal, a pipe or the like, into which any number may write?"""
    try:
        return not stat.S_ISREG(path.stat().st_mode)
    except OSError:
        return False


def _identity(path: str | Path) -> tuple[Any, ...]:
    """Equal for two paths of one file; by its path as long as there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return (os.path.realpath(path),)
    return status.st_dev, status.st_ino


def configuration_of(given: tuple[str, ...]) -> dict[str, int]:
    """COLUMN=N, each as column and number."""
    found = {}
    for word in given:
        column, _, value = word.partition("=")
        if not value.isdecimal():
            raise click.BadParameter(f"{word!r} is not COLUMN=N, such as replicas=3", param_hint="--set")
        found[column] = int(value)
    return found
