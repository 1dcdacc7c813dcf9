"""The words that event functions are written in, and their recording.

An event function runs once, on symbols, like an action: `state` is the specification's state, `e` the columns of the
event. Plain Python decides what belongs to a configuration (`if state.cfg.checkpoints:`), `when` what depends on
values:

    @event(receives="prepare")
    def on_prepare(state, e):
        received(state.prepare[e.m_view, e.m_op].client, e.m_client, sent=True)
        step(normal.on_prepare, r=e.node, o=e.m_op)
        with when(e.m_commit > state.commit_max[e.node]):
            step(normal.on_commit, r=e.node, k=e.m_commit)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any

from viewproof.refinement.events.lines import (
    Agrees,
    Check,
    Condition,
    Configured,
    Havoc,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Observation,
    Range,
    Received,
    Rule,
    Step,
    Tried,
)
from viewproof.refinement.events.terms import TEXT, Apply, Column, Row, Shown, Text, lifted
from viewproof.spec.lang import Action, Spec, SpecError
from viewproof.spec.lang.errors import Source, here, pass_over, source_of
from viewproof.spec.lang.expr import Expr, Name, Read, expect, kind_of, same_kind
from viewproof.spec.lang.kinds import BOOLEAN, NUMBER, Kind
from viewproof.spec.lang.record import RecordedCells, Recorder
from viewproof.spec.lang.sorts import Sort
from viewproof.spec.lang.vocabulary import Between, using

pass_over(Path(__file__).parent)

Body = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Event:
    """An event and what it stands for. `fn(state, e)` says it, in the words of this module.

    `sends` and `receives` name a kind of message; `only` says under which configurations there is such an event (None:
    all), and `needs` the column of the configuration without which it is not understood.
    """

    name: str
    fn: Body
    doc: str
    sends: str = ""
    receives: str = ""
    only: Callable[[Any], bool] | None = None
    needs: str = ""


def event(
    name: str = "", *, sends: str = "", receives: str = "", only: Callable[[Any], bool] | None = None, needs: str = ""
) -> Callable[[Body], Event]:
    """Declare what an event stands for; its name is that of the function, if no other is given."""

    def wrap(fn: Body) -> Event:
        doc = inspect.getdoc(fn)
        if not doc:
            raise SpecError(f"{fn.__name__} needs a sentence that says what the event is", source_of(fn))
        return Event(name or fn.__name__, fn, doc, sends, receives, only, needs)

    return wrap


class Columns:
    """`e`: the columns of the event, each of the kind of its sort."""

    def __init__(self, kinds: Mapping[str, Any]) -> None:
        self._kinds = kinds

    def __getattr__(self, name: str) -> Column:
        if name not in self._kinds:
            raise SpecError(f"the record has no column {name}; it has: {', '.join(self._kinds)}", here())
        return Column(name, self._kinds[name])


@dataclass
class _Recording:
    """What is being recorded: lines and observations so far, and the conditions and the range they stand under."""

    spec: Spec
    recorder: Recorder
    node: Kind
    lines: list[Line] = field(default_factory=list)
    observations: list[Observation] = field(default_factory=list)
    infer: dict[str, Expr] = field(default_factory=dict)
    only_if: tuple[Condition, ...] = ()
    each: Range | None = None
    if_each: tuple[Condition, ...] = ()
    names: int = 0

    def place(self, *, ranges: bool = False) -> dict[str, Any]:
        if self.each is not None and not ranges:
            raise SpecError("in a range stand: received, step, holds, havoc, journaled, in_journal", here())
        return {"source": here(), "only_if": self.only_if, "each": self.each, "if_each": self.if_each}

    def fresh(self, sort: Sort) -> Name:
        self.names += 1
        return Name(f"{sort.name.lower()}_{self.names}", sort, sort.kind)


_recordings: list[_Recording] = []


def _recording() -> _Recording:
    if not _recordings:
        raise SpecError("the words of events stand in functions of events", here())
    return _recordings[-1]


def _record(spec: Spec, kinds: Mapping[str, Any], fn: Body) -> _Recording:
    recorder = Recorder(spec.schema, spec.cfg)
    recording = _Recording(spec, recorder, kinds["node"])
    _recordings.append(recording)
    try:
        with using(recorder):
            fn(recorder, Columns(kinds))
    except SpecError:
        raise
    except Exception as error:
        own = source_of(fn)
        lines = [
            f.lineno for f in extract_tb(error.__traceback__) if f.filename == inspect.unwrap(fn).__code__.co_filename
        ]
        line = lines[-1] if lines and lines[-1] else own.line
        raise SpecError(f"{fn.__name__}: {type(error).__name__}: {error}", Source(own.file, line, own.text)) from error
    finally:
        _recordings.pop()
    if recorder.guards or recorder.updates:
        raise SpecError(f"{fn.__name__} may take steps, not guard or assign", source_of(fn))
    return recording


def record_rule(spec: Spec, kinds: Mapping[str, Any], declared: Event) -> Rule:
    """Run an event's function once on symbols. Raises `SpecError`, with file and line, for what does not fit."""
    found = _record(spec, kinds, declared.fn)
    return Rule(
        declared.name, tuple(found.lines), declared.sends, declared.receives, found.infer, declared.doc
    )  # fmt: skip


