"""Mistakes in a specification that mypy and editors refuse: each marked line has the error that its comment says.

It is never run; `test_types.py` gives it to mypy. `test_sorts.py` and `test_messages.py` make the same mistakes where
they are recorded, and those that mypy lets pass: Python's `if`, `and`, `not`, and the ends of a range of another sort.
"""

from __future__ import annotations

from viewproof.spec.lang import (
    BLANK,
    NONE,
    all_of,
    as_index,
    count,
    each,
    largest,
    maximum,
    number_of,
    require,
    some,
    value_of,
    where,
    within,
)
from viewproof.spec.vsr.core.normal import prepare_request
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Client,
    Core,
    DoViewChange,
    Op,
    Prepare,
    Replica,
    Request,
    Status,
    View,
    parent_of,
    primary,
)
from viewproof.spec.vsr.parts.clients.state import Clients, SessionPrepare


def fine(state: Core, r: Replica, v: View, o: Op, c: Client, s: Request) -> None:
    """What a specification needs is accepted."""
    received = state.received(r)
    require(within(View, v))
    require(all_of(state.status[r] == NORMAL, primary(state, v) == r, o == state.op[r] + 1))
    require(received.prepare[v, o].sent)
    require(received.prepare[v, o].parent == parent_of(state, r, o))
    require(number_of(o) - 1 >= count(Replica, lambda q: received.dvc[v, q].sent))
    require(value_of(state.entry[r, o]) <= v)
    state.view[r] = largest(v, state.log_view[r])
    state.op[r] = where(state.written[r, o], o, 0)
    state.entry[r, o] = where(o == 1, NONE, some(v))
    state.prepare[v, o] = Prepare(client=c, request=BLANK, parent=NONE)
    state.restarts = state.restarts + 1


def sorts(state: Core, r: Replica, v: View, o: Op, c: Client, s: Request) -> None:
    """What does not go together."""
    require(state.view[o] == v)  # error: Invalid index type "Op" for "Cells[Replica, View]"; expected type "Replica"
    require(state.entry[o, r] == NONE)  # error: Invalid index type "tuple[Op, Replica]" for "Cells[tuple[Replica, Op],
    require(state.entry[r] == NONE)  # error: Invalid index type "Replica" for "Cells[tuple[Replica, Op],
    require(state.view[r] == r)  # error: Unsupported operand types for == ("View" and "Replica")
    require(r < o)  # error: Unsupported operand types for < ("Replica" and "Op")
    state.view[r] = r  # error: expression has type "Replica", target has type "View | int")
    state.op[r] = state.op[r] + o  # error: Unsupported operand types for + ("Op" and "Op")
    require(o - r <= 1)  # error: No overload variant of "__sub__" of "Index" matches argument type "Replica"
    require(v % 3 == r)  # error: Unsupported operand types for == ("Number" and "Replica")
    require(state.status[r] == 0)  # error: Argument 1 to "require" has incompatible type "Incomparable"; expected
    state.status[r] = 1  # error: Incompatible types in assignment (expression has type "int", target has type "Status")
    state.status[r] = Status.NORMAL + 1  # error: Unsupported operand types for + ("Status" and "int")
    require(state.entry[r, o] == 0)  # error: Argument 1 to "require" has incompatible type "Incomparable"; expected
    state.view[r] = state.entry[r, o]  # error: expression has type "Option[View]", target has type "View | int")
    state.entry[r, o] = v  # error: expression has type "View", target has type "Option[View]")
    state.entry[r, o] = some(r)  # error: Argument 1 to "some" has incompatible type "Replica"; expected "View | int"
    state.view[r] = count(Replica, lambda q: q != r)  # error: expression has type "Number", target has type "View |
    state.written[r, o] = 1  # error: expression has type "int", target has type "Bool | bool")
    state.op[r] = value_of(o)  # error: Argument 1 to "value_of" has incompatible type "Op"; expected "Option[Never]"
    state.op[r] = as_index(Op, r)  # error: Argument 2 to "as_index" has incompatible type "Replica"; expected "Number
    state.op[r] = maximum(Replica, lambda q: state.view[q])  # error: expression has type "View", target has type "Op |
    prepare_request(state, r, s, c)  # error: Argument 3 to "prepare_request" has incompatible type "Request"; expected
    require(state.nonsense[r] == 0)  # error: "Core" has no attribute "nonsense"


def messages(state: Core, r: Replica, v: View, o: Op, c: Client, s: Request) -> None:
    """What a message is not."""
    received = state.received(r)
    require(received.view[r] == v)  # error: "Messages" has no attribute "view"
    require(state.received(v).sv[v].sent)  # error: Argument 1 to "received" of "Core" has incompatible type "View";
    require(received.dvc[r, v].sent)  # error: Invalid index type "tuple[Replica, View]" for "Sent[tuple[View,
    require(received.dvc[v, r].entry[r] == NONE)  # error: Invalid index type "Replica" for "Cells[Op, Option[View]]";
    require(received.prepare[v, o].feature != 0)  # error: "Prepare" has no attribute "feature"
    require(received.prepare[v, o])  # error: Argument 1 to "require" has incompatible type "Prepare"; expected "Bool |
    state.prepare[v, o] = Prepare(client=c, request=s)  # error: Missing named argument "parent" for "Prepare"
    state.prepare[v, o] = Prepare(client=s, request=s, parent=NONE)  # error: Argument "client" to "Prepare" has
    state.prepare[v, o] = DoViewChange(log_view=v, op=o, commit=o, entry=BLANK)  # error: expression has type
    state.prepare[v, o].client = c  # error: Property "client" defined in "Prepare" is read-only
    state.dvc[v, r] = DoViewChange(log_view=v, op=o, commit=o, entry=each(Op, lambda p: p))  # error: Argument 2 to


def parts(state: Clients, core: Core, v: View, o: Op, c: Client, s: Request) -> None:
    """What a part adds is not left out, and not there without it."""
    state.prepare[v, o] = Prepare(client=c, request=s, parent=NONE)  # error: expression has type "Prepare", target has
    core.prepare[v, o] = SessionPrepare(client=c, request=s, parent=NONE)
    require(core.table_op[as_index(Replica, 0), c] == o)  # error: "Core" has no attribute "table_op"
