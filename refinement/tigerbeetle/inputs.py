"""Which log files an audit reads: the named ones, and those below named directories whose name ends like a log's."""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from viewproof.refinement.verdict import InputProblem

SUFFIXES: Final = (".log", ".log.gz", ".log.zst")
_ROTATED = re.compile(r"(\.[0-9]+)?(\.gz|\.zst)?$")


@dataclass(frozen=True, slots=True)
class Logs:
    """Files to read, in order and each once; what could not be read; directories without a log."""

    files: tuple[str, ...]
    problems: tuple[InputProblem, ...] = ()
    empty: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()


def survey_logs(paths: Iterable[str], suffixes: tuple[str, ...] = SUFFIXES) -> Logs:
    """Find the logs: named files, and those below named directories whose names end so."""
    files: list[str] = []
    problems: list[InputProblem] = []
    empty: list[str] = []
    directories: list[str] = []
    for path in paths:
        for name in _expanded(path):
            try:
                mode = os.stat(name).st_mode
            except OSError as error:
                problems.append(InputProblem(name, 0, "", "a log file or a directory", error.strerror or str(error)))
                continue
            if stat.S_ISDIR(mode):
                directories.append(name)
                found = _below(name, problems, suffixes)
                files += found
                if not found:
                    empty.append(f"{name}: no file in it ends in {', '.join(suffixes)}")
            elif stat.S_ISREG(mode):
                files.append(name)
            else:
                problems.append(InputProblem(name, 0, "", "a log file or a directory", "something else"))
    once = {os.path.realpath(file): file for file in reversed(files)}
    return Logs(tuple(sorted(once.values())), tuple(problems), tuple(empty), tuple(directories))


def _expanded(path: str) -> list[str]:
    if os.path.exists(path) or not glob.has_magic(path):
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]


def _below(directory: str, problems: list[InputProblem], suffixes: tuple[str, ...]) -> list[str]:
    def unreadable(error: OSError) -> None:
        problems.append(InputProblem(str(error.filename), 0, "", "a readable directory", error.strerror or str(error)))

    found = []
    for where, _, names in os.walk(directory, onerror=unreadable):
        found += [os.path.join(where, name) for name in names if ends_in(name, suffixes)]
    return sorted(found)


def ends_in(name: str, suffixes: tuple[str, ...]) -> bool:
    """Does a file's name end like a log's, packed or rotated (`x.log.1`) as it may be?"""
    return name.endswith(suffixes) or _ROTATED.sub("", name).endswith(suffixes)
