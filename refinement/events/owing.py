"""Words for logs of which one step takes several lines: what a node owes, and values that lines below still need."""

from __future__ import annotations

from typing import Any, cast

from viewproof.refinement.events.lines import Freed, Let, Owes, Taken
from viewproof.refinement.events.terms import Apply, Row, lifted
from viewproof.refinement.events.words import now_recording
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.errors import here
from viewproof.spec.lang.expr import Expr, Name, kind_of
from viewproof.spec.lang.kinds import NUMBER
from viewproof.spec.lang.record import RecordedCells
from viewproof.spec.lang.sorts import Sort


def let(value: Any) -> Any:
    """The value as it is here, before what stands below: a step may change what it is made of."""
    now, expr = now_recording(), lifted(value)
    now.names += 1
    name = Name(f"let_{now.names}", None, None if expr.is_bool else kind_of(expr))
    now.lines.append(Let(name, expr, **now.place()))
    return name != 0 if expr.is_bool else name


def owes(*events: str, values: tuple[Any, ...] = ()) -> None:
    """The node's next line must be of one of these events, which takes the values with `owed`.

    Said several times, the lines follow in that order; what the node owed before comes after them.
    """
    now = now_recording()
    now.lines.append(Owes(events, tuple(map(lifted, values)), **now.place()))


def owed(*sorts: type, must: bool = True) -> tuple[Any, ...]:
    """Was this line owed (1 or 0), and the values that were handed on, of these sorts (0, if it was not).

    `must`: the event is refused where it was not. It is the first word of an event.
    """
    now = now_recording()
    if now.lines or now.taken is not None:
        raise SpecError("what is owed is asked for before everything else, and once", here())
    names = tuple(Name(f"owed_{place}", None, cast(Sort, sort).kind) for place, sort in enumerate(sorts))
    now.taken = Taken(Name("was_owed", None, NUMBER), names, must)
    return (now.taken.was, *names)


def owes_nothing(by: Any = None) -> None:
    """The node (if no other is given, that of the event) owes nothing any more: it died."""
    now = now_recording()
    now.lines.append(Freed(None if by is None else lifted(by), **now.place()))


def of_row(fn: Any, cells: Any, node: Any, *args: Any, sort: type | None = None) -> Any:
    """A function of all of a node's cells that are set (a mapping), and of numbers: known where all of them are."""
    of: RecordedCells = cells
    kind = NUMBER if sort is None else cast(Sort, sort).kind
    row: tuple[Expr, ...] = (Row(of.var.name, lifted(node)), *map(lifted, args))
    return Apply(fn.__name__, row, fn, denotes=kind)
