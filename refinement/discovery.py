"""Which trace files an audit reads: the named paths, and what lies below named directories.

Nothing is passed over in silence: what cannot be read is a problem with its place, and what is no trace is named.
Every file is read once, by whatever paths and links it is reached.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from viewproof.refinement.partitions import is_hidden, table_format
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.verdict import InputProblem

_NAMES: Final = re.compile(r"\.(ndjson|jsonl)(\.[0-9]+)?(\.gz|\.zst)?$|\.parquet$")
_ROTATED: Final = re.compile(r"(\.[0-9]+)?(\.gz|\.zst)?$")
_PATTERNS: Final = "*.ndjson, *.jsonl (also rotated: .1, .2 …; and packed: .gz, .zst), *.parquet"
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):/")
"""How an address begins: `s3a://bucket/…`, `dbfs:/…`, `file:///…`."""
_PACKED = 12

_KINDS: Final = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISDIR, "a directory"),
)


class TraceInputError(Exception):
    """Malformed or unusable input, as an exception: for what stops a command at once (a path that does not exist)."""

    def __init__(self, problem: InputProblem) -> None:
        self.problem = problem
        super().__init__(str(problem))


@dataclass(frozen=True, slots=True)
class Unit:
    """Files that are read together because one directory holds them: normally those of one run. Of a log that is
    streamed it is a part of one file.
    """

    name: str
    files: tuple[str, ...]
    part: Segment | None = None

    @property
    def size(self) -> int:
        """About how many bytes of NDJSON the files hold; a packed byte counts as `_PACKED`, a file that is gone 0."""
        sizes = ((file, _size(file)) for file in self.files)
        return sum(size * _PACKED if file.endswith((".gz", ".zst", ".parquet")) else size for file, size in sizes)


def _size(file: str) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class Inputs:
    """What an audit was given: units in order of name, empty directories, and other files that lay beside.

    `refused` are named paths that cannot be audited; `problems` are what cannot be read below a named directory;
    `repeated` are further paths of files that are read already; `directories` are those that were searched; `remote`
    are addresses of other file systems, which were not looked at.
    """

    units: tuple[Unit, ...]
    empty: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    refused: tuple[InputProblem, ...] = ()
    problems: tuple[InputProblem, ...] = ()
    repeated: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()
    adapter: str = "native"
    remote: tuple[str, ...] = ()
    suffixes: tuple[str, ...] = ()

    @property
    def files(self) -> tuple[str, ...]:
        """All files that are read."""
        return tuple(file for unit in self.units for file in unit.files)


def is_trace(path: str) -> bool:
    """Whether the file's name says that it holds a trace."""
    return _NAMES.search(path) is not None


def ends_in(path: str, suffixes: tuple[str, ...]) -> bool:
    """Does a file's name end like a log's, rotated (`x.log.1`) or packed as it may be?"""
    return path.endswith(suffixes) or _ROTATED.sub("", path).endswith(suffixes)


def discover(paths: Iterable[str]) -> Inputs:
    """Find the trace files that the given files, directories and globs name.

    Raises `TraceInputError` for a path that does not exist, or that names no trace file.
    """
    inputs = survey(paths)
    if inputs.refused:
        raise TraceInputError(inputs.refused[0])
    return inputs


def survey(
    paths: Iterable[str], adapter: str = "native", suffixes: tuple[str, ...] = (), *, any_name: bool = False
) -> Inputs:
    """Like `discover`, with the named paths that cannot be audited as `refused` instead of an exception.

    The files of an adapter end in one of `suffixes`, but for those that are named, where they may have `any_name`.
    """
    search = _Search(suffixes, any_name)
    remote: list[str] = []
    for path in paths:
        scheme = _SCHEME.match(path)
        if scheme is not None and scheme[1] != "file":
            remote.append(path)
            continue
        given = path if scheme is None else unquote(urlsplit(path).path)
        for found in search.expand(os.path.normpath(given)):
            search.named(given, found)
    by_directory: dict[str, list[str]] = {}
    for file in search.files.values():
        by_directory.setdefault(os.path.dirname(file) or os.curdir, []).append(file)
    return Inputs(
        units=tuple(Unit(name, tuple(sorted(found))) for name, found in sorted(by_directory.items())),
        empty=tuple(search.empty),
        ignored=tuple(search.ignored),
        refused=tuple(search.refused),
        problems=tuple(search.problems),
        repeated=tuple(search.repeated),
        directories=tuple(search.directories),
        adapter=adapter,
        remote=tuple(remote),
        suffixes=suffixes,
    )


