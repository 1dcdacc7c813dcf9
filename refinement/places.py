"""Where in the specification's source an action or an invariant stands, for reports that point at it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import viewproof.spec as spec_package
from viewproof.refinement.verdict import Violation
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.vsr.config import ClientTable, Config
from viewproof.spec.vsr.parts import CORE, PARTS

ALL = Config(
    client_table=ClientTable(slots=1, sessions=True), features=1, checkpoints=True, journal_slots=1, pipeline=1
)
"""A configuration with the options of the replica on."""


def _place(fn: Callable[..., Any]) -> str:
    """`file:line`, the file below the repository's root."""
    root = Path(next(iter(spec_package.__path__))).resolve().parent
    file = Path(fn.__code__.co_filename).resolve()
    shown = file.relative_to(root) if file.is_relative_to(root) else file
    return f"{shown.as_posix()}:{fn.__code__.co_firstlineno}"


def _ids(invariants: Iterable[Any]) -> Iterator[tuple[str, Callable[..., Any]]]:
    for invariant in invariants:
        yield invariant.id.partition(".")[0], invariant.fn


def _by_name(actions: Iterable[Any], invariants: Iterable[Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, fn in (*((action.name, action.fn) for action in actions), *_ids(invariants)):
        found.setdefault(name, _place(fn))
    return found


@lru_cache(maxsize=1)
def _of_replica() -> dict[str, str]:
    """Name of an action, or id of an invariant → its place: the core's, else that of the first part that has it."""
    places: dict[str, str] = {}
    for part in (CORE, *PARTS):
        places = {**_by_name(part.actions(ALL), part.invariants(ALL)), **places}
    return places


def place_in(spec: Spec, *names: str) -> str:
    """Place of the first of these that is an invariant or an action of the specification; "" if none is."""
    found: dict[str, Callable[..., Any]] = {}
    for named in (*((action.name, action.fn) for action in spec.actions), *_ids(spec.invariants)):
        found.setdefault(*named)
    return next((_place(found[name]) for name in names if name in found), "")


def spec_place(violation: Violation) -> tuple[str, int] | None:
    """Where the specification refuses the event: what the violation says, else the invariant or action of that name."""
    places = _of_replica() if not violation.place else {}
    place = violation.place or places.get(violation.rule_id) or places.get(violation.action) or ""
    file, _, line = place.rpartition(":")
    return (file, int(line)) if file else None
