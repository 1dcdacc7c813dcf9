"""What a journal can lose. Of what was durable, one good copy is always left with another replica (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, action, all_of, any_of, exists, require, tagged, within
from viewproof.spec.vsr.core.state import Op, Replica, Rot
from viewproof.spec.vsr.parts.repair.state import Repaired


@tagged("fault")
@action
def rot(state: Repaired, r: Replica, o: Op) -> None:
    """A slot of r's journal goes bad: a durable prepare rots, or the write of one in memory is torn.

    r notices at once: not to have read the slot yet is the same as that it goes bad later.
    """
    require(within(Rot, state.rots + 1))
    require(o <= state.op[r])
    require(any_of(state.body[r, o] != NONE, state.memory[r, o] != NONE))
    require(any_of(state.body[r, o] == NONE, copied(state, r, o)))
    state.rots = state.rots + 1
    state.body[r, o] = NONE
    state.written[r, o] = False
    state.faulty[r, o] = True


def copied(state: Repaired, r: Replica, o: Op) -> Bool:
    """Does another replica's journal hold the prepare that r's holds at o?"""
    return exists(Replica, lambda q: all_of(q != r, state.body[q, o] == state.body[r, o]))
