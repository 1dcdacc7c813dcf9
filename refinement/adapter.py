"""Adapters: how the logs of a system are read, and what their events stand for.

An adapter says which files are its logs, turns each into records, and names the system (`events.System`) that says what
columns a record has, which steps of which specification its events stand for, and what they show. All that follows
(order, replay, verdict, explanations, reports; local and Spark) is the same for all. What a log does not show is left
out of the records: the audit judges what is shown, and names what was missing. A user's own adapter lies outside the
package and is named as `module:NAME` (docs/adapters.md); Spark's executors import it by that name.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import first_run, read_rows
from viewproof.refinement.schema import Row, check_record
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.verdict import AuditOptions

if TYPE_CHECKING:
    from viewproof.refinement.events import System
    from viewproof.refinement.flat.dictionary import Dictionary, Words
    from viewproof.refinement.joined.order import Record as JoinedRecord
    from viewproof.refinement.joined.source import Reading

Record = dict[str, Any]
"""An event: columns of the adapter's record by name, and others, which are carried along."""

NATIVE = "native"
BUILT_IN = {
    "iggy": "viewproof.refinement.iggy.adapter:ADAPTER",
    "oxia": "viewproof.refinement.oxia.adapter:ADAPTER",
    "tigerbeetle": "viewproof.refinement.tigerbeetle.profile:LOGS",
    "tigerbeetle-2022": "viewproof.refinement.tigerbeetle.profile:LOGS_2022",
    "tigerbeetle-2026": "viewproof.refinement.tigerbeetle.profile:LOGS_2026",
}
"""Adapters of the package, by the names that they have on the command line."""


class AdapterError(ValueError):
    """There is no adapter of that name, or it is none."""


def _native_system() -> System:
    from viewproof.refinement.native import SYSTEM

    return SYSTEM


@dataclass(frozen=True)
class Adapter:
    """`records(file)` gives the events of a log in any order, each with its line from 1; None for a line that the
    adapter does not recognise: these are counted and named. Files end in one of `suffixes`. Without a `system` of its
    own its events are those of native traces (`traces/README.md`). `joined` takes the place of `records` where lines
    have neither numbers nor clocks, `streamed` where a file has whole runs.
    """

    name: str
    doc: str
    suffixes: tuple[str, ...]
    records: Callable[[str], Iterator[tuple[int, Record | None]]] | None
    system: System = field(default_factory=_native_system)
    joined: Joined | None = None
    streamed: Streamed | None = None

    def __post_init__(self) -> None:
        if sum(way is not None for way in (self.records, self.joined, self.streamed)) != 1:
            raise ValueError(f"adapter {self.name}: its logs are read by one of `records`, `joined`, `streamed`")

    @property
    def by_files(self) -> bool:
        """Do its files say which of them are read together, whatever runs they hold?"""
        return self.records is None


@dataclass(frozen=True)
class Joined:
    """How logs are read whose lines have neither numbers nor clocks: the files of one cluster together.

    `whole(file)` says whether a file has the lines of several processes, and is a run, or of one; those of one
    directory are one cluster then. `read(files, partial)` gives the runs of one cluster, their records in an order;
    `partial`: lines may be missing anywhere, so that nothing is gathered from several of them.
    For benchmarks: `changing` are the events that change a state, `fields` what their lines say of it; the system may
    print a log in which two of them, next to each other on their node, are exchanged if `exchangeable(one, other)`, and
    one without an event if `omissible(event, later)` with those that come after it.
    """

    read: Callable[[tuple[str, ...], bool], Reading]
    whole: Callable[[str], bool]
    changing: frozenset[str] = frozenset()
    fields: tuple[str, ...] = ()
    exchangeable: Callable[[JoinedRecord, JoinedRecord], bool] = lambda one, other: False
    omissible: Callable[[JoinedRecord, Sequence[JoinedRecord]], bool] = lambda record, later: False


class Run(Protocol):
    """One run of a log that is streamed. `rows` are its events, in order, each followed by file and line, of the types
    of the columns; they are gone through once. `adapter` is the name of the one that judges it.
    """

    run_id: str
    adapter: str
    rows: Iterator[Row]

    def rest(self) -> None:
        """Go to the end of the run, whose lines are not looked at any more."""

    def missing(self) -> tuple[str, ...]:
        """Evidence that is not there, of the lines so far."""

    def doubt(self) -> str:
        """What shows that the lines are not as they were written; "": nothing does. Asked where one is refused."""

    def notes(self, *, violated: bool) -> tuple[str, ...]:
        """What else is to be said of them."""

    def text(self, line: int) -> str:
        """What one of the last lines says; "" for others."""


