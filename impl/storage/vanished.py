"""Files that a replica keeps open, and that vanish, are cut or replaced by another while its process runs.

What was written to an open file whose name is gone is lost with the process, though every sync succeeded. So before a
write is reported durable, its file must have its name still, and before it, its length. A file without a name is copied
to a new one of that name: the process can still read it. A file that was cut, or whose name is another file's now, or
whose directory is gone, ends the process: what is durable is unknown, or somebody else has begun to mend it.
"""

from __future__ import annotations

import os

from viewproof.impl.storage.file import TEMPORARY_SUFFIX, File, FileSystem, Presence, StorageError

__all__ = ["FileVanishedError", "require_size", "with_name"]

CHUNK = 1 << 20


class FileVanishedError(StorageError):
    """A file was cut, replaced, or lost with its directory while the process ran; the text names it and the way on."""


def require_size(file: File, size: int) -> None:
    """Raises FileVanishedError if the file is shorter than the `size` bytes that were made durable in it."""
    found = file.size()
    if found < size:
        raise FileVanishedError(
            f"{file.path}: it was cut to {found} bytes while the process ran; {size} were durable. Nothing more is "
            "written or drained, and the process stops; `vsr recover` says what to do"
        )


def with_name(files: FileSystem, file: File) -> tuple[File, str]:
    """The file itself if its name is its own; if nothing has that name, a durable copy under it, and what was done in
    words: the file is closed then.

    Raises FileVanishedError if something else has the name, or its directory is gone; OSError if it cannot be copied.
    """
    presence = files.presence(file)
    if presence is Presence.HERE:
        return file, ""
    if presence is not Presence.MISSING:
        what = (
            "another file has its name now" if presence is Presence.REPLACED else "its directory was removed or renamed"
        )
        raise FileVanishedError(
            f"{file.path}: {what}, while the process ran: what it writes would be lost. The process stops; if the "
            "files were moved on purpose, start it where they are now, else `vsr recover` says what to do"
        )
    copy = _copied(files, file)
    file.close()
    return copy, f"{copy.path}: it was gone while the process ran: it was written again"


def _copied(files: FileSystem, file: File) -> File:
    path, size = file.path, file.size()
    temporary = path + TEMPORARY_SUFFIX
    if files.exists(temporary):
        files.remove(temporary)
    copy = files.create(temporary)
    try:
        for offset in range(0, size, CHUNK):
            chunk = file.read_at(offset, CHUNK)
            if any(chunk) or offset + CHUNK >= size:  # a ring has large parts that were never written
                copy.write_at(offset, chunk)
        copy.sync()
        files.rename(temporary, path)
    except OSError:
        copy.close()
        raise
    copy.path = path
    files.sync_directory(os.path.dirname(path))
    return copy
