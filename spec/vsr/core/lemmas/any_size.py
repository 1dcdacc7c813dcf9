"""Lemmas that a proof without sizes needs besides the others: what those say of neighbouring ops, said of any two.

In an instance they follow from the others, op by op.
"""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, any_of, forall, invariant
from viewproof.spec.vsr.core.lemmas.words import exists_prepare
from viewproof.spec.vsr.core.state import Core, Op


@invariant("any_size.executed_prepared", "what was executed was prepared")
def executed_prepared(s: Core) -> Bool:
    """What was executed first at an op names a prepare that was sent."""
    return forall(Op, lambda o: any_of(s.first_executed[o] == NONE, lambda: exists_prepare(s, s.first_executed[o], o)))


LEMMAS = (executed_prepared,)
