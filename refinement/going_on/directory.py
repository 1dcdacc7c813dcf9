"""The directory that an audit goes on from: an index, and of each run its events and its state.

`index.json` alone says what counts: every other file is new under a name of its own (or longer than the index says)
until an index that knows it takes the place of the last one. So the state is that before an audit or that after it,
whenever it is stopped.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import msgspec
import xxhash

from viewproof.refinement.going_on.frames import DamagedError

FORMAT = "viewproof.audit-state/1"
NEW_INDEX = "index.json.new"
OF_A_RUN = re.compile(r"run-\d+\.(log|state)-\d+")
"""Names of files that are made here, and removed once they do not count."""


class StateError(ValueError):
    """The state cannot be used: which file, what was expected, and what is there."""


class Taken(msgspec.Struct, frozen=True):
    """A file that was taken: its path then, size in bytes, digest, and the line of its last event."""

    path: str
    size: int
    digest: str
    last_line: int


class Entry(msgspec.Struct, frozen=True):
    """What is kept of a run: `log` bytes of its file of final events, and `size` bytes of that of its state."""

    number: int
    log: int
    size: int
    generation: int
    log_generation: int


class Index(msgspec.Struct):
    """What counts. `subject` is what the state is of: specification, adapter, `options`; `told` is a digest of what
    was said last of each run; `empty` says of files that they hold no event, by their path.
    """

    subject: str
    generation: int = 0
    files: list[Taken] = []
    runs: dict[str, Entry] = {}
    carried: dict[str, str] = {}
    unrecognised: dict[str, tuple[int, int]] = {}
    told: dict[str, str] = {}
    empty: dict[str, str] = {}
    options: dict[str, str] = {}


class _File(msgspec.Struct):
    format: str
    check: str
    index: msgspec.Raw


@dataclass
class Directory:
    """A state directory that this process holds; `changed` are its runs' new entries, for `commit`.

    `numbers` are those for the files of new runs: by default all that no run has.
    """

    path: Path
    index: Index
    changed: dict[str, Entry] = field(default_factory=dict)
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def least(self) -> int:
        """From this number on no run has one."""
        return 1 + max((entry.number for entry in self.index.runs.values()), default=-1)

    @property
    def generation(self) -> int:
        """That of the files that this audit writes."""
        return self.index.generation + 1

    def log(self, entry: Entry) -> Path:
        """The final events of a run, in replay order."""
        return self.path / f"run-{entry.number}.log-{entry.log_generation}"

    def state(self, entry: Entry) -> Path:
        """The state of a run, its verdict, and the events that are not final."""
        return self.path / f"run-{entry.number}.state-{entry.generation}"

    def new_number(self, run: str) -> int:
        """A number for a run's files."""
        return self.index.runs[run].number if run in self.index.runs else next(self.numbers)

    def commit(self) -> None:
        """From now on the changed runs count."""
        self.index.runs |= self.changed
        self.index.generation += 1
        self.changed = {}
        content = msgspec.json.encode(self.index)
        file = _File(FORMAT, xxhash.xxh3_128_hexdigest(content), msgspec.Raw(content))
        new = self.path / NEW_INDEX
        with new.open("wb") as stream:
            stream.write(msgspec.json.encode(file) + b"\n")
            stream.flush()
            os.fsync(stream.fileno())
        new.rename(self.path / "index.json")
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        self.sweep()

    def sweep(self) -> None:
        """Remove what was made here and does not count."""
        counts = {self.path / "index.json", self.path / "lock"}
        counts |= {of(entry) for entry in self.index.runs.values() for of in (self.log, self.state)}
        for file in self.path.iterdir():
            if file not in counts and _is_made_here(file.name):
                file.unlink()


def _is_made_here(name: str) -> bool:
    return name == NEW_INDEX or OF_A_RUN.fullmatch(name) is not None


@contextmanager
def opened(path: Path, empty: Index, differs: Callable[[Mapping[str, str]], str]) -> Iterator[Directory]:
    """The state in a directory, made if there is none, held against other audits. Raises `StateError`.

    `empty` is the index of a new one; `differs` says what is another now, from the options that were kept.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (path / "lock").open("wb")
    except OSError as error:
        raise StateError(f"{path}: expected a directory to keep the state in: {error.strerror or error}") from None
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StateError(f"{path}: another audit is using it") from None
        found = Directory(path, _index(path, empty, differs))
        found.numbers = count(found.least)
        found.sweep()
        yield found


def _index(path: Path, empty: Index, differs: Callable[[Mapping[str, str]], str]) -> Index:
    file = path / "index.json"
    if not file.exists():
        others = sorted(p.name for p in path.iterdir() if p.name != "lock" and not _is_made_here(p.name))
        if others:
            raise StateError(f"{path}: expected an empty directory, or the state of an audit; found {others[0]}")
        return empty
    try:
        content = msgspec.json.decode(file.read_bytes(), type=_File)
        if content.format != FORMAT:
            raise StateError(f"{file}: format: expected {FORMAT}, got {content.format}")
        if xxhash.xxh3_128_hexdigest(bytes(content.index)) != content.check:
            raise DamagedError(f"{file}: its checksum is not that of its content")
        index = msgspec.json.decode(content.index, type=Index)
    except (OSError, msgspec.MsgspecError, DamagedError) as error:
        raise StateError(f"{file}: the state is damaged: {error}") from None
    if index.subject != empty.subject:
        raise StateError(f"{path}: the state is of {differs(index.options)}; begin a new one")
    return index
