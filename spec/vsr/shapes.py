"""Per model the shapes that `vsr check MODEL` searches: small sizes, chosen by the mutants that they notice.

`docs/mutants.md` (made by `vsr mutate`) says which shape each place of a model needs. A shape that is larger than its
bound of states is searched up to it, level by level.
"""

from __future__ import annotations

from viewproof.spec.sizes import Portfolio, Size
from viewproof.spec.vsr.bounds import Bounds

CORE = Portfolio(
    "core",
    (
        Size(3, Bounds(views=2, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1, quorum_replication=3, quorum_view_change=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=1)),
        Size(3, Bounds(views=1, ops=3, clients=2, requests=2)),
        Size(4, Bounds(views=2, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=1, requests=1, restarts=2)),
        Size(3, Bounds(views=3, ops=1, requests=1, quorum_replication=1, quorum_view_change=3)),
        Size(3, Bounds(views=2, ops=2, requests=2)),
        Size(4, Bounds(views=2, ops=1, requests=1, quorum_replication=3, quorum_view_change=2)),
        Size(2, Bounds(views=3, ops=2, clients=2, requests=1, restarts=1)),
        Size(3, Bounds(views=3, ops=1, requests=1)),
        Size(3, Bounds(views=2, ops=2, clients=2, requests=1)),
        Size(3, Bounds(views=3, ops=1, requests=1, quorum_replication=3, quorum_view_change=1)),
        Size(3, Bounds(views=3, ops=2, clients=2, requests=1)),
        Size(3, Bounds(views=4, ops=1, requests=1), 16_000_000),
    ),
)
SHAPES: dict[str, Portfolio] = {"core": CORE, "core_restart": CORE}
"""Model name → its shapes. A model that is not here has one, its own size."""
