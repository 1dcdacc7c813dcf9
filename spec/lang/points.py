"""Points: functions of a specification that optional parts add to, so that they know of no part themselves.

A point runs its own body, then what the parts that are on added, in their order. What is added names those of the
point's parameters that it needs. Guards and effects add up, so a part can forbid more and do more, but never permit
what another one forbids. A value is joined with what is added by the operator that the point states. A part that says
so may replace the body; what others add still runs after it.

A known mistake takes a guard or a value away where it stands: `with without(require_drained): …`,
`with instead({slot_op: commit_max}): …`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache, update_wrapper
from typing import Any, Generic, ParamSpec, TypeVar

from viewproof.spec.lang.errors import SpecError, source_of

P = ParamSpec("P")
R = TypeVar("R")

_replaced: list[tuple[Callable[..., Any], Callable[..., Any] | None]] = []
"""What runs in place of a point's body, or of an addition (None: nothing), innermost last."""


class Point(Generic[P, R]):
    """A function whose first argument is the state, and that parts add to."""

    def __init__(self, fn: Callable[P, R], join: Callable[..., R] | None = None) -> None:
        update_wrapper(self, fn)
        self.fn = fn
        self.join = join

    __name__: str

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The body, and what the parts of this specification added."""
        schema = args[0].schema  # type: ignore[attr-defined]
        body = _in_place_of(self, schema.replaced.get(self, self.fn))
        own: R = body(*args, **kwargs) if body else None  # type: ignore[assignment]
        values = [self._add(more, args, kwargs) for more in schema.added.get(self, ()) if _in_place_of(more, more)]
        return self.join(own, *values) if self.join and values else own

    def _add(self, more: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        named = dict(zip(parameters(self.fn), args, strict=False)) | kwargs
        value = _in_place_of(more, more)(**{name: named[name] for name in parameters(more) if name in named})  # type: ignore[misc]
        if value is not None and self.join is None:
            raise SpecError(f"{more.__name__} has a value, and {self.__name__} joins none", source_of(more))
        return value


def point(fn: Callable[P, R]) -> Point[P, R]:
    """A point of guards or effects; or of a value that parts may only replace."""
    return Point(fn)


def joined(join: Callable[..., Any]) -> Callable[[Callable[P, R]], Point[P, R]]:
    """A point whose value is `join(own, *added)`."""
    return lambda fn: Point(fn, join)


def cases(fn: Callable[P, tuple[Any, ...]]) -> Point[P, tuple[Any, ...]]:
    """A point that lists the conjuncts, or disjuncts, of a condition; parts append theirs (one, or a tuple of them)."""
    return Point(fn, _appended)


def _appended(own: tuple[Any, ...], *added: Any) -> tuple[Any, ...]:
    return (*own, *(case for more in added for case in (more if isinstance(more, tuple) else (more,))))


@cache
def parameters(fn: Callable[..., Any]) -> tuple[str, ...]:
    """The names of a function's parameters."""
    return tuple(inspect.signature(fn).parameters)


def require_parameters(more: Callable[..., Any], known: tuple[str, ...], target: str) -> None:
    """Raises `SpecError` unless `more` takes the state, and only parameters that its target has."""
    unknown = [name for name in parameters(more) if name not in known]
    if unknown:
        raise SpecError(f"{target} has no {', '.join(unknown)}; it has {', '.join(known)}", source_of(more))


def _in_place_of(what: object, otherwise: Callable[..., Any]) -> Callable[..., Any] | None:
    return next((stand_in for target, stand_in in reversed(_replaced) if target is what), otherwise)


@contextmanager
def instead(stand_ins: Mapping[Callable[..., Any], Callable[..., Any] | None]) -> Iterator[None]:
    """Within it other functions run in place of the bodies of points, or of what parts added."""
    _replaced.extend(stand_ins.items())
    try:
        yield
    finally:
        del _replaced[len(_replaced) - len(stand_ins) :]


def without(*additions: Callable[..., Any]) -> AbstractContextManager[None]:
    """Within it what parts added is left out."""
    return instead(dict.fromkeys(additions))
