"""An example of each word of the specification language that is part of an expression, over a small state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from viewproof.spec.lang import (
    NONE,
    Bool,
    Cells,
    Index,
    Instance,
    Label,
    Message,
    Number,
    Option,
    Predicate,
    Sent,
    Spec,
    State,
    Values,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    exists,
    field,
    forall,
    implies,
    largest,
    maximum,
    message,
    not_,
    number_of,
    require,
    same,
    schema_of,
    smallest,
    some,
    value_of,
    variable,
    watermark,
    where,
    within,
)


class Node(Index):
    """A machine."""


class Op(Index, lo=1):
    """A place in a log."""


class Mode(Label):
    """What a machine does."""

    IDLE: Mode
    BUSY: Mode


def by_node(cfg: Any, n: Node, *_: Index) -> Node:
    """the node"""
    return n


class Offer(Message):
    """A node offers its log."""

    op: Op = field("highest op")
    top: Option[Node] = field("its last entry")


class Example(State):
    """The state of the examples."""

    up: Cells[Node, Bool] = variable("is it up?")
    mode: Cells[Node, Mode] = variable("what it does")
    op: Cells[Node, Op] = variable("highest op of its log")
    entry: Cells[tuple[Node, Op], Option[Node]] = variable("entry of its log")
    total: Number = variable("how many there are", values=Values(0, 9))
    offer: Sent[Node, Offer] = message(by_node, to="all")
    told: Cells[Node, Op] = watermark(by_node, to="all", title="told", doc="numbers told")


@action
def take(state: Any, n: Node, o: Op) -> None:
    """Node n, which is up, takes the next entry, tells it, and forgets all after it."""
    require(state.up[n])
    require(o == state.op[n] + 1)
    state.op[n] = o
    state.entry.update((n, between(Op, o, 2)), lambda p: where(p == o, some(n), NONE))
    state.offer[n] = Offer(op=o, top=some(n))


EXAMPLES: Mapping[str, Callable[[Any], Any]] = {
    "all_of": lambda state: all_of(state.up[0], state.op[0] > 0),
    "any_of": lambda state: any_of(state.up[0], state.op[0] > 0),
    "not_": lambda state: not_(state.up[0]),
    "implies": lambda state: implies(state.op[0] > 0, lambda: state.entry[0, state.op[0]] != NONE),
    "where": lambda state: where(state.up[0], state.op[0], 0) == state.op[1],
    "forall": lambda state: forall(Node, lambda n: state.up[n]),
    "exists": lambda state: exists(Node, lambda n: state.up[n]),
    "count": lambda state: count(Node, lambda n: state.up[n]) >= 2,
    "maximum": lambda state: maximum(Node, lambda n: state.op[n]) <= state.op[0],
    "between": lambda state: forall(between(Op, 1, state.op[0]), lambda o: state.entry[0, o] != NONE),
    "largest": lambda state: largest(state.op[0], state.op[1]) == state.op[2],
    "smallest": lambda state: smallest(state.op[0], state.op[1]) == state.op[2],
    "within": lambda state: within(Op, state.op[0] + 1),
    "some": lambda state: forall(Node, lambda n: state.entry[0, 1] == some(n)),
    "value_of": lambda state: forall(Node, lambda n: value_of(state.entry[0, 1]) == n),
    "NONE": lambda state: state.entry[0, 1] == NONE,
    "number_of": lambda state: number_of(state.op[0]) == state.total,
    "as_index": lambda state: as_index(Node, state.total % 3) == 0,
    "same": lambda state: same(state.offer[0], state.offer[1]),
}
"""Word → a condition in which it stands."""


UNBOUNDED = Instance({"Node": 2})
"""As the audit has it: nodes are known, logs have no end."""


def example_spec() -> Spec:
    """A specification of which each invariant is an example, by the name of its word."""
    predicates = tuple(Predicate(word, word, fn, f"An example of {word}.") for word, fn in EXAMPLES.items())
    return Spec("example", schema_of(Example), None, (take,), predicates, (), Instance({"Node": 2, "Op": 2}))
