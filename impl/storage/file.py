"""Files as the journal and the superblock need them: real ones, and ones in memory that can crash.

A ``File`` promises little, as a disk does: bytes written are durable only once ``sync`` returned; until then a crash
may keep any prefix of each write, or none of it. ``MemoryFile`` makes that explicit: writes wait in a list until
``sync``, and ``MemoryFileSystem.crash`` decides what of them survives.
"""

from __future__ import annotations

import errno
import functools
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import Enum, auto
from pathlib import Path

__all__ = [
    "TEMPORARY_SUFFIX",
    "File",
    "FileSystem",
    "MemoryFile",
    "MemoryFileSystem",
    "Presence",
    "RealFile",
    "RealFileSystem",
    "StorageError",
    "WriteRefusedError",
    "is_unreadable",
    "write_atomically",
]


TEMPORARY_SUFFIX = ".new"
"""Of the name that a file has until it is whole."""

_UNREADABLE = frozenset({errno.EIO, errno.EBADMSG, getattr(errno, "EUCLEAN", errno.EIO)})


class StorageError(Exception):
    """A storage operation failed, or what is on disk cannot be used; the text names file, place and remedy."""


class WriteRefusedError(StorageError):
    """A write failed, nothing of it counts, and the storage goes on as if it had not been asked for."""


class Presence(Enum):
    """What has the name of an open file: that file, none, or another one; or its directory is gone, too."""

    HERE = auto()
    MISSING = auto()
    REPLACED = auto()
    NO_DIRECTORY = auto()


class File(ABC):
    """One open file. Offsets and sizes are bytes. Every method raises OSError as the operating system would."""

    path: str

    @abstractmethod
    def size(self) -> int:
        """Current length, un-synced writes included."""

    @abstractmethod
    def read_at(self, offset: int, length: int) -> bytes:
        """Bytes at ``offset``: shorter than ``length`` only at the end of the file."""

    @abstractmethod
    def write_at(self, offset: int, data: bytes) -> None:
        """Write all of ``data``. Raises OSError if less was written; some of it may then be in the file."""

    @abstractmethod
    def sync(self) -> None:
        """Return only when everything written so far, and the length, is durable."""

    @abstractmethod
    def truncate(self, size: int) -> None:
        """Cut the file to ``size`` bytes. Durable after ``sync``."""

    @abstractmethod
    def close(self) -> None:
        """Release the file; closing twice is harmless."""

    @abstractmethod
    def forget_cached(self) -> None:
        """What was synced is read from the medium next, as far as the system can be told so."""


class FileSystem(ABC):
    """Creates, opens and lists files. Paths are strings; the parent directory is made if needed."""

    @abstractmethod
    def create(self, path: str) -> File:
        """A new empty file, itself durable (directory entry synced). Raises FileExistsError if there is one."""

    @abstractmethod
    def open(self, path: str) -> File:
        """An existing file for reading and writing. Raises FileNotFoundError."""

    @abstractmethod
    def exists(self, path: str) -> bool:
        """True if a file or directory of this name exists."""

    @abstractmethod
    def size_of(self, path: str) -> int | None:
        """Length of the file of this name, None if there is none."""

    @abstractmethod
    def presence(self, file: File) -> Presence:
        """Whether the name that an open file had is still its own."""

    @abstractmethod
    def names(self, directory: str) -> list[str]:
        """Names of the files in a directory, sorted."""

    @abstractmethod
    def rename(self, source: str, target: str) -> None:
        """Give a file another name, in place of the one that has it. Durable after ``sync_directory``."""

    @abstractmethod
    def remove(self, path: str) -> None:
        """Remove a file. Durable after ``sync_directory``."""

    @abstractmethod
    def sync_directory(self, directory: str) -> None:
        """Return only when every name in ``directory`` is durable as it is."""

    @abstractmethod
    def lock(self, path: str) -> Callable[[], None]:
        """Take ``path``, a file or a directory, for this process alone; returns the release.

        Raises BlockingIOError if another has it.
        """


def is_unreadable(error: OSError) -> bool:
    """True if a read failed for what is on the medium, as a checksum would: not for want of permission or of files."""
    return error.errno in _UNREADABLE


def write_atomically(files: FileSystem, path: str, data: bytes) -> None:
    """A file of this name and content, durable when this returns; a crash leaves the one before, or none.

    Raises OSError; a temporary file may then be left.
    """
    temporary = path + TEMPORARY_SUFFIX
    if files.exists(temporary):
        files.remove(temporary)
    file = files.create(temporary)
    try:
        file.write_at(0, data)
        file.sync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.sync_directory(os.path.dirname(path))


