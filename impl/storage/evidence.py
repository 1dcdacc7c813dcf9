"""What a replica must not forget of itself, each in a file in its data directory, in JSON.

Before it stops for a log that contradicts what it executed: who offered what, and what it had executed there. The same
contradiction is kept once. While such a file is there, the replica says so in its status: it is for the operator to
take it away, once it is known who broke the protocol.

If its directory is older than what the others heard of it: that it is. They may forget it, being started anew; with
this file no replica starts, and `vsr recover` puts the file aside with all others.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from viewproof.impl.storage.file import FileSystem, write_atomically

__all__ = ["OUTDATED_NAME", "Evidence", "evidence_in", "keep_evidence", "keep_outdated", "outdated_in"]

OUTDATED_NAME = "outdated.json"
"""Says that the directory is older than what was heard of its replica."""

PREFIX = "contradiction-"
FILES_MAX = 16
"""After so many the last one is replaced."""

SIZE_MAX = 1 << 26
"""Largest file that is looked into, bytes."""


class Evidence(NamedTuple):
    """A file, and why the replica stopped; the reason is "" if the file cannot be read."""

    path: str
    reason: str


def keep_evidence(files: FileSystem, directory: str, reason: str, contents: Mapping[str, object]) -> str:
    """Writes `contents` with the reason, durably, and returns the file's path. Raises OSError."""
    known = evidence_in(files, directory)
    for evidence in known:
        if evidence.reason == reason:
            return evidence.path
    path = os.path.join(directory, f"{PREFIX}{min(len(known), FILES_MAX - 1) + 1}.json")
    data = msgspec.json.encode({"reason": reason, **contents})
    write_atomically(files, path, msgspec.json.format(data, indent=1) + b"\n")
    return path


def keep_outdated(files: FileSystem, directory: str, reason: str) -> None:
    """Writes, durably, that the directory is older than what was heard of its replica. Raises OSError."""
    path = os.path.join(directory, OUTDATED_NAME)
    if not files.exists(path):
        write_atomically(files, path, msgspec.json.format(msgspec.json.encode({"reason": reason}), indent=1) + b"\n")


def outdated_in(files: FileSystem, directory: str) -> str:
    """Why the directory must not be started with, or "". Raises OSError."""
    path = os.path.join(directory, OUTDATED_NAME)
    return (_reason_in(files, path) or "it was found to be older") if files.exists(path) else ""


def evidence_in(files: FileSystem, directory: str) -> list[Evidence]:
    """What is kept in a data directory. Raises OSError."""
    found: list[Evidence] = []
    for name in files.names(directory):
        if not (name.startswith(PREFIX) and name.endswith(".json")):
            continue
        path = os.path.join(directory, name)
        found.append(Evidence(path, _reason_in(files, path)))
    return found


class _Kept(msgspec.Struct):
    reason: str


def _reason_in(files: FileSystem, path: str) -> str:
    try:
        with contextlib.closing(files.open(path)) as file:
            return msgspec.json.decode(file.read_at(0, SIZE_MAX), type=_Kept).reason
    except (OSError, msgspec.DecodeError):
        return ""
