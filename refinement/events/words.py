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

import contextlib
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from types import ModuleType
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
    Taken,
    Tried,
)
from viewproof.refinement.events.nested import Branch, Loop
from viewproof.refinement.events.terms import Column, lifted
from viewproof.spec.lang import Action, Spec, SpecError
from viewproof.spec.lang.errors import Source, here, pass_over, source_of
from viewproof.spec.lang.expr import Expr, Name, Read, expect, kind_of, same_kind
from viewproof.spec.lang.kinds import Kind
from viewproof.spec.lang.record import Recorder
from viewproof.spec.lang.sorts import Sort
from viewproof.spec.lang.vocabulary import Between, using

pass_over(Path(__file__).parent)
pass_over(Path(contextlib.__file__))

Body = Callable[[Any, Any], None]


@dataclass(frozen=True)
class Event:
    """An event and what it stands for. `fn(state, e)` says it, in the words of this module.

    `sends` and `receives` name a kind of message; `only` says under which configurations there is such an event (None:
    all), and `needs` the column of the configuration without which it is not understood. `aside`: it may come whatever
    its node owes (`owing`).
    """

    name: str
    fn: Body
    doc: str
    sends: str = ""
    receives: str = ""
    only: Callable[[Any], bool] | None = None
    needs: str = ""
    aside: bool = False


def event(
    name: str = "", *, sends: str = "", receives: str = "", only: Callable[[Any], bool] | None = None, needs: str = "",
    aside: bool = False,
) -> Callable[[Body], Event]:  # fmt: skip
    """Declare what an event stands for; its name is that of the function, if no other is given."""

    def wrap(fn: Body) -> Event:
        doc = inspect.getdoc(fn)
        if not doc:
            raise SpecError(f"{fn.__name__} needs a sentence that says what the event is", source_of(fn))
        return Event(name or fn.__name__, fn, doc, sends, receives, only, needs, aside)

    return wrap


def events_of(*modules: ModuleType) -> tuple[Event, ...]:
    """The events that these modules declare, in their order."""
    return tuple(
        found
        for module in modules
        for found in vars(module).values()
        if isinstance(found, Event) and found.fn.__module__ == module.__name__
    )


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
    """What is being recorded: lines and observations so far, and the conditions and the range they stand under.

    `nested`: conditions and ranges hold their lines (`nested`), `depth` of them at this moment.
    """

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
    nested: bool = False
    depth: int = 0
    taken: Taken | None = None
    node_column: Column = field(init=False)

    def __post_init__(self) -> None:
        self.node_column = Column("node", self.node)

    @contextmanager
    def block(self) -> Iterator[list[Line]]:
        """What is recorded below is of a line that holds lines."""
        outer, body = self.lines, list[Line]()
        self.lines, self.depth = body, self.depth + 1
        yield body
        self.lines, self.depth = outer, self.depth - 1

    def place(self, *, ranges: bool = False) -> dict[str, Any]:
        if self.depth and not ranges:
            raise SpecError("below a condition or range stand: received, arrived, step, holds, havoc, forget", here())
        if self.each is not None and not ranges:
            raise SpecError("in a range stand: received, step, holds, havoc, journaled, in_journal", here())
        return {"source": here(), "only_if": self.only_if, "each": self.each, "if_each": self.if_each}

    def fresh(self, sort: Sort) -> Name:
        self.names += 1
        return Name(f"{sort.name.lower()}_{self.names}", sort, sort.kind)


_recordings: list[_Recording] = []


def now_recording() -> _Recording:
    if not _recordings:
        raise SpecError("the words of events stand in functions of events", here())
    return _recordings[-1]


def recording_of(word: str) -> _Recording:
    """What is being recorded, for a word that only a system of histories has."""
    recording = now_recording()
    if not recording.nested:
        raise SpecError(f"{word} is a word of systems with histories=True", here())
    return recording