def record_observations(spec: Spec, kinds: Mapping[str, Any], fn: Body) -> tuple[Observation, ...]:
    """What an adapter's events show of their node's state, in the order of the function."""
    return tuple(_record(spec, kinds, fn).observations)


# --- where a line stands ---------------------------------------------------------------------------------------------


@contextmanager
def when(cond: Any) -> Iterator[None]:
    """What stands below is for events for which the condition holds. It is looked at once, before what stands below."""
    recording = _recording()
    condition = Condition(_boolean(cond))
    before = recording.only_if, recording.if_each
    if recording.each is None:
        recording.only_if = (*recording.only_if, condition)
    else:
        recording.if_each = (*recording.if_each, condition)
    yield
    recording.only_if, recording.if_each = before


@contextmanager
def each(domain: Between[Any], *, at_least: int = 0) -> Iterator[Any]:
    """What stands below is for every member of the range; with `at_least` 1 the event is refused if there is none."""
    recording = _recording()
    if recording.each is not None:
        raise SpecError("a range in a range", here())
    name = recording.fresh(domain.sort)
    lo, hi = lifted(domain.lo), lifted(domain.hi)
    expect(domain.sort.kind, lo, "the lower end of the range")
    expect(domain.sort.kind, hi, "the upper end of the range")
    recording.each = Range(name, lo, hi, at_least)
    yield name
    recording.each = None


# --- lines -----------------------------------------------------------------------------------------------------------


def check(column: Any, expected: Any, *, rule: str = "", if_shown: bool = False) -> None:
    """The column, if shown, must equal this. One that is not shown leaves the run inconclusive, but for `if_shown`."""
    recording, of, value = _recording(), _column(column), lifted(expected)
    same_kind(of, value, f"{of.name} is compared with the state:")
    recording.lines.append(Check(of.name, value, rule, if_shown, **recording.place()))


def holds(cond: Any, message: str, column: Any, *, rule: str = "") -> None:
    """The condition must hold; `message` says what it means, `column` is the one to point at."""
    recording = _recording()
    recording.lines.append(Holds(_boolean(cond), _column(column).name, message, rule, **recording.place(ranges=True)))


def configured(*columns: Any) -> None:
    """The columns are shown as in the first event of the run."""
    recording = _recording()
    recording.lines += [Configured(_column(column).name, **recording.place()) for column in columns]


def received(field: Any, value: Any = None, *, sent: bool = False, otherwise: Any = None, by: Any = None) -> None:
    """The field of a message was sent with that value (None: as it was), and the node has received it from now on.

    Of a watermark any value up to what was sent. `sent`: it must have been. `otherwise` is what the value is where it
    is a column that nothing shows. `by` is who has received it, if not the node of the event.
    """
    recording = _recording()
    if not isinstance(field, Read) or not field.var.is_message:
        raise SpecError("what is received is a field of a message, such as state.ack[view, r, op]", here())
    lifted_value = None if value is None else lifted(value)
    if lifted_value is not None:
        expect(field.var.values.kind, lifted_value, f"the value of {field.var.name}")
    elif field.var.kind == "watermark":
        raise SpecError(f"{field.var.name} is received with a value", here())
    unshown = None if otherwise is None else lifted(otherwise)
    receiver = None if by is None else lifted(by)
    if receiver is not None:
        expect(recording.node, receiver, "who receives a message")
    place = recording.place(ranges=True)
    recording.lines.append(Received(field.var, field.index, lifted_value, sent, unshown, receiver, **place))


