"""How a part declares its options: a frozen dataclass beside it, each field with its default, meaning and bounds."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from viewproof.spec.lang import SpecError


def option(default: Any, doc: str, *, least: int | None = None, among: tuple[str, ...] = ()) -> Any:
    """An option: the default leaves the core as it is. `least` is its lower bound, `among` are all its values."""
    return field(default=default, metadata={"doc": doc, "least": least, "among": among})


@dataclass(frozen=True)
class Options:
    """The options of a part. Some do not go with others: `go_together` raises `SpecError` for these."""

    def __post_init__(self) -> None:
        for one in fields(self):
            _require_in_bounds(one.name, getattr(self, one.name), **one.metadata)
        for declared in reversed(type(self).__mro__):
            if "go_together" in vars(declared):
                vars(declared)["go_together"](self)

    def go_together(self) -> None:
        """All go together."""


def _require_in_bounds(name: str, value: Any, doc: str, least: int | None, among: tuple[str, ...]) -> None:
    if least is not None and value < least:
        raise SpecError(f"{name} must be at least {least}, not {value}: {doc}")
    if among and value not in among:
        raise SpecError(f"{name} is {', '.join(filter(None, among))} or nothing, not {value}: {doc}")