def _record(spec: Spec, kinds: Mapping[str, Any], fn: Body, *, nested: bool = False) -> _Recording:
    recorder = Recorder(spec.schema, spec.cfg)
    recording = _Recording(spec, recorder, kinds["node"], nested=nested)
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


def record_rule(spec: Spec, kinds: Mapping[str, Any], declared: Event, *, nested: bool = False) -> Rule:
    """Run an event's function once on symbols. Raises `SpecError`, with file and line, for what does not fit.

    `nested`: conditions and ranges hold their lines.
    """
    found = _record(spec, kinds, declared.fn, nested=nested)
    lines, taken = tuple(found.lines), found.taken
    return Rule(
        declared.name, lines, declared.sends, declared.receives, found.infer, declared.doc, taken, declared.aside
    )


def record_observations(spec: Spec, kinds: Mapping[str, Any], fn: Body) -> tuple[Observation, ...]:
    """What an adapter's events show of their node's state, in the order of the function."""
    return tuple(_record(spec, kinds, fn).observations)


# --- where a line stands ---------------------------------------------------------------------------------------------


@contextmanager
def when(cond: Any) -> Iterator[None]:
    """What stands below is for events for which the condition holds. It is looked at once, before what stands below."""
    recording = now_recording()
    if recording.nested:
        place, holding = recording.place(ranges=True), _boolean(cond)
        with recording.block() as body:
            yield
        recording.lines.append(Branch(holding, tuple(body), **place))
        return
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
    recording = now_recording()
    if recording.each is not None:
        raise SpecError("a range in a range", here())
    name = recording.fresh(domain.sort)
    lo, hi = lifted(domain.lo), lifted(domain.hi)
    expect(domain.sort.kind, lo, "the lower end of the range")
    expect(domain.sort.kind, hi, "the upper end of the range")
    over = Range(name, lo, hi, at_least)
    if recording.nested:
        place = recording.place(ranges=True)
        with recording.block() as body:
            yield name
        recording.lines.append(Loop(over, tuple(body), **place))
        return
    recording.each = over
    yield name
    recording.each = None


# --- lines -----------------------------------------------------------------------------------------------------------


def check(column: Any, expected: Any, *, rule: str = "", if_shown: bool = False) -> None:
    """The column, if shown, must equal this. One that is not shown leaves the run inconclusive, but for `if_shown`."""
    recording, of, value = now_recording(), _column(column), lifted(expected)
    same_kind(of, value, f"{of.name} is compared with the state:")
    recording.lines.append(Check(of.name, value, rule, if_shown, **recording.place()))


def holds(cond: Any, message: str, column: Any = None, *, rule: str = "") -> None:
    """The condition must hold; `message` says what it means, `column` is the one to point at, or `rule` the invariant
    that says so.
    """
    recording = now_recording()
    if column is None and not rule:
        raise SpecError("what must hold points at a column, or has a rule that says so", here())
    of = "" if column is None else _column(column).name
    recording.lines.append(Holds(_boolean(cond), of, message, rule, **recording.place(ranges=True)))


def configured(*columns: Any) -> None:
    """The columns are shown as in the first event of the run."""
    recording = now_recording()
    recording.lines += [Configured(_column(column).name, **recording.place()) for column in columns]


def received(field: Any, value: Any = None, *, sent: bool = False, otherwise: Any = None, by: Any = None) -> None:
    """The field of a message was sent with that value (None: as it was), and the node has received it from now on.

    Of a watermark any value up to what was sent. `sent`: it must have been. `otherwise` is what the value is where it
    is a column that nothing shows. `by` is who has received it, if not the node of the event.
    """
    recording = now_recording()
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
    name = now_recording().fresh(of)
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
    recording = now_recording()
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
    recording = now_recording()
    recording.lines.append(Named(_column(checksum).name, lifted(entry), lifted(op), **recording.place()))


