"""Which servers the coordinator reaches: what keeps bounded models of many terms small."""

from __future__ import annotations

from viewproof.spec.lang import Part, any_of, at, require
from viewproof.spec.oxia.election import require_new_term
from viewproof.spec.oxia.state import Replica, Shard, Term


def require_reached(state: Shard, r: Replica, t: Term) -> None:
    """The coordinator reaches server r in term t."""
    for term, servers in enumerate(state.cfg.reached, start=1):
        require(any_of(t != term, *(r == server for server in servers)))


REACH = Part("reach", lambda cfg: bool(cfg.reached), changes=lambda cfg: (at(require_new_term, require_reached),))
