"""A small specification with one of everything that the TLA+ export has to print: readers put books on a shelf."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    BOOL,
    Instance,
    Label,
    Schema,
    Sort,
    Spec,
    Values,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    implies,
    invariant,
    largest,
    maximum,
    not_,
    number_of,
    one_of,
    require,
    smallest,
    up_to,
    where,
    within,
    witness,
)

Reader = Sort("Reader")
Place = Sort("Place", lo=1)
Length = Sort("Length", ends_with="Place")


class Mood(Label):
    """What a reader does."""

    IDLE: Mood
    WALKING: Mood
    READING: Mood


IDLE, WALKING, READING = Mood.IDLE, Mood.WALKING, Mood.READING
INSTANCE = Instance({"Reader": 1, "Place": 2})


def schema() -> Schema:
    """The variables."""
    s = Schema()
    s.state("mood", (Reader,), one_of(Mood), doc="what a reader does")
    s.state(
        "level",
        (),
        Values(0, 1, labels=("low", "high")),
        doc="a level that is computed with, so that it stays a number",
    )
    s.state("length", (Reader,), up_to(Place), doc="how many places a reader's shelf has in use")
    s.state(
        "book", (Reader, Place), Values(0, sort=Place, plus=1, kind=Place.kind), doc="the book at a place; 0 = none"
    )
    s.state("owned", (Place,), BOOL, init=1, doc="is the place somebody's?")
    s.register("lent", (Reader, Place), BOOL, sender=lambda r, p: r, doc="a note that a book was lent")
    s.ghost("steps", (), up_to(Place), doc="how often a book was put")
    return s


@action
def put(s: Any, r: Reader, b: Place) -> None:
    """A reader puts a book behind the others.

    The second paragraph of a docstring is part of the comment.
    """
    p = s.length[r] + 1
    before = where(p == 1, 0, lambda: s.book[r, p - 1])
    require(s.mood[r] != READING)
    require(within(Place, p))
    require(within(Place, s.steps + 1))
    require(any_of(p == 1, lambda: before < b))
    require(exists(Reader, lambda q: any_of(q != r, s.owned[p])))
    s.length[r] = p
    s.book[r, p] = where(before < b, b, largest(before, 1))
    s.mood[r] = where(p == 1, WALKING, s.mood[r])
    s.steps = s.steps + 1


@action
def clear(s: Any, r: Reader, n: Length) -> None:
    """A reader takes everything above n away, and lends it to the readers who have less."""
    gone = between(Place, n + 1, s.length[r])
    require(n < s.length[r])
    require(not_(all_of(s.mood[r] == IDLE, n == 0)))
    s.book.update((r, gone), lambda p: 0)
    s.lent.update((Reader, gone), lambda q, p: any_of(s.lent[q, p], s.length[q] < smallest(n, s.length[r])))
    s.length[r] = n
    s.mood[r] = IDLE


@action
def swap(s: Any, p: Place) -> None:
    """Two updates of one variable: the place and the one after it change hands."""
    require(p + 1 <= 2)
    require(implies(s.owned[p], not_(s.owned[p + 1])))
    s.owned[p] = s.owned[p + 1]
    s.owned[p + 1] = s.owned[p]


@action
def lend(s: Any, p: Place) -> None:
    """A range and a single cell of one variable; every cell of another."""
    received = s.received(0)
    require(not_(received.lent[0, p]))
    require(count(Place, lambda i: s.owned[i]) >= 1)
    s.lent.update((1, between(Place, p, 2)), lambda i: True)
    s.lent[0, p] = True
    s.owned.update((Place,), lambda i: i != p)


@action
def raise_level(s: Any) -> None:
    """An action without parameters."""
    require(s.level < 1)
    s.level = (s.level + 1) % 2


@action
def rest(s: Any, r: Reader) -> None:
    """Nothing changes."""
    require(s.mood[r] == IDLE)


@invariant("S1", "ascending")
def ascending(s: Any) -> Any:
    """Books stand in order."""
    return forall(
        Reader,
        lambda r: forall(between(Place, 2, s.length[r]), lambda p: s.book[r, p - 1] <= s.book[r, p]),
    )


@invariant("S2", "a title that is no word")
def largest_book(s: Any) -> Any:
    """No book is larger than the number of the last place."""
    return forall(
        Reader,
        lambda r: (
            number_of(maximum(between(Place, 1, s.length[r]), lambda p: s.book[r, p], default=-1))
            <= 2 - s.level % 2 + 1
        ),
    )


@invariant("S3", "steps_rise")
def steps_rise(s: Any) -> Any:
    """Steps never fall, and a reader's mood is never reading."""
    return all_of(
        s.steps <= s.after.steps, forall(Reader, lambda r: all_of(s.after.mood[r] != READING, s.after.length[r] <= 2))
    )


@witness("S1", "a shelf is full")
def full(s: Any) -> Any:
    """A shelf has no place left."""
    return exists(Reader, lambda r: s.length[r] == 2)


def shelf() -> Spec:
    """The specification."""
    actions = (put, clear, swap, lend, raise_level, rest)
    return Spec("shelf", schema(), None, actions, (ascending, largest_book, steps_rise), (full,), INSTANCE)