def named_log(column: Any, sort: type, top: Any, entry: Callable[[Any], Any]) -> None:
    """The column, where shown, lists checksums of the entries `entry(o)` at ops top-len+1 .. top."""
    recording = now_recording()
    name = recording.fresh(sort)  # type: ignore[arg-type]
    recording.lines.append(
        Log(_column(column).name, lifted(top), lifted(entry(name)), name, **recording.place()),
    )


def agrees(column: Any, op: Any, rule: str, *, distinct: bool = False) -> None:
    """The column is equal in all events of the run that show it for the same op, as the invariant says, and with
    `distinct` no two ops share it.
    """
    recording = now_recording()
    recording.lines.append(Agrees(_column(column).name, lifted(op), rule, distinct=distinct, **recording.place()))


def journaled(entry: Any = None, *, checksum: Any = None, op: Any = None, afresh: bool = False) -> None:
    """The body of the entry, at the op of the range, is durable in the node's journal from now on; or that of the
    prepare with this checksum, at `op`. `afresh`: and no others.
    """
    recording = now_recording()
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
    recording = now_recording()
    if recording.each is None:
        raise SpecError("which entries are in the journal is said in a range of ops", here())
    recording.lines.append(InJournal(lifted(entry), **recording.place(ranges=True)))


def havoc(*cells: Any, rising: bool = False, least: Any = None, most: Any = None) -> None:
    """The cells may have changed, and the log does not show it; if `rising`, they have not fallen; they are `least` at
    least, and at most `most`.

    They are not known from here on, until something shows them. What may rise at any time is `Profile.silent`.
    """
    recording = now_recording()
    ends = [None if end is None else lifted(end) for end in (least, most)]
    for cell in cells:
        if not isinstance(cell, Read) or cell.receiver is not None:
            raise SpecError("what may change is a cell of the state, such as state.written[r, op]", here())
        for end in (one for one in ends if one is not None):
            expect(cell.var.values.kind, end, f"an end of {cell.var.name}")
        recording.lines.append(Havoc(cell.var, cell.index, rising, *ends, **recording.place(ranges=True)))


def inferred(column: Any, value: Any) -> None:
    """Where the event does not show the column, it is this, as far as that is known."""
    of, expr = _column(column), lifted(value)
    same_kind(of, expr, f"{of.name} is inferred:")
    now_recording().infer[of.name] = expr


# --- observations ----------------------------------------------------------------------------------------------------


def observe(column: Any, value: Any, *, monotone: str = "") -> None:
    """After each event the column shows the node's state: this, which it is compared with, or sets.

    `monotone` is the invariant that says that it does not fall when a replica comes back.
    """
    of, expr = _column(column), lifted(value)
    labels = expr.var.values.labels if isinstance(expr, Read) else ()
    if not labels:
        same_kind(of, expr, f"{of.name} shows the state:")
    now_recording().observations.append(
        Observation(of.name, expr, monotone=monotone, labels=labels),
    )


def observe_name(column: Any, entry: Any, op: Any) -> None:
    """After each event the column shows the checksum of the node's entry at that op; "" at op 0."""
    now_recording().observations.append(Observation(_column(column).name, lifted(entry), lifted(op), named=True))


def observe_agreed(column: Any, at: Any, *, rule: str, distinct: bool = False, covers: str = "") -> None:
    """After each event the column shows a digest of the node's state at `at`: equal wherever that is equal.

    `distinct`: no two of them share it; `covers`: a column that says more, reported in its place.
    """
    name, place = _column(column).name, lifted(at)
    now_recording().observations.append(
        Observation(name, None, place, agreed=True, distinct=distinct, covers=covers, rule=rule)
    )


def _column(value: Any) -> Column:
    if not isinstance(value, Column):
        raise SpecError("this is said of a column of the event, such as e.m_view", here())
    return value


def _boolean(value: Any) -> Expr:
    expr = lifted(value)
    if not expr.is_bool:
        raise SpecError("a condition is Boolean", here())
    return expr
