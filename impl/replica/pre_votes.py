"""Who wants to leave the view: a healthy one is left with a quorum that wants to (the pre-vote of Raft).

A replica that has not heard of its primary for long asks the others, and stays where it is: a pre_vote changes nothing
that is durable and promises nothing. It moves once q_v replicas, itself among them, say the same. So one replica with a
bad link moves nobody, and does not run through views alone. For the specification the move is that of a timeout, which
it allows at any time; when not to make it is left to the replica (`spec.vsr.core.view_change.start_view_change`).

A replica that mends its log takes part in no view, and says so in the same way. If q_v replicas take no part in a view,
the others are too few for a quorum in it, so nothing is lost. Nor does who says so in an earlier view take part in
ours: whoever misses its own primary, and does not vote for its view, counts it, moves on and so calls it. Left alone,
it would come view by view: a replica votes for no view that it was normal in, or that it entered before it restarted.

A replica that is in a later view cannot come back: it counts as one that wants to leave, and if a healthy view goes on
without it, its primary calls all to that later view after a while (`left_behind`).
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.interface.messages import PreVote, StartViewChange
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import LONG_AGO, State, Status


@dataclass(frozen=True, slots=True)
class Left:
    """A replica is in `view`, above ours, as was first heard at tick `at`; `message` says so, if it is a vote."""

    view: int
    at: int
    message: StartViewChange | None


class PreVotes:
    """`wants`: replica → (view wanted, tick at which it said so last), a view that has begun here if it said so after
    that; `left`: replica → what is known of it; `calls`: this replica votes for its view, again and again.
    """

    def __init__(self, state: State, out: Outbox) -> None:
        self.state = state
        self.out = out
        self.wants: dict[int, tuple[int, int]] = {}
        self.left: dict[int, Left] = {}
        self.asked_at = LONG_AGO
        self.calls = False

    def forget_view(self) -> None:
        """Another view begins: this replica has not asked to leave it, nor has who wanted it to begin."""
        self.asked_at = LONG_AGO
        self.calls = False
        self.wants = {node: want for node, want in self.wants.items() if want[0] > self.state.view}

    # What others say

    def on_pre_vote(self, message: PreVote) -> None:
        """Another replica wants this view to begin, and is in the one before it."""
        self.wants[message.replica] = (message.view, self.state.ticks)
        if message.view - 1 > self.state.view:
            self._note_left(message.replica, message.view - 1, None)

    def on_start_view_change(self, message: StartViewChange) -> None:
        """Another replica is in a later view."""
        self._note_left(message.replica, message.view, message)

    def _note_left(self, node: int, view: int, message: StartViewChange | None) -> None:
        known = self.left.get(node)
        if known is None or known.view <= self.state.view:
            self.left[node] = Left(view, self.state.ticks, message)
        elif known.view <= view and (message is not None or known.view < view):
            self.left[node] = Left(view, known.at, message)

    # What this replica makes of it

    def ask(self) -> None:
        """Says to all others that this replica wants the next view, at most once per resend timeout."""
        state = self.state
        if state.ticks - self.asked_at >= state.config.resend_timeout_ticks:
            self.asked_at = state.ticks
            self.out.send_others(PreVote(state.view + 1, state.node, state.clock))

    @property
    def misses_primary(self) -> bool:
        """True if this replica wants to leave its view: it waits for its start, or hears nothing of its primary."""
        state = self.state
        if state.status is not Status.NORMAL:
            return True
        return not state.is_primary and state.ticks - state.timers.heard_at >= state.config.normal_timeout_ticks

    def quorum_wants(self) -> bool:
        """True if q_v replicas want to leave this view, or have left it; this one counts if it misses its primary, and
        so do those that wait in an earlier view, unless its vote calls them to this one.
        """
        state = self.state
        since = state.ticks - state.config.normal_timeout_ticks
        misses = self.misses_primary
        least = 0 if misses and not self.calls else state.view + 1
        voters = {node for node, (view, at) in self.wants.items() if at >= since and view >= least}
        voters |= {node for node, left in self.left.items() if left.view > state.view}
        if misses:
            voters.add(state.node)
        return len(voters) >= state.quorums.view_change

    def follows(self, message: StartViewChange) -> bool:
        """True if the vote of another replica for a later view is reason to go there.

        No healthy view is lost if this replica is in none, or if its primary is the one that left.
        """
        state = self.state
        left_by_primary = message.replica == state.primary
        return state.status is not Status.NORMAL or left_by_primary or self.quorum_wants()

    def latest(self) -> Left | None:
        """What is known of a replica in the latest view above ours, if any is."""
        later = [left for left in self.left.values() if left.view > self.state.view]
        return max(later, key=lambda left: (left.view, left.message is not None), default=None)

    def left_behind(self) -> bool:
        """True if a replica has been in a later view for long: this one goes on without it."""
        if not self.left:
            return False
        state = self.state
        since = state.ticks - state.config.abdicate_timeout_ticks
        return any(left.view > state.view and left.at <= since for left in self.left.values())
