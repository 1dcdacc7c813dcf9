"""Appends that fail: disk full, an I/O error, a short write (seed 000: the sequencer moves only after the append).

What was not appended leaves the log. A primary that has sent such a prepare must not prepare another one at that op in
its view (`require_unsent`); it gets on in a later view.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import (
    NONE,
    Bool,
    Part,
    action,
    all_of,
    at,
    between,
    exists,
    forall,
    not_,
    require,
    some,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import Op, Replica, View, durable, primary
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol


@dataclass(frozen=True)
class AppendFailureOptions(Options):
    """The option of appends that fail."""

    failing_appends: bool = option(False, "an append to the journal may fail")


@action
def append_failed(state: Protocol, r: Replica, o: Op) -> None:
    """The append of all prepares from o on failed: they are not in the log of r, which it has not acknowledged."""
    require(o <= state.op[r])
    require(o > state.commit_min[r])
    lost = between(Op, o, state.op[r])
    require(forall(lost, lambda p: not_(durable(state, r, p))))
    state.entry.update((r, lost), lambda p: NONE)
    state.op[r] = o - 1


def require_unsent(state: Protocol, r: Replica, o: Op) -> None:
    """Primary r sent no other prepare at o in its view."""
    require(not_(state.prepare[state.view[r], o].sent))


@witness("I7.lost", "a primary lacks a prepare that it sent")
def primary_lacks_own(s: Protocol) -> Bool:
    """After a failed append, the log of a primary ends below a prepare of its view that it has sent."""
    return exists(
        Replica,
        lambda r: all_of(
            primary(s, s.view[r]) == r,
            s.log_view[r] == s.view[r],
            exists(Op, lambda o: all_of(o > s.op[r], s.prepare[s.view[r], o].sent)),
        ),
    )


@witness("I3.kept", "an op was committed although its primary's append failed")
def committed_without_primary(s: Protocol) -> Bool:
    """The others hold the prepare, and it lived on in a later view."""
    return exists(
        View,
        lambda v: exists(
            Op,
            lambda o: all_of(
                s.first_executed[o] == some(v),
                s.ack[v, primary(s, v), o] == NONE,
            ),
        ),
    )


APPEND_FAILURE = Part(
    "append_failure",
    lambda cfg: cfg.failing_appends,
    actions=lambda cfg: (append_failed,),
    changes=lambda cfg: (at(normal.require_room, require_unsent),),
    witnesses=lambda cfg: (primary_lacks_own, committed_without_primary),
    models={"append_failure": Model(Bounds(views=2, ops=2, requests=2), {"failing_appends": True})},
)
