"""Which servers the coordinator reaches: what keeps bounded models of many terms small."""

from __future__ import annotations

from viewproof.spec.lang import Part, any_of, as_index, at, require
from viewproof.spec.oxia.election import require_new_term
from viewproof.spec.oxia.state import Replica, Shard, Term


def require_reached(state: Shard, r: Replica, t: Term) -> None:
    """Of the first servers, which take turns, the coordinator reaches one in term t; and all others."""
    turns = state.cfg.turns
    require(any_of(r >= turns, r == as_index(Replica, (t - 1) % turns)))


REACH = Part("reach", lambda cfg: cfg.turns > 0, changes=lambda cfg: (at(require_new_term, require_reached),))
