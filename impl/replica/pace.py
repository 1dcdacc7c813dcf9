"""Is this primary's disk slower than those of the others? Measured by their acknowledgements.

A primary executes, and so replies, what its own journal has. If a quorum without it, and the primary of the next view
among them, acknowledges its entries in half the time that its own journal takes, append after append, clients are
better served by that one. If all disks are slow, or just another one, nothing is gained and nothing is done.
"""

from __future__ import annotations

from viewproof.impl.replica.state import State


class Pace:
    """`lagging`: one more with every append that ends long after the others have acknowledged, two less, down to 0,
    with every other one: it rises if more than two of three are late.
    """

    def __init__(self, state: State) -> None:
        self.state = state
        self.lagging = 0
        self._prepared_at: dict[int, int] = {}
        self._others: dict[int, int] = {}
        self._others_at: dict[int, int] = {}
        self._measured_at = -1

    def forget_view(self) -> None:
        """Another view begins."""
        self.lagging = 0
        self._prepared_at = {}
        self._others = {}
        self._others_at = {}

    def on_prepared(self, op: int) -> None:
        """The entry at `op` goes out, and to the own journal."""
        self._prepared_at[op] = self.state.ticks

    def on_other(self, op: int, node: int) -> None:
        """Another replica has acknowledged `op`, also if it is committed by now: what the own journal has not, waits."""
        if op not in self._prepared_at:
            return
        state = self.state
        acknowledged = self._others[op] = self._others.get(op, 0) | 1 << node
        successor = (state.view + 1) % state.replica_count
        if acknowledged >> successor & 1 and acknowledged.bit_count() >= state.quorums.replication:
            self._others_at.setdefault(op, state.ticks)

    def on_own(self, op: int) -> None:
        """The own journal has `op`. What one append brought counts once."""
        state = self.state
        now, others_at, prepared_at = state.ticks, self._others_at.pop(op, None), self._prepared_at.pop(op, None)
        self._others.pop(op, None)
        if now == self._measured_at or prepared_at is None:
            return
        self._measured_at = now
        others = now if others_at is None else others_at
        late = now - others >= max(state.config.slow_append_ticks, others - prepared_at)
        self.lagging = self.lagging + 1 if late else max(0, self.lagging - 2)

    @property
    def is_slow(self) -> bool:
        """True if the next view's primary would serve clients better, all the time."""
        return self.lagging >= self.state.config.slow_appends_max
