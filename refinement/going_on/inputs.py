"""Which files an audit that goes on has taken already: by their content, whatever they are called now.

Columns that stand in the names of a file's directories (`run=a/node=0`) are part of its content.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from viewproof.refinement.going_on.directory import Taken
from viewproof.refinement.partitions import path_columns

_CHUNK = 1 << 20


@dataclass(frozen=True)
class New:
    """A file to take: its size and digest, and after which line of it what is new begins (0: all of it is)."""

    path: str
    size: int
    digest: str
    after_line: int


def classify(path: str, taken: Iterable[Taken], name: str = "") -> New | Taken:
    """The file that was taken before if this is that one; else what is new of it: it may go on where one ended.

    `name` is what it is called where it comes from, if it was fetched to the path.
    """
    by_size: dict[int, dict[str, Taken]] = {}
    for one in taken:
        by_size.setdefault(one.size, {})[one.digest] = one
    sizes = sorted(by_size)
    hasher, at, begins = hashlib.blake2b(digest_size=16), 0, None
    if columns := path_columns(name or path):
        hasher.update(repr(sorted(columns.items())).encode())
    with Path(path).open("rb") as file:
        while True:
            wanted = next((size for size in sizes if size > at), None)
            chunk = file.read(_CHUNK if wanted is None else min(_CHUNK, wanted - at))
            if not chunk:
                break
            hasher.update(chunk)
            at += len(chunk)
            if at == wanted:
                begins = by_size[at].get(hasher.hexdigest(), begins)
    digest = hasher.hexdigest()
    if begins is not None and begins.size == at:
        return begins
    return New(path, at, digest, begins.last_line if begins is not None and at else 0)
