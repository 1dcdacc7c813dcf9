"""The shapes that `vsr check` searches of Oxia's models: small sizes, chosen by the mutants that they notice."""

from __future__ import annotations

from viewproof.spec.oxia.models import Bounds
from viewproof.spec.sizes import Portfolio, Size

OXIA = Portfolio(
    "oxia",
    (
        Size(2, Bounds(terms=3, offsets=2)),
        Size(3, Bounds(terms=2, offsets=1, restarts=1)),
        Size(2, Bounds(terms=1, offsets=3, restarts=1, features=1)),
        Size(2, Bounds(terms=2, offsets=2, restarts=1, features=1)),
        Size(2, Bounds(terms=2, offsets=3, restarts=1)),
        Size(3, Bounds(terms=3, offsets=2, turns=2)),
        Size(3, Bounds(terms=4, offsets=1, turns=2)),
        Size(3, Bounds(terms=2, offsets=1, features=1)),
        Size(3, Bounds(terms=2, offsets=2)),
        Size(3, Bounds(terms=3, offsets=1)),
        Size(3, Bounds(terms=2, offsets=2, restarts=1), 6_000_000),
        Size(3, Bounds(terms=3, offsets=2)),
    ),
)
TURNS = Portfolio("oxia_turns", (Size(3, Bounds(terms=4, offsets=2, turns=2)),), ("oxia",))
SHAPES = {"oxia": OXIA, "oxia_terms": OXIA, "oxia_restart": OXIA, "oxia_control": OXIA, "oxia_turns": TURNS}
"""Model name → its shapes."""
