"""Explicit-state search, compiled to machine code from the IR.

**Holds** means: every state that the bounded instance can reach was visited, every listed invariant is true in each of
them, and every listed transition invariant over each step between them. Nothing is said about larger instances.
States are told apart by 64-bit fingerprints, so a state may be missed with the probability reported as
`Result.collision_probability`. With `symmetry`, states that differ by the names of a sort's members only are one;
with `reduce`, actions that commute with all others are explored alone: both are off unless asked for, and sound under
the conditions that `symmetry` and `partial_order` check. An invariant whose witness was not reached
(`Result.unwitnessed`) is vacuous in this instance. States without a successor are counted, and `Result.deadlock` leads
to a nearest one; they are not errors, for every bounded instance ends somewhere.

**Violated** means: the behaviour shown breaks the invariant; it was replayed in the reference interpreter, step by
step. It has the smallest possible number of steps, unless `reduce` was on. **Inconclusive** means: a bound of states
or memory, or an interrupt, came first.
"""

from viewproof.spec.engines.explicit.cover import Cover, cover
from viewproof.spec.engines.explicit.emit import Program, emit
from viewproof.spec.engines.explicit.reach import Answer, always_reaches
from viewproof.spec.engines.explicit.result import ActionCoverage, Change, EngineError, OutOfRangeError, Result, Step
from viewproof.spec.engines.explicit.search import Progress, explore
from viewproof.spec.engines.explicit.simulate import simulate

__all__ = [
    "ActionCoverage",
    "Answer",
    "Change",
    "Cover",
    "EngineError",
    "OutOfRangeError",
    "Program",
    "Progress",
    "Result",
    "Step",
    "always_reaches",
    "cover",
    "emit",
    "explore",
    "simulate",
]
