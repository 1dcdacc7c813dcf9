"""Types of terms, for mypy and editors: what a specification may do with a replica, an op, an entry.

A sort is a class, and `r: Replica` says that r is a term of that sort. No object of these classes exists: a term is an
int in the interpreter and an expression while recording, where the same rules are checked again (`kinds`). The
operators below are therefore declared for type checkers only.
"""

from __future__ import annotations

from collections.abc import Callable
from types import GenericAlias
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast, overload

from viewproof.spec.lang.kinds import ANY_OPTIONAL
from viewproof.spec.lang.sorts import Constant, Sort

if TYPE_CHECKING:
    from typing import Self


class Term:
    """Whatever a specification computes with."""


class Bool(Term):
    """A Boolean term."""

    if TYPE_CHECKING:

        def __bool__(self) -> NoReturn: ...
        def __eq__(self, other: Bool | bool) -> Bool: ...  # type: ignore[override]
        def __ne__(self, other: Bool | bool) -> Bool: ...  # type: ignore[override]


class Number(Term):
    """A number that is no index: how many there are, how far apart two indices lie."""

    if TYPE_CHECKING:

        def __add__(self, other: Number | int) -> Number: ...
        def __radd__(self, other: int) -> Number: ...
        def __sub__(self, other: Number | int) -> Number: ...
        def __rsub__(self, other: int) -> Number: ...
        def __mod__(self, other: int) -> Number: ...
        def __eq__(self, other: Number | int) -> Bool: ...  # type: ignore[override]
        def __ne__(self, other: Number | int) -> Bool: ...  # type: ignore[override]
        def __lt__(self, other: Number | int) -> Bool: ...
        def __le__(self, other: Number | int) -> Bool: ...
        def __gt__(self, other: Number | int) -> Bool: ...
        def __ge__(self, other: Number | int) -> Bool: ...


class Index(Term, metaclass=Sort):
    """A member of a sort, or 0 where a variable says so: it can be moved by a number, and compared with its like."""

    if TYPE_CHECKING:

        def __add__(self, other: Number | int) -> Self: ...
        def __radd__(self, other: Number | int) -> Self: ...
        @overload
        def __sub__(self, other: Self) -> Number: ...
        @overload
        def __sub__(self, other: Number | int) -> Self: ...
        def __sub__(self, other: Any) -> Any: ...
        def __mod__(self, other: int) -> Number: ...
        def __eq__(self, other: Self | int) -> Bool: ...  # type: ignore[override]
        def __ne__(self, other: Self | int) -> Bool: ...  # type: ignore[override]
        def __lt__(self, other: Self | int) -> Bool: ...
        def __le__(self, other: Self | int) -> Bool: ...
        def __gt__(self, other: Self | int) -> Bool: ...
        def __ge__(self, other: Self | int) -> Bool: ...


class Incomparable:
    """What comparing a label or an optional with a number is: no condition. (Python's int would allow it.)"""


class Label(Term, metaclass=Sort):
    """One of a few named values: it can only be compared."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __eq__(self, other: Self) -> Bool: ...
        @overload
        def __eq__(self, other: int) -> Incomparable: ...
        def __eq__(self, other: Any) -> Any: ...
        @overload  # type: ignore[override]
        def __ne__(self, other: Self) -> Bool: ...
        @overload
        def __ne__(self, other: int) -> Incomparable: ...
        def __ne__(self, other: Any) -> Any: ...


I = TypeVar("I", bound="Index")  # noqa: E741
L = TypeVar("L", bound="Label")
T = TypeVar("T", bound="Term")


class Option(Term, Generic[I]):
    """A member of the sort, or none (`some`, `NONE`, `value_of`). None is below all members."""

    if TYPE_CHECKING:

        @overload  # type: ignore[override]
        def __eq__(self, other: Option[I]) -> Bool: ...
        @overload
        def __eq__(self, other: int) -> Incomparable: ...
        def __eq__(self, other: Any) -> Any: ...
        @overload  # type: ignore[override]
        def __ne__(self, other: Option[I]) -> Bool: ...
        @overload
        def __ne__(self, other: int) -> Incomparable: ...
        def __ne__(self, other: Any) -> Any: ...
        def __lt__(self, other: Option[I]) -> Bool: ...
        def __le__(self, other: Option[I]) -> Bool: ...
        def __gt__(self, other: Option[I]) -> Bool: ...
        def __ge__(self, other: Option[I]) -> Bool: ...

    else:
        __class_getitem__ = classmethod(GenericAlias)  # typing's own keeps equal sorts, not the same ones


NONE: Option[Any] = cast(Any, Constant(0, ANY_OPTIONAL))
"""None of them: the optional that holds nothing."""

K = TypeVar("K")
V = TypeVar("V")


class Cells(Generic[K, V]):
    """The cells of a variable: K is its index (a tuple if there are several), V what a cell holds."""

    if TYPE_CHECKING:

        def __getitem__(self, index: K) -> V: ...
        @overload
        def __setitem__(self: Cells[K, Bool], index: K, value: Bool | bool) -> None: ...
        @overload
        def __setitem__(self: Cells[K, Number], index: K, value: Number | int) -> None: ...
        @overload
        def __setitem__(self: Cells[K, I], index: K, value: I | int) -> None: ...
        @overload
        def __setitem__(self: Cells[K, Option[I]], index: K, value: Option[I]) -> None: ...
        @overload
        def __setitem__(self: Cells[K, L], index: K, value: L) -> None: ...
        def __setitem__(self, index: K, value: Any) -> None: ...
        def update(self, index: tuple[Any, ...], value: Callable[..., V | int]) -> None:
            """Assign a whole range: entries of `index` that are a sort or between(…) run over their members."""

    else:
        __class_getitem__ = classmethod(GenericAlias)