def tried(column: Any = None, *, sort: type, where: Callable[[Any], Any] | None = None) -> Tried:
    """An argument of a step that is tried over all replicas where the column, if it has one, is not shown."""
    of: Any = sort
    name = _recording().fresh(of)
    limit = None if where is None else _boolean(where(name))
    return Tried(name, None if column is None else _column(column).name, limit)


def step(action: Action | str, *, journals: Any = None, unless: Any = None, **args: Any) -> None:
    """The action is taken with these arguments.

    `journals` is the entry that it makes durable in the journal, at the op of the range; `unless` says that it was
    taken before, with the same outcome.
    """
    _step("must", action, args, journals, unless)


def may_step(action: Action | str, **args: Any) -> None:
    """The action may have been taken before the event, or not: no line shows it."""
    _step("may", action, args)


def settle(action: Action | str, **args: Any) -> None:
    """The action is taken, if it is possible: the system does so at once, without a line."""
    _step("if", action, args)


def _step(how: str, action: Action | str, args: Mapping[str, Any], journals: Any = None, unless: Any = None) -> None:
    recording = _recording()
    name = action if isinstance(action, str) else action.name
    params = recording.spec.action(name).params
    if {p.name for p in params} != args.keys():
        raise SpecError(f"{name} takes {', '.join(p.name for p in params)}, not {', '.join(args)}", here())
    given: dict[str, Expr | Tried] = {}
    for param in params:
        value = args[param.name]
        given[param.name] = value if isinstance(value, Tried) else lifted(value)
        kind = value.name.denotes if isinstance(value, Tried) else kind_of(lifted(value))
        expect(param.sort.kind, Name(param.name, None, kind), f"{param.name} of {name}")
    more = None if journals is None else lifted(journals), None if unless is None else _boolean(unless)
    recording.lines.append(Step(name, given, *more, how, **recording.place(ranges=True)))


def named(checksum: Any, entry: Any, op: Any) -> None:
    """The checksum, where shown, is the name of the entry at that op; "" at op 0."""
    recording = _recording()
    recording.lines.append(Named(_column(checksum).name, lifted(entry), lifted(op), **recording.place()))


def named_log(column: Any, sort: type, top: Any, entry: Callable[[Any], Any]) -> None:
    """The column, where shown, lists checksums of the entries `entry(o)` at ops top-len+1 .. top."""
    recording = _recording()
    name = recording.fresh(sort)  # type: ignore[arg-type]
    recording.lines.append(
        Log(_column(column).name, lifted(top), lifted(entry(name)), name, **recording.place()),
    )


def agrees(column: Any, op: Any, rule: str, *, distinct: bool = False) -> None:
    """The column is equal in all events of the run that show it for the same op, as the invariant says, and with
    `distinct` no two ops share it.
    """
    recording = _recording()
    recording.lines.append(Agrees(_column(column).name, lifted(op), rule, distinct=distinct, **recording.place()))


def journaled(entry: Any = None, *, checksum: Any = None, op: Any = None, afresh: bool = False) -> None:
    """The body of the entry, at the op of the range, is durable in the node's journal from now on; or that of the
    prepare with this checksum, at `op`. `afresh`: and no others.
    """
    recording = _recording()
    if (entry is None) == (checksum is None) or (entry is not None and recording.each is None):
        raise SpecError("a journal holds the entry of each op of a range, or that of a checksum at an op", here())
    recording.lines.append(
        Journaled(
            None if entry is None else lifted(entry),
            "" if checksum is None else _column(checksum).name,
            None if op is None else lifted(op),
            afresh,
            **recording.place(ranges=True),
        )
    )


def in_journal(entry: Any) -> None:
    """The entry, at the op of the range, must be durable in the node's journal (I3)."""
    recording = _recording()
    if recording.each is None:
        raise SpecError("which entries are in the journal is said in a range of ops", here())
    recording.lines.append(InJournal(lifted(entry), **recording.place(ranges=True)))


def havoc(*cells: Any, rising: bool = False) -> None:
    """The cells may have changed, and the log does not show it; if `rising`, they have not fallen.

    They are not known from here on, until something shows them. What may rise at any time is `Profile.silent`.
    """
    recording = _recording()
    for cell in cells:
        if not isinstance(cell, Read) or cell.receiver is not None:
            raise SpecError("what may change is a cell of the state, such as state.written[r, op]", here())
        recording.lines.append(Havoc(cell.var, cell.index, rising, **recording.place(ranges=True)))


