"""Replay: the same actions compiled for unbounded views and ops over a sparse state, driven by the events of a
trace.

It takes the steps it is told to take; which steps an event stands for is the mapping's business (`refinement`). A
step is refused exactly where the reference interpreter would refuse it, with the same guard conjunct.
"""

from viewproof.spec.engines.replay.compile import TAKEN, Replay, compile_spec
from viewproof.spec.engines.replay.store import Layout, Store

__all__ = ["TAKEN", "Layout", "Replay", "Store", "compile_spec"]
