"""Typed state: the body of a class is the declaration of variables and messages, and what mypy knows of them.

    class Core(State):
        view: Cells[Replica, View] = variable("the view the replica is in")
        entry: Cells[tuple[Replica, Op], Option[View]] = variable("entry known at that op of its log")
        restarts: Restart = ghost("crashes and restarts so far")
        prepare: Sent[tuple[View, Op], Prepare] = message(by_primary, to="the backups")

The type says the indices and the range: up to a sort's largest member, an optional of it, a label, a Boolean. `values=`
says the range of a `Number`. No object of these classes exists: actions get what an engine provides under these names.
A part's class inherits from those whose variables its actions use, too. An attribute that is only annotated is declared
elsewhere (what a snapshot saves, say); one of type `Sent` adds the fields of a subclass to a message of another part.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args, get_origin

from viewproof.spec.lang.errors import SpecError, evaluated
from viewproof.spec.lang.messages import Sent
from viewproof.spec.lang.schema import Field, MessageType, Schema, Var
from viewproof.spec.lang.sorts import BOOL, Sort, Values, one_of, optional, up_to
from viewproof.spec.lang.terms import Bool, Cells, Label, Number, Option

if TYPE_CHECKING:
    from typing import Self

CfgSender = Callable[..., Any]
"""Who sends a message: a function of the configuration and the key, whose docstring names the sender."""
CfgValues = Values | Callable[[Any], Values] | None


@dataclass(frozen=True)
class Declared:
    """A variable or message as the body of a state declares it."""

    kind: str
    doc: str = ""
    values: CfgValues = None
    init: int = 0
    tags: frozenset[str] = frozenset()
    title: str = ""
    sender: CfgSender | None = None
    to: str = ""


def variable(doc: str, *, values: CfgValues = None, init: int | Label = 0, tags: Sequence[str] = ()) -> Any:
    """Declare a variable of the replicas or clients; `init` is its value at the start."""
    return Declared("state", doc, values, cast(int, init), frozenset(tags))


def ghost(doc: str, *, values: CfgValues = None) -> Any:
    """Declare history that only invariants and bounds read; no guard of a replica's action may depend on it."""
    return Declared("ghost", doc, values)


def message(sender: CfgSender, *, to: str, title: str = "", doc: str = "") -> Any:
    """Declare a message: a record (`Sent[key, Record]`), or one that is a single value (`Cells[key, value]`, with its
    `title`).
    """
    return Declared("register", doc, title=title, sender=sender, to=to)


def watermark(sender: CfgSender, *, to: str, title: str, doc: str) -> Any:
    """Declare a number of which ever larger values are sent; any value up to it may be received."""
    return Declared("watermark", doc, title=title, sender=sender, to=to)


class State:
    """Base of the classes that declare state. `declarations`: name → its type, and what it is (None: it is declared
    elsewhere), of what the body of a class says itself.
    """

    declarations: ClassVar[dict[str, tuple[Any, Declared | None]]]

    def __init_subclass__(cls) -> None:
        own = {name: of for name, of in inspect.get_annotations(cls).items() if name != "cfg"}
        cls.declarations = {name: (of, vars(cls).get(name)) for name, of in evaluated(own).items()}

    if TYPE_CHECKING:
        schema: Schema

        @property
        def after(self) -> Self:
            """The state after the step (transition invariants only)."""


def schema_of(*states: type[State], cfg: Any = None) -> Schema:
    """The schema of a specification that is not put together of parts."""
    schema = Schema()
    for state in states:
        declare(schema, state, cfg)
    require_promised(schema)
    return schema


def declare(schema: Schema, state: type[State], cfg: Any) -> None:
    """Add what the body of a state declares to the schema."""
    for name, (of, said) in state.declarations.items():
        if get_origin(of) is Sent:
            _declare_record(schema, name, of, said, cfg)
        elif said is None:
            schema.promised[name] = of
        else:
            _declare_variable(schema, name, of, said, cfg)


def _declare_variable(schema: Schema, name: str, of: Any, said: Declared, cfg: Any) -> None:
    """A variable, or a message that is a single value."""
    index, values = shape(name, of, said.values(cfg) if callable(said.values) else said.values)
    if said.sender is None:
        schema.add(Var(name, index, values, int(said.init), said.kind, said.doc, tags=said.tags))
        return
    doc = said.doc if said.kind == "watermark" else _doc(said.title, said.doc)
    var = Var(name, index, values, 0, said.kind, doc, partial(said.sender, cfg), message=said.title)
    flag = schema.add(var) if values.is_bool else None
    made = MessageType(name, said.title, index, said.sender, said.to, None, flag, schema.part)
    if flag is None:
        made.fields[""] = Field(schema.add(var), True, False, schema.part)
    schema.messages[name] = made


def _declare_record(schema: Schema, name: str, of: Any, said: Declared | None, cfg: Any) -> None:
    """A message with fields, or more fields of one that is there."""
    index, record = get_args(of)
    key, known = _sorts(index), schema.messages.get(name)
    if known is None:
        if said is None or said.sender is None:
            raise SpecError(f"no message {name} is declared")
        flag, title = None, said.title or record.title
        if not any(field.marks for field in record.fields.values()):
            doc = said.doc or _doc(title, "")
            flag = Var(name, key, BOOL, 0, "register", doc, partial(said.sender, cfg), message=title)
            schema.add(flag)
        known = MessageType(name, title, key, said.sender, said.to, record, flag, schema.part)
        schema.messages[name] = known
    elif said is not None or known.record is None or not issubclass(record, known.record) or key != known.key:
        raise SpecError(f"{name} is declared already; a subclass of its record adds fields to it")
    for added, field in record.fields.items():
        if added not in known.fields:
            more, values = shape(f"{name}_{added}", field.of, None)
            doc, sender = _doc(known.title, field.doc), partial(known.sender, cfg)
            schema.field(name, added, more, values, sender, doc=doc, marks=field.marks, may_be_blank=field.may_be_blank)


def _doc(title: str, doc: str) -> str:
    return f"{title}: {doc}" if doc else f"{title} sent"


def shape(name: str, of: Any, values: Values | None) -> tuple[tuple[Sort, ...], Values]:
    """Indices and range that the type of a variable says."""
    index: tuple[Sort, ...] = ()
    if get_origin(of) is Cells:
        key, of = get_args(of)
        index = _sorts(key)
    if values is not None:
        return index, values
    if of is Bool:
        return index, BOOL
    if get_origin(of) is Option:
        return index, optional(get_args(of)[0])
    if isinstance(of, Sort):
        return index, one_of(of) if of.labels else up_to(of)
    raise SpecError(f"{name}: the range of a {getattr(of, '__name__', of)} has to be said (values=)")


def _sorts(key: Any) -> tuple[Sort, ...]:
    """The sorts of an index: one, or a tuple of them."""
    sorts = get_args(key) if get_origin(key) is tuple else (key,)
    if not all(isinstance(sort, Sort) for sort in sorts):
        raise SpecError(f"an index is a sort, or a tuple of sorts, not {key}")
    return tuple(sorts)


def require_promised(schema: Schema) -> None:
    """What a state only annotates is declared as it says, if it is declared at all. Raises `SpecError`."""
    for name, of in schema.promised.items():
        var = schema.vars.get(name)
        if var is None:
            continue
        number = of is Number or Number in get_args(of)
        index, values = shape(name, of, var.values if number else None)
        if index != var.index or values.kind != var.values.kind:
            raise SpecError(f"{name} is annotated as {of}, but declared with {var.index} and {var.values.kind}")
