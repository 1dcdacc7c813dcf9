"""Where in the spec's source an action or an invariant stands, for reports that point at it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import viewproof.spec as spec_package
from viewproof.refinement.verdict import Violation
from viewproof.spec.vsr.config import ClientTable, Config
from viewproof.spec.vsr.parts import CORE, PARTS

ALL = Config(
    client_table=ClientTable(slots=1, sessions=True), features=1, checkpoints=True, journal_slots=1, pipeline=1
)
"""A configuration with the options of the replica on."""


@lru_cache(maxsize=1)
def _places() -> dict[str, tuple[str, int]]:
    """Name of an action, or id of an invariant → (file below the repository's root, line): the core's, else that of
    the first part that has it.
    """
    named: list[tuple[str, Callable[..., Any]]] = []
    for part in (CORE, *PARTS):
        named += [(action.name, action.fn) for action in part.actions(ALL)]
        named += [(invariant.id.partition(".")[0], invariant.fn) for invariant in part.invariants(ALL)]
    root = Path(next(iter(spec_package.__path__))).resolve().parent
    places: dict[str, tuple[str, int]] = {}
    for name, fn in named:
        file = Path(fn.__code__.co_filename).resolve()
        shown = file.relative_to(root) if file.is_relative_to(root) else file
        places.setdefault(name, (shown.as_posix(), fn.__code__.co_firstlineno))
    return places


def spec_place(violation: Violation) -> tuple[str, int] | None:
    """The broken invariant's place in the spec, else that of the action the event stands for, if the spec has one."""
    places = _places()
    return places.get(violation.rule_id) or places.get(violation.action)
