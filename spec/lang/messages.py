"""Message records: a message is declared once, with its fields, and is sent and read as a whole.

`state.prepare[v, o] = Prepare(client=c, …)` sends one; `state.prepare[v, o].client` reads a field of it. Each field is
a register of its own (`prepare_client`), so no engine knows of records. What was sent stays sent.

A message without a field that says that it was sent has a flag of its own (`dvc`); `.sent` reads either. A part adds
fields by a subclass of the record. Whoever sends the message gives each field that is declared, or says `BLANK`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import GenericAlias
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NoReturn, TypeVar, cast, dataclass_transform

from viewproof.spec.lang.errors import SpecError, evaluated, here
from viewproof.spec.lang.schema import MessageType, Schema
from viewproof.spec.lang.terms import Bool, Cells, I, V
from viewproof.spec.lang.vocabulary import Between, Truth, all_of, any_of, where

BLANK: Any = object()
"""The field is left out: it stays 0, false or none."""


@dataclass(frozen=True)
class Carried:
    """A field as the body of a record declares it (`field`)."""

    doc: str
    marks: bool
    may_be_blank: bool
    of: Any = None
    """Its type."""


def field(doc: str, *, marks: bool = False, default: Any = None) -> Any:
    """Declare a field of a message. `marks`: it is not 0 in one that was sent. `default=BLANK`: it may be left out."""
    if default is not None and default is not BLANK:
        raise SpecError("a field of a message may be left blank, and has no other default", here())
    return Carried(doc, marks, default is BLANK)


@dataclass_transform(kw_only_default=True, frozen_default=True, field_specifiers=(field,))
class Fields:
    """Fields of a message: the body of a subclass declares them, `name: Sort = field("what it says")`.

    A field of type `Cells[Op, …]` is one for each op; it is sent with `each`.
    """

    fields: ClassVar[dict[str, Carried]]
    """All of them, in order of declaration."""

    def __init_subclass__(cls) -> None:
        said = {name: value for name, value in vars(cls).items() if isinstance(value, Carried)}
        annotated = inspect.get_annotations(cls)
        if bare := [name for name in said if name not in annotated]:
            raise SpecError(f"field {bare[0]} of {cls.__name__} has to be annotated with its sort", here())
        types = evaluated({name: annotated[name] for name in said})
        own = {name: replace(value, of=types[name]) for name, value in said.items()}
        cls.fields = {name: one for base in cls.__bases__ for name, one in getattr(base, "fields", {}).items()} | own
        for name in said:
            delattr(cls, name)

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            self.values = values
            self.is_sent = True
            self.cond = True


class Message(Fields):
    """A message that is sent as a whole. A subclass of one has more fields: those that a part adds."""

    title: ClassVar[str]
    """The name in documents: `do_view_change` of DoViewChange."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if Message in cls.__bases__:
            cls.title = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()

    if TYPE_CHECKING:

        @property
        def sent(self) -> Bool:
            """Was it sent; of what a replica received: did it arrive?"""


M = TypeVar("M", bound=Message)
M_co = TypeVar("M_co", bound=Message, covariant=True)
K_contra = TypeVar("K_contra", contravariant=True)


def unsent(message: M) -> M:
    """What a message will say is fixed, and it is not sent yet: its flag stays."""
    cast(Any, message).is_sent = False
    return message


def only_if(cond: Truth, message: M) -> M:
    """The message is sent where the condition holds; elsewhere what was sent before stays as it is."""
    cast(Any, message).cond = cond
    return message


def with_fields(message: M, *added: Fields) -> M:
    """The message with the fields that parts add where it is sent (`joined(with_fields)`)."""
    for more in added:
        cast(Any, message).values |= cast(Any, more).values
    return message


def same(a: M, b: M) -> Bool:
    """Do two messages of one kind, of which no field is one for each op, say the same?"""
    message: MessageType = cast(Any, a).of.message
    for name, one in message.fields.items():
        if len(one.var.index) > len(message.key):
            raise SpecError(f"{name} is one for each {one.var.index[-1]}: say for which it is the same", here())
    return all_of(*(getattr(a, name) == getattr(b, name) for name in message.fields))


@dataclass(frozen=True)
class _Each:
    """The values of a field that has one for each member of a range."""

    domain: Any
    value: Callable[[Any], Any]


def each(domain: type[I] | Between[I], value: Callable[[I], V]) -> Cells[I, V]:
    """A field of a message for each member of a sort or range."""
    return cast(Any, _Each(domain, value))  # type: ignore[no-any-return]