class RealFile(File):
    """A file of the operating system: pread, pwrite, fdatasync, of which `on_sync` is told the seconds.

    Without ``synced`` nothing is flushed: for measurements only.
    """

    def __init__(
        self, path: str, descriptor: int, synced: bool = True, on_sync: Callable[[float], None] | None = None
    ) -> None:
        self.path = path
        self._descriptor = descriptor
        self._synced = synced
        self._on_sync = on_sync

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    @functools.cached_property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        found = os.fstat(self._descriptor)
        return found.st_dev, found.st_ino

    def read_at(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        while length > 0:
            part = os.pread(self._descriptor, min(length, 1 << 24), offset)
            if not part:
                break
            parts.append(part)
            offset += len(part)
            length -= len(part)
        return b"".join(parts)

    def write_at(self, offset: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            if written == 0:
                raise OSError(errno.EIO, "write returned 0 bytes", self.path)
            view = view[written:]
            offset += written

    def sync(self) -> None:
        if self._synced:
            began = time.perf_counter()
            os.fdatasync(self._descriptor)
            if self._on_sync is not None:
                self._on_sync(time.perf_counter() - began)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def forget_cached(self) -> None:
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RealFileSystem(FileSystem):
    """Directories and files of the operating system. Without ``synced`` what is written is not durable."""

    def __init__(self, synced: bool = True, on_sync: Callable[[float], None] | None = None) -> None:
        self._synced = synced
        self._on_sync = on_sync

    def create(self, path: str) -> File:
        parent = Path(path).parent
        missing = [p for p in (parent, *parent.parents) if not p.exists()]
        parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            os.fsync(descriptor)
            for directory in (parent, *(p.parent for p in missing)):
                _sync_directory(directory)
        except OSError:
            os.close(descriptor)
            raise
        return RealFile(path, descriptor, self._synced, self._on_sync)

    def open(self, path: str) -> File:
        return RealFile(path, os.open(path, os.O_RDWR | os.O_CLOEXEC), self._synced, self._on_sync)

    def exists(self, path: str) -> bool:
        return os.path.lexists(path)

    def size_of(self, path: str) -> int | None:
        try:
            return os.stat(path).st_size
        except FileNotFoundError:
            return None

    def presence(self, file: File) -> Presence:
        if not isinstance(file, RealFile):
            raise TypeError(f"{file.path}: not a file of the operating system")
        try:
            found = os.stat(file.path)
        except (FileNotFoundError, NotADirectoryError):
            return Presence.MISSING if os.path.isdir(os.path.dirname(file.path) or ".") else Presence.NO_DIRECTORY
        return Presence.HERE if (found.st_dev, found.st_ino) == file.identity else Presence.REPLACED

    def names(self, directory: str) -> list[str]:
        return sorted(entry.name for entry in os.scandir(directory) if entry.is_file(follow_symlinks=False))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def remove(self, path: str) -> None:
        os.unlink(path)

    def sync_directory(self, directory: str) -> None:
        _sync_directory(Path(directory))

    def lock(self, path: str) -> Callable[[], None]:
        import fcntl  # not on every platform; only the real file system needs it

        descriptor = os.open(path, (os.O_RDONLY if os.path.isdir(path) else os.O_RDWR) | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise
        return lambda: os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class MemoryFile(File):
    """A file in memory whose un-synced writes are a list, so that a crash can lose or tear each of them.

    ``durable`` is what a crash always keeps; ``pending`` the writes since, in order, as (offset, bytes); a truncation
    is (size, None). ``write_budget`` (bytes; None: no limit) makes writes past it fail half-way with ``write_errno``;
    ``sync_errno`` makes the next syncs fail.
    """

    def __init__(self, path: str, durable: bytes = b"") -> None:
        self.path = path
        self.durable = bytearray(durable)
        self.content = bytearray(durable)
        self.pending: list[tuple[int, bytes | None]] = []
        self.write_budget: int | None = None
        self.write_errno = errno.ENOSPC
        self.sync_errno: int | None = None
        self.syncs = 0

    def size(self) -> int:
        return len(self.content)

    def read_at(self, offset: int, length: int) -> bytes:
        return bytes(self.content[offset : offset + length])

    def write_at(self, offset: int, data: bytes) -> None:
        kept = data
        if self.write_budget is not None:
            kept = data[: self.write_budget]
            self.write_budget -= len(kept)
        if kept:
            _overwrite(self.content, offset, kept)
            self.pending.append((offset, bytes(kept)))
        if len(kept) < len(data):
            raise OSError(self.write_errno, os.strerror(self.write_errno), self.path)

    def sync(self) -> None:
        if self.sync_errno is not None:
            raise OSError(self.sync_errno, os.strerror(self.sync_errno), self.path)
        for offset, data in self.pending:
            _replay(self.durable, offset, data)
        self.pending.clear()
        self.syncs += 1

    def truncate(self, size: int) -> None:
        del self.content[size:]
        self.pending.append((size, None))

    def close(self) -> None:
        """Nothing to release."""

    def forget_cached(self) -> None:
        """Nothing is cached."""

    def crash(self, choose: Callable[[int], int] | None = None) -> None:
        """Lose power: of every pending write keep ``choose(length)`` leading bytes (None: nothing survives).

        ``choose`` is called once per pending write with its length (0 for a truncation, kept if it returns > 0 or the
        call order matters to the caller's seed); writes are kept independently, as a disk may reorder them.
        """
        for offset, data in self.pending:
            if choose is None:
                continue
            if data is None:
                if choose(1) > 0:
                    _replay(self.durable, offset, None)
                continue
            kept = data[: max(0, min(len(data), choose(len(data))))]
            if kept:
                _replay(self.durable, offset, kept)
        self.pending.clear()
        self.content = bytearray(self.durable)


def _overwrite(content: bytearray, offset: int, data: bytes) -> None:
    if len(content) < offset:
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _replay(content: bytearray, offset: int, data: bytes | None) -> None:
    if data is None:
        del content[offset:]
    else:
        _overwrite(content, offset, data)


class MemoryFileSystem(FileSystem):
    """Files in memory by path. Open files of one path are one object.

    A new file's name is durable at once; renames and removals wait in order until their directory is synced, and a
    crash keeps a prefix of them.
    """

    def __init__(self) -> None:
        self.files: dict[str, MemoryFile] = {}
        self._changes: list[tuple[str, str, MemoryFile, MemoryFile | None]] = []
        self._locked: set[str] = set()

    def make_file(self, path: str) -> MemoryFile:
        """The object of a new file."""
        return MemoryFile(path)

    def create(self, path: str) -> MemoryFile:
        if path in self.files:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), path)
        self._changes.clear()
        self.files[path] = self.make_file(path)
        return self.files[path]

    def names(self, directory: str) -> list[str]:
        return sorted(os.path.basename(path) for path in self.files if os.path.dirname(path) == directory)

    def rename(self, source: str, target: str) -> None:
        file = self.open(source)
        self._changes.append((source, target, file, self.files.get(target)))
        del self.files[source]
        file.path = target
        self.files[target] = file

    def remove(self, path: str) -> None:
        self._changes.append((path, "", self.open(path), None))
        del self.files[path]

    def sync_directory(self, directory: str) -> None:
        self._changes = [change for change in self._changes if os.path.dirname(change[0]) != directory]

    def open(self, path: str) -> MemoryFile:
        if path not in self.files:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self.files[path]

    def exists(self, path: str) -> bool:
        return path in self.files

    def size_of(self, path: str) -> int | None:
        return self.files[path].size() if path in self.files else None

    def presence(self, file: File) -> Presence:
        found = self.files.get(file.path)
        return Presence.MISSING if found is None else Presence.HERE if found is file else Presence.REPLACED

    def lock(self, path: str) -> Callable[[], None]:
        if not any(each.startswith(path + os.sep) for each in self.files):  # a directory, if so
            self.open(path)
        if path in self._locked:
            raise BlockingIOError(errno.EWOULDBLOCK, os.strerror(errno.EWOULDBLOCK), path)
        self._locked.add(path)
        return lambda: self._locked.discard(path)

    def crash(self, choose: Callable[[int], int] | None = None) -> None:
        """Crash every file (in the order of creation), and drop all locks; see MemoryFile.crash.

        If renames or removals wait, ``choose`` is called first, with their number, for how many of them are kept.
        """
        changes = self._changes
        kept = choose(len(changes)) if changes and choose is not None else 0
        for source, target, file, replaced in reversed(changes[max(0, kept) :]):
            if target:
                del self.files[target]
                if replaced is not None:
                    self.files[target] = replaced
            file.path = source
            self.files[source] = file
        changes.clear()
        for file in self.files.values():
            file.crash(choose)
        self._locked.clear()
