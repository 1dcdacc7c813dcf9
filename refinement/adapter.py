"""Adapters: how the logs of another system become events that the audit knows.

An adapter says which files are its logs, and turns each into records with the columns of `traces/README.md`. All that
follows (order, replay, verdict, explanations, reports; local and Spark) is that of native traces. What a log does not
show is left out of the records: the audit judges what is shown, and names what was missing. A user's own adapter lies
outside the package and is named as `module:NAME` (docs/adapters.md); Spark's executors import it by that name.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from viewproof.refinement.reading import ProblemLog, first_run, read_rows
from viewproof.refinement.schema import BY_NAME, COLUMNS, INDEX, Row, check_record
from viewproof.refinement.verdict import AuditOptions

Record = dict[str, Any]
"""An event: columns of the trace format by name, and own ones, which are carried along."""

NATIVE = "native"


class AdapterError(ValueError):
    """There is no adapter of that name, or it is none."""


@dataclass(frozen=True)
class Adapter:
    """`records(file)` gives the events of a log in any order, each with its line from 1; None for a line that the
    adapter does not recognise: these are counted and named. Files end in one of `suffixes`.
    """

    name: str
    doc: str
    suffixes: tuple[str, ...]
    records: Callable[[str], Iterator[tuple[int, Record | None]]]


@lru_cache(maxsize=8)
def adapter(name: str) -> Adapter:
    """The adapter `module:NAME`. Raises `AdapterError`."""
    module, _, attribute = name.partition(":")
    if not attribute:
        raise AdapterError(f"{name!r} is not MODULE:NAME, such as my_logs:ADAPTER")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except ImportError as error:
        raise AdapterError(f"{module} cannot be imported: {error}") from None
    if not isinstance(found, Adapter):
        raise AdapterError(f"{name} is no Adapter")
    return found


def rows_of(file: str, log: ProblemLog, options: AuditOptions) -> Iterator[Row]:
    """The events of one file as rows followed by (file, line); what is malformed, or not recognised, goes to `log`.

    The columns to judge without are taken away.
    """
    rows = read_rows(file, log) if options.adapter == NATIVE else _adapted(file, log, options.adapter)
    return _without(rows, {INDEX[name] for name in options.without}) if options.without else rows


def _without(rows: Iterator[Row], gone: set[int]) -> Iterator[Row]:
    for row in rows:
        yield tuple(None if at in gone else value for at, value in enumerate(row))


def _adapted(file: str, log: ProblemLog, name: str) -> Iterator[Row]:
    try:
        for line, record in adapter(name).records(file):
            row = _row(file, line, record, log)
            if row is not None:
                yield row
    except OSError as error:
        log.add(file, 0, "", "a readable file", error.strerror or str(error))
    except Exception as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        log.add(file, 0, "", f"a log that the adapter {name} can read", f"{type(error).__name__}: {error}")


def _row(file: str, line: int, record: Record | None, log: ProblemLog) -> Row | None:
    if record is None:
        log.unrecognised(file, line)
        return None
    problems = check_record(record)
    for problem in problems:
        log.add(file, line, problem.field, problem.expected, problem.got)
    for column in record.keys() - BY_NAME.keys():
        log.carry(column, f"{file}:{line}")
    return None if problems else (*(record.get(column) for column in COLUMNS), file, line)


def first_run_of(file: str, name: str) -> str | None:
    """The run id of a file's first event; None where it has none or is malformed."""
    if name == NATIVE:
        return first_run(file)
    row = next(rows_of(file, ProblemLog(), AuditOptions(adapter=name)), None)
    return None if row is None else str(row[0])
