"""The primary's uncommitted entries, by namespace, with a commit frontier for each (seed 000).

All namespaces of a group share one pipeline and one order of ops. Acknowledgements complete in any order, so each
namespace has a frontier: how many of its entries of this view, counted from the first, a quorum acknowledged. An op is
committable if it lies below the frontier of its namespace, and it is committed if all ops before it are: the prefix
that is drained is contiguous across namespaces. Places and frontiers count from 0 in every view.
"""

from __future__ import annotations

from collections import deque


class Pipeline:
    """Places and frontiers of the entries above commit_max; `op` is the last one taken in, `view` theirs."""

    __slots__ = ("_acknowledged", "_places", "_taken", "_waiting", "frontiers", "op", "view")

    def __init__(self) -> None:
        self.reset(-1, 0)

    def reset(self, view: int, op: int) -> None:
        """Begins `view` above `op`, empty."""
        self.view = view
        self.op = op
        self.frontiers: dict[int, int] = {}
        self._taken: dict[int, int] = {}
        self._places: dict[int, tuple[int, int]] = {}
        self._waiting: dict[int, deque[int]] = {}
        self._acknowledged: set[int] = set()

    def push(self, namespace: int) -> None:
        """Takes in the entry at op + 1."""
        self.op += 1
        place = self._taken.get(namespace, 0)
        self._taken[namespace] = place + 1
        self._places[self.op] = (namespace, place)
        self._waiting.setdefault(namespace, deque()).append(self.op)

    def acknowledge(self, op: int) -> None:
        """A quorum acknowledged the entry at `op`: the frontier of its namespace rises as far as it can."""
        place = self._places.get(op)
        if place is None:
            return
        namespace = place[0]
        self._acknowledged.add(op)
        waiting = self._waiting[namespace]
        while waiting and waiting[0] in self._acknowledged:
            self._acknowledged.discard(waiting.popleft())
            self.frontiers[namespace] = self.frontiers.get(namespace, 0) + 1

    def is_committable(self, op: int) -> bool:
        """True if the entry at `op` lies below the frontier of its namespace."""
        place = self._places.get(op)
        return place is not None and place[1] < self.frontiers.get(place[0], 0)

    def drain(self, op: int) -> None:
        """The entry at `op` is committed."""
        self._places.pop(op, None)
