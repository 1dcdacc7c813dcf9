"""State variables and messages: every one has declared indices, a declared range, an initial value and a sentence.

A *message* variable is a write-once fact about what was sent ("register") or the largest number sent so far
("watermark"). The network's losing, delaying, repeating and reordering is that a receiver may act on any sent message
now, later, again or never; so actions read messages through `s.received(r)`. Engines for bounded instances take
"received" to be "sent"; the audit tracks what the trace shows as received.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.sorts import BOOL, Constant, Instance, Sort, Values

Sender = Callable[..., Any]

RESERVED = frozenset(
    [
        "after",
        "assign",
        "assign_range",
        "assigned",
        "before",
        "cells",
        "cfg",
        "conjunct",
        "depth",
        "guards",
        "instance",
        "members",
        "next_state",
        "quantify",
        "read",
        "received",
        "records",
        "require",
        "result",
        "schema",
        "updates",
        "within",
        "write",
    ]
)
"""Names that the state handle of an engine uses itself."""


@dataclass(frozen=True, slots=True)
class Var:
    """A declared state variable. `kind` is state, ghost (history kept only for invariants), register or watermark.

    `tags` say what kind of variable it is to the specification's own functions; no engine looks at them.
    """

    name: str
    index: tuple[Sort, ...]
    values: Values
    init: int
    kind: str
    doc: str
    sender: Sender | None = field(default=None, compare=False)
    tags: frozenset[str] = frozenset()
    message: str = field(default="", compare=False)
    """Name of the message that it is sent in, as documents have it."""

    @property
    def is_message(self) -> bool:
        """Is it something sent over the network?"""
        return self.kind in ("register", "watermark")

    @property
    def blank(self) -> int:
        """What a cell holds that holds nothing: 0, false, none, the first label."""
        return False if self.values.is_bool else Constant(0, self.values.kind)

    def cells(self, instance: Instance) -> int:
        """Number of cells in a bounded instance."""
        count = 1
        for sort in self.index:
            count *= len(instance.members(sort))
        return count


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a message: its register; does it mark what was sent, may it be left out; the part that declares it."""

    var: Var
    marks: bool
    may_be_blank: bool
    part: str


@dataclass(frozen=True, slots=True)
class MessageType:
    """A declared message. `name` is that of the state, `title` that of documents. One that is a single value has no
    record, and its field, if it is no flag, no name.
    """

    name: str
    title: str
    key: tuple[Sort, ...]
    sender: Sender
    to: str
    record: Any
    flag: Var | None
    part: str
    fields: dict[str, Field] = field(default_factory=dict)

    @property
    def vars(self) -> tuple[Var, ...]:
        """Its registers: the flag, then the fields."""
        return (*((self.flag,) if self.flag else ()), *(one.var for one in self.fields.values()))


class Schema:
    """The declared variables and messages, in order of declaration. `part` is the one that declares now."""

    def __init__(self) -> None:
        self.vars: dict[str, Var] = {}
        self.messages: dict[str, MessageType] = {}
        self.promised: dict[str, Any] = {}
        """Variables that a state says are declared elsewhere, with their types."""
        self.part = ""
        self.added: dict[Callable[..., Any], tuple[Callable[..., Any], ...]] = {}
        """Point → what parts added to it (`points`)."""
        self.replaced: dict[Callable[..., Any], Callable[..., Any]] = {}
        """Point → the body that a part put in place of its own."""

    def remove(self, name: str) -> None:
        """Take back a variable that makes no sense with a part."""
        del self.vars[name]

    def tagged(self, tag: str) -> tuple[str, ...]:
        """The variables with a tag, in order of declaration."""
        return tuple(var.name for var in self.vars.values() if tag in var.tags)

    def add(self, var: Var) -> Var:
        """Declare a variable. Raises `SpecError` if it is there, or has no fit name and sentence."""
        if var.name in self.vars:
            there = self.vars[var.name].doc
            raise SpecError(f"variable {var.name} is declared twice: as {var.doc!r}, and as {there!r}")
        if var.name in RESERVED or not var.name.isidentifier():
            raise SpecError(f"a variable cannot be called {var.name}")
        if not var.doc:
            raise SpecError(f"variable {var.name} needs a sentence that says what it is")
        self.vars[var.name] = var
        return var

    def state(
        self,
        name: str,
        index: Sequence[Sort],
        values: Values = BOOL,
        *,
        init: Any = 0,
        doc: str,
        tags: Sequence[str] = (),
    ) -> Var:
        """Declare a variable of the replicas or clients."""
        return self.add(Var(name, tuple(index), values, int(init), "state", doc, tags=frozenset(tags)))

    def ghost(self, name: str, index: Sequence[Sort], values: Values = BOOL, *, init: Any = 0, doc: str) -> Var:
        """Declare history that only invariants and bounds read; no guard of a replica's action may depend on it."""
        return self.add(Var(name, tuple(index), values, int(init), "ghost", doc))

    def register(self, name: str, index: Sequence[Sort], values: Values = BOOL, *, sender: Sender, doc: str) -> Var:
        """Declare a write-once message field; `sender(*index)` is the replica that sends it."""
        return self.add(Var(name, tuple(index), values, 0, "register", doc, sender))

    def field(
        self,
        message: str,
        name: str,
        index: Sequence[Sort],
        values: Values,
        sender: Sender,
        *,
        doc: str,
        marks: bool = False,
        may_be_blank: bool = True,
    ) -> None:
        """Declare one more field of a message that is there; `index` is what it has besides the key."""
        known = self.messages[message]
        full = (*known.key, *index)
        var = Var(f"{message}_{name}", full, values, 0, "register", doc, sender, message=known.title)
        known.fields[name] = Field(self.add(var), marks, may_be_blank, self.part)

    def watermark(self, name: str, index: Sequence[Sort], values: Values, *, sender: Sender, doc: str) -> Var:
        """Declare a number of which ever larger values are sent; any value up to it may be received."""
        return self.add(Var(name, tuple(index), values, 0, "watermark", doc, sender))