@dataclass(slots=True)
class _Search:
    """What was found so far; files and directories by their identity (device and number), under one path each."""

    suffixes: tuple[str, ...] = ()
    any_name: bool = False
    files: dict[tuple[int, int], str] = field(default_factory=dict)
    seen: set[tuple[int, int]] = field(default_factory=set)
    empty: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)
    refused: list[InputProblem] = field(default_factory=list)
    problems: list[InputProblem] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    directories: list[str] = field(default_factory=list)

    def is_input(self, path: str) -> bool:
        """Does the file's name say that it is to be read?"""
        return ends_in(path, self.suffixes) if self.suffixes else is_trace(path)

    @property
    def patterns(self) -> str:
        """The names of such files, in words."""
        return ", ".join("*" + suffix for suffix in self.suffixes) or _PATTERNS

    def expand(self, given: str) -> list[str]:
        """The path itself, or those that a pattern matches."""
        if os.path.lexists(given):
            return [given]
        if not glob.has_magic(given):
            self.refused.append(
                InputProblem(given, 0, "", "a file, directory or pattern", "nothing: the path does not exist")
            )
            return []
        found = sorted(glob.glob(given, recursive=True))
        if not found:
            self.refused.append(InputProblem(given, 0, "", "a pattern that matches files", "no match"))
        return found

    def named(self, given: str, path: str) -> None:
        """Take a path that the caller named."""
        if not _is_text(path):
            self.refused.append(_no_text(path))
            return
        try:
            status = os.stat(path)
        except OSError as error:
            self.refused.append(_unreadable(path, error))
            return
        if stat.S_ISDIR(status.st_mode):
            before = len(self.files), len(self.repeated), len(self.problems)
            self._below(path, status)
            if before == (len(self.files), len(self.repeated), len(self.problems)):
                self.empty.append(f"{given}: no trace files ({self.patterns}) in this directory")
        elif not self.any_name and not self.is_input(path):
            expected = f"a trace file: {self.patterns}" + ("" if self.suffixes else "; or a log and its --adapter")
            self.refused.append(InputProblem(path, 0, "", expected, os.path.basename(path)))
        elif not stat.S_ISREG(status.st_mode):
            self.refused.append(InputProblem(path, 0, "", "a regular file or a directory", _kind(status)))
        else:
            self._take(path, status)

    def _take(self, path: str, status: os.stat_result) -> None:
        key = (status.st_dev, status.st_ino)
        known = self.files.setdefault(key, path)
        if known == path:
            return
        if os.path.islink(known) and not os.path.islink(path):
            self.files[key], path = path, known
        self.repeated.append(path)

    def _below(self, directory: str, status: os.stat_result) -> None:
        """Take what lies below a directory, following links; a directory that was searched already gives nothing."""
        waiting = [(directory, status)]
        while waiting:
            place, status = waiting.pop()
            if (status.st_dev, status.st_ino) in self.seen:
                continue
            self.seen.add((status.st_dev, status.st_ino))
            self.directories.append(place)
            waiting += reversed(list(self._inside(place)))

    def _inside(self, directory: str) -> Iterator[tuple[str, os.stat_result]]:
        """The directories in a directory; its files are taken."""
        try:
            names = sorted(os.listdir(directory))
        except OSError as error:
            self.problems.append(_unreadable(directory, error, "a readable directory"))
            return
        if (kind := table_format(directory)) is not None:
            expected = "a directory of trace files"
            got = f"a {kind} table: its reader knows which files count, and viewproof.spark.audit takes what it gives"
            self.problems.append(InputProblem(directory, 0, "", expected, got))
            return
        for name in names:
            path = os.path.join(directory, name)
            if is_hidden(name):
                self.ignored.append(path)
                continue
            if not _is_text(path):
                self.problems.append(_no_text(path))
                continue
            try:
                status = os.stat(path)
            except OSError as error:
                if isinstance(error, FileNotFoundError) and not self.is_input(path):
                    self.ignored.append(path)  # a link that leads nowhere, such as an editor's lock
                else:
                    self.problems.append(_unreadable(path, error))
                continue
            if stat.S_ISDIR(status.st_mode):
                yield path, status
            elif not self.is_input(path):
                self.ignored.append(path)
            elif stat.S_ISREG(status.st_mode):
                self._take(path, status)
            else:
                self.problems.append(InputProblem(path, 0, "", "a regular file", _kind(status)))


def _is_text(path: str) -> bool:
    """Are the bytes of the path UTF-8, so that reports can name it?"""
    return path.isascii() or path == path.encode("utf-8", "replace").decode()


def _no_text(path: str) -> InputProblem:
    return InputProblem(path.encode("utf-8", "backslashreplace").decode(), 0, "", "a path in UTF-8", "other bytes")


def _kind(status: os.stat_result) -> str:
    return next((text for test, text in _KINDS if test(status.st_mode)), "a special file")


def _unreadable(path: str, error: OSError, expected: str = "a readable file or directory") -> InputProblem:
    got = error.strerror or str(error)
    if os.path.islink(path):
        got = f"a symbolic link to {os.readlink(path)}: {got}"
    return InputProblem(path, 0, "", expected, got)
