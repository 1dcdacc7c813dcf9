"""What holds of Iggy's views beyond the catalogue, and states that show its ways at work."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    all_of,
    any_of,
    between,
    exists,
    forall,
    implies,
    invariant,
    not_,
    witness,
)
from viewproof.spec.vsr.core.state import NORMAL, RECOVERING, Op, Replica
from viewproof.spec.vsr.parts.repair.state import WithBits, leading


@invariant("L1_copy", "copy_known")
def copy_known(s: WithBits) -> Bool:
    """A new primary chose no op above the commit point of which nobody said that its journal holds it."""
    return forall(
        Replica,
        lambda r: implies(
            leading(s, r),
            lambda: forall(
                between(Op, s.commit_max[r] + 1, s.sv[s.view[r]].op),
                lambda o: exists(
                    Replica,
                    lambda q: all_of(
                        s.dvc[s.view[r], q].sent,
                        s.dvc[s.view[r], q].entry[o] == s.sv[s.view[r]].entry[o],
                        s.dvc[s.view[r], q].present[o],
                    ),
                ),
            ),
        ),
    )


@witness("I5.claimed", "an op is claimed before it is durable")
def op_claimed(s: WithBits) -> Bool:
    """A primary's head is a prepare that is not in its journal."""
    return exists(Replica, lambda r: all_of(s.status[r] == NORMAL, s.op[r] > 0, lambda: s.memory[r, s.op[r]] != NONE))


@witness("I3.head", "a head is adopted without its body")
def head_without_body(s: WithBits) -> Bool:
    """A normal replica knows an entry of its log, and neither executed it nor holds it."""
    return exists(
        Replica,
        lambda r: all_of(
            s.status[r] == NORMAL,
            exists(
                between(Op, s.commit_min[r] + 1, s.op[r]),
                lambda o: all_of(not_(s.written[r, o]), s.memory[r, o] == NONE),
            ),
        ),
    )


@witness("L1.parked", "a merged log waits for a body")
def merged_log_waits(s: WithBits) -> Bool:
    """A new primary decided a log, and its journal lacks an entry of it."""
    return exists(
        Replica,
        lambda r: all_of(
            leading(s, r),
            lambda: exists(between(Op, 1, s.sv[s.view[r]].op), lambda o: s.body[r, o] != s.sv[s.view[r]].entry[o]),
        ),
    )


@witness("I4.replayed", "a replica that recovers replays what its journal proves")
def replayed(s: WithBits) -> Bool:
    """A recovering replica has executed something."""
    return exists(Replica, lambda r: all_of(s.status[r] == RECOVERING, s.commit_min[r] > 0))


@witness("I6.rejoined", "after a crash a replica is normal in a later view")
def rejoined(s: WithBits) -> Bool:
    """A crash happened, and a replica of a later view is normal that cannot be its primary any more, or is."""
    return all_of(
        s.restarts > 0,
        exists(Replica, lambda r: all_of(s.status[r] == NORMAL, any_of(s.log_view[r] > 0, s.commit_min[r] > 0))),
    )
