"""Writing a file: a disk that is full is told with the name of the file, which the system leaves out."""

from __future__ import annotations

from pathlib import Path


def write_bytes(file: Path, data: bytes) -> None:
    """Write the whole file."""
    try:
        file.write_bytes(data)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None


def write_text(file: Path, text: str) -> None:
    """Write the whole file, as UTF-8."""
    write_bytes(file, text.encode())
