"""Is this primary's disk slower than those of the others? Measured by their acknowledgements.

A primary executes, and so replies, what its own journal has. If a quorum without it, and the primary of the next view
among them, acknowledges its entries in half the time that its own journal takes, by the medians of the last appends,
clients are better served by that one. If all disks are slow, or just another one, or if one append took long, nothing
is gained and nothing is done.
"""

from __future__ import annotations

from collections import deque
from statistics import median_low

from viewproof.impl.replica.state import State


class Pace:
    """`measured`: how long the own journal took, and how long the others, in ticks, for each of the last appends."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.measured: deque[tuple[int, int]] = deque(maxlen=state.config.slow_appends)
        self._slow = False
        self._prepared_at: dict[int, int] = {}
        self._others: dict[int, int] = {}
        self._others_at: dict[int, int] = {}
        self._measured_at = -1

    def forget_view(self) -> None:
        """Another view begins."""
        self.measured.clear()
        self._slow = False
        self._prepared_at = {}
        self._others = {}
        self._others_at = {}

    def on_prepared(self, op: int) -> None:
        """The entry at `op` goes out, and to the own journal."""
        self._prepared_at[op] = self.state.ticks

    def on_other(self, op: int, node: int) -> None:
        """Another replica has acknowledged `op`, also if it is committed by now; the own journal lacks it."""
        if op not in self._prepared_at:
            return
        state = self.state
        acknowledged = self._others[op] = self._others.get(op, 0) | 1 << node
        successor = (state.view + 1) % state.replica_count
        if acknowledged >> successor & 1 and acknowledged.bit_count() >= state.quorums.replication:
            self._others_at.setdefault(op, state.ticks)

    def on_own(self, op: int) -> None:
        """The own journal has `op`. What one append brought counts once."""
        now, others_at, prepared_at = self.state.ticks, self._others_at.pop(op, None), self._prepared_at.pop(op, None)
        self._others.pop(op, None)
        if now == self._measured_at or prepared_at is None:
            return
        self._measured_at = now
        self.measured.append((now - prepared_at, (now if others_at is None else others_at) - prepared_at))
        self._slow = len(self.measured) == self.measured.maxlen and self._is_behind()

    def _is_behind(self) -> bool:
        own = median_low([own for own, _ in self.measured])
        others = median_low([others for _, others in self.measured])
        return own - others >= max(self.state.config.slow_append_ticks, others)

    @property
    def is_slow(self) -> bool:
        """True if the next view's primary would serve clients better, all the time."""
        return self._slow
