"""The words in which the meaning of a log's line is written, recorded like an action of the specification.

    @event(node=Replica, offset=Offset)
    def added(state, e):
        step(replication.on_append, r=e.node, k=e.commit)
        hold("I10", state.head[e.node] == e.offset, "appends have no gaps")

`e` has the columns of the line's record; one that the line does not show is not known. The function runs once, on
symbols: what it writes down is data (`Statement`), which `replay` takes in order for each record.
"""

from __future__ import annotations

import inspect
import linecache
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.lang import SpecError
from viewproof.spec.lang.definitions import Action
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import Binder, Expr, Name, Op, Read, lift
from viewproof.spec.lang.kinds import NUMBER
from viewproof.spec.lang.record import Recorder
from viewproof.spec.lang.schema import Schema
from viewproof.spec.lang.sorts import Sort
from viewproof.spec.lang.vocabulary import Domain, using


def here() -> Source:
    """The line of the event's function that is at work."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back
    file, line = frame.f_code.co_filename, frame.f_lineno
    return Source(file.rpartition("refinement/")[2], line, linecache.getline(file, line).strip())


@dataclass(frozen=True)
class Take:
    """A step of the specification. `how`: "must" be possible; "may" have been taken, or not; or taken "if" possible."""

    action: str
    args: Mapping[str, Expr]
    how: str
    source: Source


@dataclass(frozen=True)
class Receive:
    """`receiver` has got the message that the cell belongs to; of a watermark, up to `value`."""

    receiver: Expr
    cell: Read
    value: Expr | None
    source: Source


@dataclass(frozen=True)
class Hold:
    """The condition must hold: of what is not known, that is learnt. `rule` is the invariant that says so."""

    rule: str
    cond: Expr
    text: str
    source: Source


@dataclass(frozen=True)
class Lose:
    """The cell may hold any value from lo to hi now: the system changes it without a line."""

    cell: Read
    lo: Expr | None
    hi: Expr | None
    source: Source


@dataclass(frozen=True)
class Forget:
    """From here on nothing is known of the node, but what its lines show."""

    node: Expr
    text: str
    source: Source


@dataclass(frozen=True)
class Known:
    """The build did what is known not to be safe, and it is told; what follows from it is not judged."""

    text: str
    source: Source


@dataclass(frozen=True)
class When:
    """Statements that count where the condition holds, and others where it does not."""

    cond: Expr
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]
    source: Source


@dataclass(frozen=True)
class Each:
    """Statements for each member of a range, in order."""

    binder: Binder
    body: tuple[Statement, ...]
    source: Source


@dataclass(frozen=True)
class OneOf:
    """One of several histories happened; those that are refused did not."""

    alternatives: tuple[tuple[Statement, ...], ...]
    source: Source


Statement = Take | Receive | Hold | Lose | Forget | Known | When | Each | OneOf


class Columns:
    """`e` while recording: the columns of the record by name; `e.has(name)`: does it show the column?"""

    def __init__(self, sorts: Mapping[str, Any]) -> None:
        self._sorts = sorts

    def __getattr__(self, name: str) -> Any:
        if name not in self._sorts:
            raise SpecError(f"the event has no column {name}; it has {', '.join(self._sorts)}", here())
        sort = self._sorts[name]
        return Name(name, sort if isinstance(sort, Sort) else None, _kind(sort))

    def has(self, name: str) -> Any:
        """Does the record show that column?"""
        getattr(self, name)
        return Op("eq", (Name(f"{name}?", None, NUMBER), lift(1)), True)


def _kind(sort: Any) -> Any:
    return NUMBER if sort is int else sort.kind


class _Events(Recorder):
    """Records statements; what an action may do (guards, assignments) an event may not."""

    _OWN = Recorder._OWN | {"blocks"}

    def __init__(self, schema: Schema, cfg: Any) -> None:
        super().__init__(schema, cfg)
        self.blocks: list[list[Statement]] = [[]]

    def require(self, cond: Any) -> None:
        raise SpecError("an event holds (`hold`); only an action requires", here())

    def assign(self, *_: Any) -> None:
        raise SpecError("an event takes steps (`step`); it assigns nothing", here())

    def block(self, body: Callable[[], Any]) -> tuple[Statement, ...]:
        """What a function records."""
        self.blocks.append([])
        body()
        return tuple(self.blocks.pop())


_recorders: list[_Events] = []


def _add(statement: Statement) -> None:
    _recorders[-1].blocks[-1].append(statement)


def step(action: Action, **args: Any) -> None:
    """The step was taken: it must have been possible."""
    _take(action, "must", args)


def silent(action: Action, **args: Any) -> None:
    """The step may have been taken, without a line, or not."""
    _take(action, "may", args)


def settle(action: Action, **args: Any) -> None:
    """The step is taken by itself as soon as it is possible: it was, if it is."""
    _take(action, "if", args)


def _take(action: Action, how: str, args: Mapping[str, Any]) -> None:
    unknown = args.keys() ^ {p.name for p in action.params}
    if unknown:
        raise SpecError(f"{action.name} takes {[p.name for p in action.params]}, not {sorted(args)}", here())
    _add(Take(action.name, {name: lift(value) for name, value in args.items()}, how, here()))


def receive(receiver: Any, cell: Any, up_to: Any = None) -> None:
    """The replica has received the message of that cell, with all its fields; of a watermark, up to that value."""
    _add(Receive(lift(receiver), cell, None if up_to is None else lift(up_to), here()))


def hold(rule: str, cond: Any, text: str) -> None:
    """The condition must hold, by that rule."""
    _add(Hold(rule, lift(cond), text, here()))


def lose(cell: Any, lo: Any = None, hi: Any = None) -> None:
    """The cell may be anything from lo to hi from here on."""
    _add(Lose(cell, None if lo is None else lift(lo), None if hi is None else lift(hi), here()))


def forget(node: Any, text: str) -> None:
    """Nothing is known of the node from here on, but what its lines show: the text says why."""
    _add(Forget(lift(node), text, here()))


def known(text: str) -> None:
    """The build did what is known not to be safe: the run is inconclusive, and the text says what was done."""
    _add(Known(text, here()))


def when(cond: Any, then: Callable[[], Any], otherwise: Callable[[], Any] | None = None) -> None:
    """What `then` says counts where the condition holds; where that is not known, it may have happened."""
    recorder = _recorders[-1]
    source = here()
    if isinstance(cond, bool):
        body = then if cond else otherwise
        if body is not None:
            body()
        return
    _add(When(lift(cond), recorder.block(then), recorder.block(otherwise) if otherwise else (), source))


def each(domain: Domain, body: Callable[[Any], Any]) -> None:
    """What `body` says happened for each member of the range, in order."""
    recorder = _recorders[-1]
    source = here()
    before = recorder.depth
    binder = recorder._binder(domain, body)
    statements = recorder.block(lambda: body(binder.name))
    recorder.depth = before
    _add(Each(binder, statements, source))


def one_of(*bodies: Callable[[], Any]) -> None:
    """One of these happened."""
    source = here()
    _add(OneOf(tuple(_recorders[-1].block(body) for body in bodies), source))


@dataclass(frozen=True)
class Event:
    """A kind of record: its name, its function, and the sort of each column (`int`: a plain number)."""

    name: str
    fn: Callable[[Any, Any], None]
    columns: Mapping[str, Any]
    doc: str

    def record(self, schema: Schema, cfg: Any) -> Recorded:
        """Its meaning for a configuration. Raises `SpecError` where it does not fit the specification."""
        recorder = _Events(schema, cfg)
        _recorders.append(recorder)
        try:
            with using(recorder):
                self.fn(recorder, Columns(self.columns))
        finally:
            _recorders.pop()
        return Recorded(self.name, tuple(recorder.blocks[0]), tuple(self.columns), self.doc)


@dataclass(frozen=True)
class Recorded:
    """What an event means under a configuration."""

    name: str
    statements: tuple[Statement, ...]
    columns: tuple[str, ...]
    doc: str


@dataclass
class Events:
    """The events of an adapter, by name; `@events.event(column=Sort, …)` adds one."""

    by_name: dict[str, Event] = field(default_factory=dict)

    def event(self, **columns: Any) -> Callable[[Callable[[Any, Any], None]], Event]:
        """Declare an event; keywords give each column its sort."""

        def wrap(fn: Callable[[Any, Any], None]) -> Event:
            doc = inspect.getdoc(fn)
            if not doc:
                raise SpecError(f"{fn.__name__} needs a sentence that says what it means")
            self.by_name[fn.__name__] = found = Event(fn.__name__, fn, columns, doc)
            return found

        return wrap
