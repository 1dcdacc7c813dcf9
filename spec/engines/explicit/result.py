"""What a search found: verdict, counts, coverage, and the shortest behaviour to a broken invariant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.errors import RangeError, Source
from viewproof.spec.lang.expr import ActionIR

PLAIN_FIELDS = (
    *("model", "verdict", "reason", "distinct", "generated", "depth", "queue", "deadlocks", "broken", "title"),
    *("witnessed", "unwitnessed", "invariants", "levels", "seconds", "compile_seconds", "memory_bytes", "row_bits"),
    *("states_per_second", "collision_probability", "workers", "spilled_bytes", "symmetry", "free"),
)
"""Fields of a result that go into its JSON as they are."""


class EngineError(Exception):
    """The engine disagrees with the reference interpreter: a fault of the tool, never a verdict."""


class OutOfRangeError(RangeError):
    """A reachable step leaves a declared range; `behaviour` leads to the state before it."""

    def __init__(self, message: str, behaviour: list[Step]) -> None:
        super().__init__(message)
        self.behaviour = behaviour


@dataclass(frozen=True)
class Change:
    """A cell that a step changed."""

    var: str
    index: tuple[int, ...]
    before: int
    after: int


@dataclass(frozen=True)
class Step:
    """One step of a behaviour: action, arguments, source of the action, changed cells; and the state it leads to."""

    action: str
    args: dict[str, int]
    source: Source
    changes: tuple[Change, ...]
    state: State = field(repr=False)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        changes = [{**asdict(c), "index": list(c.index)} for c in self.changes]
        source = {"file": self.source.file, "line": self.source.line}
        return {"action": self.action, "args": dict(self.args), "source": source, "changes": changes}


@dataclass
class ActionCoverage:
    """What an action did: enabled steps, new states found; per guard conjunct how often it was the first false one."""

    name: str
    source: Source
    generated: int = 0
    distinct: int = 0
    guards: list[tuple[str, int]] = field(default_factory=list)

    @property
    def reached(self) -> int:
        """Number of guard conjuncts that were evaluated at least once."""
        if self.generated:
            return len(self.guards)
        return max((n + 1 for n, (_, count) in enumerate(self.guards) if count), default=0)

    def to_json(self) -> dict[str, Any]:
        """As JSON values; a conjunct is `never_reached`, `never_false` or neither."""
        guards = [
            {"text": text, "first_false": count, "never_reached": n >= self.reached, "never_false": count == 0}
            for n, (text, count) in enumerate(self.guards)
        ]
        return {"name": self.name, "generated": self.generated, "distinct": self.distinct, "guards": guards}


def coverage(actions: Iterable[ActionIR], counts: Any, blocked: Any) -> list[ActionCoverage]:
    """Coverage per action, from (generated, distinct) per action and the first-false counts of all guards in order."""
    found, at = [], 0
    for number, ir in enumerate(actions):
        texts = [(g.source.text, int(blocked[at + k])) for k, g in enumerate(ir.guards)]
        at += len(texts)
        found.append(ActionCoverage(ir.name, ir.source, int(counts[number, 0]), int(counts[number, 1]), texts))
    return found


@dataclass
class Result:
    """Result of a search. `verdict`: holds, violated, or inconclusive (then `reason` names the bound that was hit)."""

    model: str
    verdict: str = "inconclusive"
    reason: str = ""
    distinct: int = 0
    generated: int = 0
    depth: int = 0
    queue: int = 0
    deadlocks: int = 0
    broken: str | None = None
    title: str = ""
    behaviour: list[Step] = field(default_factory=list)
    witnessed: dict[str, int] = field(default_factory=dict)
    unwitnessed: dict[str, str] = field(default_factory=dict)
    invariants: list[str] = field(default_factory=list)
    coverage: list[ActionCoverage] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    seconds: float = 0.0
    compile_seconds: float = 0.0
    memory_bytes: int = 0
    row_bits: int = 0
    orders: int = 1
    free: list[list[str]] = field(default_factory=list)
    symmetry: list[str] = field(default_factory=list)
    deadlock: list[Step] = field(default_factory=list)
    workers: int = 1
    spilled_bytes: int = 0

    @property
    def per_action(self) -> dict[str, int]:
        """Generated steps per action, as `interp.explore` counts them."""
        return {c.name: c.generated for c in self.coverage if c.generated}

    @property
    def complete(self) -> bool:
        """Was every reachable state visited?"""
        return self.verdict == "holds"

    @property
    def collision_probability(self) -> float:
        """Upper bound of the probability that two of the states met had one fingerprint, so that one was missed."""
        return min(1.0, self.orders * self.distinct * max(0, self.distinct - 1) / 2.0 / 2.0**64)

    @property
    def states_per_second(self) -> float:
        """Distinct states a second, compilation not counted."""
        return self.distinct / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, Any]:
        """The machine-readable result."""
        answer: dict[str, Any] = {name: getattr(self, name) for name in PLAIN_FIELDS}
        answer["actions"] = [c.to_json() for c in self.coverage]
        answer["behaviour"] = [s.to_json() for s in self.behaviour]
        answer["deadlock"] = [s.to_json() for s in self.deadlock]
        return answer