@runtime_checkable
class WordsRun(Run, Protocol):
    """A run that can also be gone through as rows of words, for the compiled replay."""

    file: str

    @property
    def shown(self) -> Mapping[str, int]:
        """The columns that its first row shows of the configuration."""

    def words(self, texts: Sequence[str], events: Mapping[str, int]) -> tuple[Dictionary, Iterator[Words]]:
        """In place of `rows` the same as words, some at a time: numbers, codes of texts (those given have the first
        codes), `NULL` for what is not shown, and the number of each event; nothing for the run's name. Raises
        `NotPlain` where words do not say it.
        """

    def again(self) -> Run:
        """The run from its beginning."""


@dataclass(frozen=True)
class Streamed:
    """How logs are read of which a file has whole runs, one after the other, each with the lines of all nodes in the
    order of the events (`Profile.whole`). `parts(file)` are those that can be read apart; `runs(part, profile, log)`
    gives the runs of one, each to be gone through before the next; what cannot be judged goes to `log`.
    """

    parts: Callable[[str], list[Segment]]
    runs: Callable[[Segment, str, ProblemLog], Iterator[Run]]


def _native(file: str) -> Iterator[tuple[int, Record | None]]:
    raise AdapterError("native traces are read in columns")


@lru_cache(maxsize=8)
def adapter(name: str) -> Adapter:
    """The adapter of that name, or `module:NAME`. Raises `AdapterError`."""
    if name == NATIVE:
        return Adapter(NATIVE, "traces of our own replicas", (), _native)
    module, _, attribute = BUILT_IN.get(name, name).partition(":")
    if not attribute or not all(part.isidentifier() for part in module.split(".")):
        known = ", ".join(BUILT_IN)
        raise AdapterError(f"{name!r} is not MODULE:NAME, such as my_logs:ADAPTER, nor one of {known}")
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        found = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, SyntaxError) as error:
        raise AdapterError(f"{module} cannot be imported: {error}") from None
    except (Exception, SystemExit) as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if Path(frame.filename).stem == module.rpartition(".")[2]] or frames
        told = f"{type(error).__name__}: {error} ({own[-1].filename}:{own[-1].lineno})"
        raise AdapterError(f"{module} cannot be imported: {told}") from None
    if not isinstance(found, Adapter):
        raise AdapterError(f"{name} is no Adapter")
    return found


def has_facts(name: str) -> bool:
    """Do the events of this adapter state the facts of native traces (`facts`)?"""
    return adapter(name).system is _native_system()


def rows_of(file: str, log: ProblemLog, options: AuditOptions) -> Iterator[Row]:
    """The events of one file as rows followed by (file, line); what is malformed, or not recognised, goes to `log`.

    The columns to judge without are taken away.
    """
    rows = read_rows(file, log) if options.adapter == NATIVE else _adapted(file, log, options.adapter)
    if not options.without:
        return rows
    index = adapter(options.adapter).system.index
    return without(rows, {index[name] for name in options.without})


def without(rows: Iterator[Row], gone: set[int]) -> Iterator[Row]:
    """The rows as if these columns were never shown."""
    for row in rows:
        yield tuple(None if at in gone else value for at, value in enumerate(row))


def _adapted(file: str, log: ProblemLog, name: str) -> Iterator[Row]:
    line = 0
    try:
        found = adapter(name)
        assert found.records is not None
        for line, record in found.records(file):
            row = _row(file, line, record, log, found.system)
            if row is not None:
                yield row
    except OSError as error:
        log.add(file, 0, "", "a readable file", error.strerror or str(error))
    except (Exception, SystemExit) as error:
        if os.environ.get("VSR_DEBUG"):
            raise
        where = f"after line {line}, " if line else ""
        log.add(file, line, "", f"{where}a log that the adapter {name} can read", f"{type(error).__name__}: {error}")


def _row(file: str, line: int, record: Record | None, log: ProblemLog, system: System) -> Row | None:
    if record is None:
        log.unrecognised(file, line)
        return None
    problems = check_record(record, system.table)
    for problem in problems:
        log.add(file, line, problem.field, problem.expected, problem.got)
    for column in record.keys() - system.by_name.keys():
        log.carry(column, f"{file}:{line}")
    return None if problems else (*(record.get(column) for column in system.names), file, line)


def first_run_of(file: str, name: str) -> str | None:
    """The run id of a file's first event; None where it has none or is malformed."""
    if name == NATIVE:
        return first_run(file)
    if adapter(name).by_files:
        return None
    row = next(rows_of(file, ProblemLog(), AuditOptions(adapter=name)), None)
    return None if row is None else str(row[0])