class Sent(Generic[K_contra, M_co]):
    """The messages of one kind that were sent, each under its key."""

    if TYPE_CHECKING:

        def __getitem__(self, key: K_contra) -> M_co: ...
        def __setitem__(self, key: K_contra, message: M_co) -> None: ...  # type: ignore[misc]

    else:
        __class_getitem__ = classmethod(GenericAlias)

        def __init__(self, message: MessageType, cells: Callable[[str], Any]) -> None:
            self.message = message
            self.cells = cells

        def __getitem__(self, key: Any) -> _Contents:
            return _Contents(self, key if isinstance(key, tuple) else (key,))

        def __setitem__(self, key: Any, record: Any) -> None:
            message = self.message
            if not isinstance(record, message.record):
                raise SpecError(f"{message.name} sends a {message.record.__name__}, not {record!r}", here())
            lacking = [n for n, f in message.fields.items() if n not in record.values and not f.may_be_blank]
            if lacking:
                raise SpecError(
                    f"{message.title} is sent without {', '.join(lacking)}; a field that is left out is BLANK", here()
                )
            self._write(key if isinstance(key, tuple) else (key,), record)

        def _write(self, key: tuple[Any, ...], record: Any) -> None:
            flag, cond = self.message.flag, record.cond
            if flag is not None and record.is_sent:
                flags = self.cells(flag.name)
                flags[key] = cond if cond is True else any_of(cond, flags[key])
            for name, value in record.values.items():
                if value is BLANK:
                    continue
                if name not in self.message.fields:
                    raise SpecError(
                        f"{self.message.title} has no {name}; it has {', '.join(self.message.fields)}", here()
                    )
                cells = self.cells(self.message.fields[name].var.name)
                if isinstance(value, _Each):
                    cells.update((*key, value.domain), _kept(cond, value.value, lambda o, of=cells: of[(*key, o)]))
                else:
                    cells[key] = value if cond is True else where(cond, value, cells[key])


def _kept(cond: Any, value: Callable[[Any], Any], old: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return value if cond is True else lambda o: where(cond, value(o), old(o))


def named(schema: Schema, name: str, cells: Callable[[str], Any]) -> Any:
    """What a specification means by `state.name`: a message that has fields, or the cells of a variable."""
    message = schema.messages.get(name)
    if message is not None and message.record is not None:
        return Sent(message, cells)  # type: ignore[call-arg]
    var = schema.vars.get(name)
    if var is not None and var.message and message is None:
        for of in schema.messages.values():
            for field_name, one in of.fields.items() if of.record is not None else ():
                if one.var is var:
                    raise SpecError(f"{name} is a field of a message: state.{of.name}[…].{field_name}", here())
    return cells(name)


class _Contents:
    """One message, to be read field by field."""

    __slots__ = ("_key", "of")

    def __init__(self, of: Any, key: tuple[Any, ...]) -> None:
        object.__setattr__(self, "of", of)
        object.__setattr__(self, "_key", key)

    def __setattr__(self, name: str, value: Any) -> None:
        raise SpecError(f"{self.of.message.title} is sent as a whole", here())

    def refuse(self) -> NoReturn:
        """It is no truth value."""
        raise SpecError(f"{self.of.message.title} is a message: ask whether it was sent, or for a field", here())

    @property
    def sent(self) -> Any:
        message: MessageType = self.of.message
        if message.flag is not None:
            return self.of.cells(message.flag.name)[self._key]
        marking = [field.var for field in message.fields.values() if field.marks]
        return any_of(*(self.of.cells(var.name)[self._key] != var.blank for var in marking))

    def __getattr__(self, name: str) -> Any:
        message: MessageType = self.of.message
        if name not in message.fields:
            raise _no_field(message, name)
        var = message.fields[name].var
        cells = self.of.cells(var.name)
        return cells[self._key] if len(var.index) == len(message.key) else _Rest(cells, self._key)


def _no_field(message: MessageType, name: str) -> SpecError:
    return SpecError(f"{message.title} has no {name}; it has {', '.join(message.fields)}", here())


class _Rest:
    """The cells of a field that has one for each member of a sort."""

    __slots__ = ("_cells", "_key")

    def __init__(self, cells: Any, key: tuple[Any, ...]) -> None:
        self._cells = cells
        self._key = key

    def __getitem__(self, index: Any) -> Any:
        return self._cells[(*self._key, *(index if isinstance(index, tuple) else (index,)))]