def inferred(column: Any, value: Any) -> None:
    """Where the event does not show the column, it is this, as far as that is known."""
    of, expr = _column(column), lifted(value)
    same_kind(of, expr, f"{of.name} is inferred:")
    _recording().infer[of.name] = expr


# --- observations ----------------------------------------------------------------------------------------------------


def observe(column: Any, value: Any, *, monotone: str = "") -> None:
    """After each event the column shows the node's state: this, which it is compared with, or sets.

    `monotone` is the invariant that says that it does not fall when a replica comes back.
    """
    of, expr = _column(column), lifted(value)
    labels = expr.var.values.labels if isinstance(expr, Read) else ()
    if not labels:
        same_kind(of, expr, f"{of.name} shows the state:")
    _recording().observations.append(
        Observation(of.name, expr, monotone=monotone, labels=labels),
    )


def observe_name(column: Any, entry: Any, op: Any) -> None:
    """After each event the column shows the checksum of the node's entry at that op; "" at op 0."""
    _recording().observations.append(Observation(_column(column).name, lifted(entry), lifted(op), named=True))


def observe_agreed(column: Any, at: Any, *, rule: str, distinct: bool = False, covers: str = "") -> None:
    """After each event the column shows a digest of the node's state at `at`: equal wherever that is equal.

    `distinct`: no two of them share it; `covers`: a column that says more, reported in its place.
    """
    name, place = _column(column).name, lifted(at)
    _recording().observations.append(
        Observation(name, None, place, agreed=True, distinct=distinct, covers=covers, rule=rule)
    )


# --- terms -----------------------------------------------------------------------------------------------------------


def shown(column: Any) -> Any:
    """Does the event show the column?"""
    return Shown(_column(column).name)


def name_of(entry: Any, op: Any) -> Any:
    """The checksum that names the entry at an op; a text that nothing equals where it has no name yet."""
    return Apply("name_of", (lifted(entry), lifted(op)), denotes=TEXT)


def first_clear_of(cells: Any, node: Any, top: Any, base: Any = None) -> Any:
    """The first op from base + 1 on such that none up to `top` is set in the node's row (filled from below)."""
    of: RecordedCells = cells
    args = (Row(of.var.name, lifted(node)), lifted(top), *(() if base is None else (lifted(base),)))
    return Apply("first_clear", args, denotes=of.var.index[1].kind)


def mask_of(cells: Any, node: Any) -> Any:
    """Bit f-1 for each f whose cell in the node's row is not 0."""
    return Apply("mask", (Row(cells.var.name, lifted(node)),))


def bit(number: Any, position: Any) -> Any:
    """Is bit f-1 of the number set?"""
    return Apply("bit", (lifted(number), lifted(position)), _bit, denotes=BOOLEAN, is_bool=True)


def _bit(number: int, position: int) -> bool:
    return bool(number >> (position - 1) & 1)


def label_of(sort: type, text: Any) -> Any:
    """The label of the sort that a text names."""
    of: Any = sort
    return Apply(f"label_of_{of.name}", (lifted(text),), of.labels.index, denotes=of.kind)


def text(value: str) -> Any:
    """A text, where an expression is asked for."""
    return Text(value)


def text_of(sort: type, label: Any) -> Any:
    """The text of a label."""
    of: Any = sort
    expect(of.kind, lifted(label), f"a label of {of}")
    return Apply(f"text_of_{of.name}", (lifted(label),), of.labels.__getitem__, denotes=TEXT)


def call(fn: Callable[..., int], *args: Any, sort: type | None = None) -> Any:
    """A function of numbers, which must be importable: known where all its arguments are. It is of the sort, if any."""
    of: Any = sort
    return Apply(fn.__name__, tuple(map(lifted, args)), fn, denotes=NUMBER if sort is None else of.kind)


def _column(value: Any) -> Column:
    if not isinstance(value, Column):
        raise SpecError("this is said of a column of the event, such as e.m_view", here())
    return value


def _boolean(value: Any) -> Expr:
    expr = lifted(value)
    if not expr.is_bool:
        raise SpecError("a condition is Boolean", here())
    return expr
