"""Control requests: which features every member supports, and the entries that enable them (seed 001).

A heartbeat says what the primary believes of each member; a backup that is seen wrong answers. So a lost answer is
repeated, a member that was restarted with other features is noticed, and nothing more is sent once all is known. What
was learned is forgotten with the view. The primary proposes, in its own name and without waiting, each feature that
every member supports, that is not enabled and not proposed in its log; a proposal that a view change drops is made
again by the primary that misses it.
"""

from __future__ import annotations

from viewproof.impl.interface.messages import Commit, Supports
from viewproof.impl.replica.features import FEATURE_MAX, feature_numbers
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.proposals import EnableFeature
from viewproof.impl.replica.state import State, Status


class Control:
    """Negotiates features and proposes them. `member_supports`: what each backup said, in this view."""

    def __init__(self, state: State, out: Outbox, normal: NormalOperation) -> None:
        self.state = state
        self.out = out
        self.normal = normal
        self.supports = state.config.supports
        self.member_supports: dict[int, int] = {}

    def forget_view(self) -> None:
        """Another view begins."""
        self.member_supports = {}

    # What the members support

    def send_heartbeat(self) -> None:
        """The heartbeat; and a proposal that found the pipeline full, or that has no member to wait for, is made."""
        self.normal.send_commit(self._believed_supports())
        self.propose_features()

    def _believed_supports(self) -> tuple[int, ...]:
        """What each member is believed to support; empty if there is nothing to negotiate."""
        if not self.supports:
            return ()
        return tuple(
            self.supports if node == self.state.node else self.member_supports.get(node, 0)
            for node in range(self.state.replica_count)
        )

    def on_commit(self, message: Commit) -> None:
        """A heartbeat is answered if the primary is wrong about the features of this replica."""
        state = self.state
        if state.status is not Status.NORMAL or message.view != state.view or message.replica != state.primary:
            return
        if len(message.supports) == state.replica_count and message.supports[state.node] != self.supports:
            self.out.send(state.primary, Supports(state.view, self.supports, state.node, state.clock))

    def on_supports(self, message: Supports) -> None:
        """A backup says what it supports."""
        if not self.state.is_normal_primary or message.view != self.state.view:
            self.out.ignore("supports: not the normal primary of its view")
        elif not 0 <= message.features < 1 << FEATURE_MAX:
            self.out.ignore(f"supports: features are numbered 1..{FEATURE_MAX}")
        elif self.member_supports.get(message.replica, 0) == message.features:
            self.out.ignore("supports: known")
        else:
            self.member_supports[message.replica] = message.features
            self.out.emit("on_features", m_from=message.replica, m_features=message.features)
            self.propose_features()

    def supported_by_all(self) -> int:
        """The features that every member is known to support."""
        mask = self.supports
        for node in self.state.others:
            mask &= self.member_supports.get(node, 0)
        return mask

    # Proposals

    def propose_features(self) -> None:
        """Proposes what is missing, while the pipeline has room."""
        state = self.state
        if not self.supports or not state.is_normal_primary:
            return
        missing = self.supported_by_all() & ~state.enabled.mask
        if not missing:
            return
        proposed = {prepare.header.feature for prepare in state.log.slice(state.commit_min + 1, state.op)}
        for feature in feature_numbers(missing):
            if feature not in proposed and self.normal.has_room:
                self.propose(feature)

    def propose(self, feature: int) -> None:
        """Proposes to enable a feature."""
        self.normal.propose(EnableFeature(feature), "propose_feature")
