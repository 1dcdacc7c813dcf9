"""What a search of one shape came to, kept by content: the same recorded specification is not searched twice."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from viewproof.spec.engines import explicit, llvm
from viewproof.spec.engines.explicit.checkpoint import checksum_of
from viewproof.spec.engines.llvm.objects import cache_dir
from viewproof.spec.engines.portfolio.digest import digest
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import RangeError

ENGINE = {
    explicit: ("emit", "kernel", "layout", "lower", "memory", "rounds", "search", "stutter"),
    llvm: ("lower", "machine"),
}
"""Modules that decide what a search finds."""


@dataclass(frozen=True)
class Shape:
    """A bounded instance of a model under its name; a search of it ends, or stops at `max_states`."""

    name: str
    spec: Spec
    max_states: int | None = None


@dataclass(frozen=True)
class Outcome:
    """A search in short; `broken`: the invariant, or why it ended early.

    `verdict`: holds, violated, range (a step leaves a declared range), bounded (it ended at the shape's bound of
    states; all states of up to `depth_complete` steps were met), or inconclusive. `recalled`: it was done before.
    """

    verdict: str
    distinct: int = 0
    generated: int = 0
    depth: int = 0
    depth_complete: int = 0
    broken: str = ""
    steps: int = 0
    witnessed: tuple[str, ...] = ()
    taken: tuple[str, ...] = ()
    seconds: float = 0.0
    memory_bytes: int = 0
    recalled: bool = field(default=False, compare=False)

    @property
    def holds(self) -> bool:
        """Did nothing break, as far as it was searched?"""
        return self.verdict in ("holds", "bounded")


@cache
def _engine() -> bytes:
    """What an outcome depends on besides the specification: the text of the engine that searches."""
    folders = {package: Path(package.__path__[0]) for package in ENGINE}
    return b"\0".join((folders[package] / f"{name}.py").read_bytes() for package in ENGINE for name in ENGINE[package])


def _path(shape: Shape) -> Path:
    own = f"{digest(shape.spec)} {shape.max_states}".encode()
    name = hashlib.blake2b(_engine() + own, digest_size=16).hexdigest()
    return cache_dir().parent / "outcomes" / name[:2] / f"{name}.json"


def search(
    shape: Shape, *, workers: int | None = None, max_memory_bytes: int | None = None, fresh: bool = False,
    progress: Callable[[explicit.Progress], None] | None = None, notify: Callable[[str], None] = lambda text: None,
) -> tuple[Outcome, explicit.Result | None]:  # fmt: skip
    """Search a shape, or recall what it came to; with the whole result where it was searched now (`fresh`: always).

    A search that a memory bound or an interrupt ended is not kept. Raises `EngineError` as `explicit.explore`.
    """
    path = _path(shape)
    if not fresh and (known := _recall(path)) is not None:
        return known, None
    try:
        found = explicit.explore(
            shape.spec, max_states=shape.max_states, workers=workers, max_memory_bytes=max_memory_bytes,
            progress=progress, notify=notify,
        )  # fmt: skip
    except RangeError as problem:
        steps = len(problem.behaviour) + 1 if isinstance(problem, explicit.OutOfRangeError) else 0
        outcome = Outcome("range", steps=steps, broken=str(problem))
        _remember(path, outcome)
        return outcome, None
    at_bound = shape.max_states is not None and found.distinct >= shape.max_states
    verdict = "bounded" if found.verdict == "inconclusive" and at_bound else found.verdict
    why = found.reason if verdict == "inconclusive" else found.broken or ""
    outcome = Outcome(
        verdict, found.distinct, found.generated, found.depth, len(found.levels), why,
        len(found.behaviour), tuple(found.witnessed), tuple(found.per_action), found.seconds, found.memory_bytes,
    )  # fmt: skip
    if verdict != "inconclusive":
        _remember(path, outcome)
    return outcome, found


def _recall(path: Path) -> Outcome | None:
    try:
        kept: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        checksum = kept.pop("checksum")
        if checksum != checksum_of(kept):
            return None
        lists = {name: tuple(kept.pop(name)) for name in ("witnessed", "taken")}
        return Outcome(**{**kept, **lists, "recalled": True})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _remember(path: Path, outcome: Outcome) -> None:
    kept = json.loads(json.dumps(asdict(outcome)))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        fresh.write_text(json.dumps({**kept, "checksum": checksum_of(kept)}))
        fresh.replace(path)
    except OSError:
        return  # it is searched again then
