"""Columns that a directory's name holds, as Spark and Hive write them: `…/run=steady/node=0/part-00000.parquet`.

Names that begin with `_` or `.` are no data (`_SUCCESS`, `_temporary`, `.part.crc`); tables of Delta, Iceberg and Hudi
say in their own metadata which of their files count.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import unquote

from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import BY_NAME, COLUMNS, INDEX, LINE_INDEX, Row

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""How Spark and Hive write a null in a path."""

_DEALT = ("run", "node")


def is_hidden(name: str) -> bool:
    """Is this file or directory none of data, by Spark's rule?"""
    return name.startswith(("_", "."))


def table_format(directory: str) -> str | None:
    """The format whose table a directory is, where its files alone do not say what is in the table."""
    if os.path.isdir(os.path.join(directory, "_delta_log")):
        return "Delta"
    if os.path.isdir(os.path.join(directory, ".hoodie")):
        return "Hudi"
    metadata = Path(directory) / "metadata"
    return "Iceberg" if metadata.is_dir() and any(metadata.glob("*.metadata.json")) else None


def path_columns(file: str) -> dict[str, Any]:
    """The columns in the names of a file's directories: those of the format with values as it has them, others as text.

    A value that cannot be one of its column stays text, and is refused where events are checked.
    """
    return dict(_columns(os.path.dirname(file)))


@lru_cache(maxsize=4096)
def _columns(directory: str) -> tuple[tuple[str, Any], ...]:
    found: dict[str, Any] = {}
    for part in PurePath(directory).parts:
        name, equals, text = part.partition("=")
        if equals and name.isidentifier():
            found[name] = _value(name, unquote(text))
    return tuple(found.items())


def _value(name: str, text: str) -> Any:
    if text == _NULL:
        return None
    column = BY_NAME.get(name)
    is_number = column is not None and column.kind == "int" and text.removeprefix("-").isdecimal()
    return int(text) if is_number else text


def agreeing(file: str, rows: Iterator[Row], log: ProblemLog) -> Iterator[Row]:
    """The rows of a file; where they contradict its path is said to `log`, of each column once: nobody but who wrote
    them knows which is right, and other readers take what the path says. Only run and node are compared, by which
    files are dealt out; another name, as `view=3`, may be a label of who ran it, and the file itself counts.
    """
    named = {INDEX[name]: value for name, value in path_columns(file).items() if name in _DEALT}
    if not named:
        yield from rows
    for row in rows:
        for at in [at for at, value in named.items() if row[at] is not None and row[at] != value]:
            value = _NULL if named[at] is None else named[at]
            expected = f"{value}, as the path says ({COLUMNS[at]}={value})"
            log.add(file, row[LINE_INDEX], COLUMNS[at], expected, f"{row[at]}: take it out of one of the two")
            del named[at]
        yield row


def as_json(columns: Mapping[str, Any]) -> bytes:
    """The beginning of a JSON object that has these columns."""
    return json.dumps(dict(columns), ensure_ascii=False).encode()[:-1] if columns else b"{"
