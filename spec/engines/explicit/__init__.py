"""Explicit-state search, compiled to machine code from the IR.

**Holds** means: every state that the bounded instance can reach was visited, every listed invariant is true in each of
them, and every listed transition invariant over each step between them. Nothing is said about larger instances.
States are told apart by 64-bit fingerprints, so a state may be missed with the probability reported as
`Result.collision_probability`. No symmetry and no partial-order reduction is applied. An invariant whose witness was
not reached (`Result.unwitnessed`) is vacuous in this instance. Deadlocks are counted and are not errors.

**Violated** means: the behaviour shown, of the smallest possible number of steps, breaks the invariant; it was
replayed in the reference interpreter, step by step. **Inconclusive** means: a bound of states or memory, or an
interrupt, came first.
"""

from spec.engines.explicit.emit import Program, emit
from spec.engines.explicit.itf import to_itf
from spec.engines.explicit.result import ActionCoverage, Change, EngineError, OutOfRangeError, Result, Step
from spec.engines.explicit.search import Progress, explore

__all__ = [
    "ActionCoverage",
    "Change",
    "EngineError",
    "OutOfRangeError",
    "Program",
    "Progress",
    "Result",
    "Step",
    "emit",
    "explore",
    "to_itf",
]
