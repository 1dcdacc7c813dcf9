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
from viewproof.impl.replica.proposals import EnableFeature
from viewproof.impl.replica.requests import Requests
from viewproof.impl.replica.state import Status


class Control(Requests):
    """Negotiates features and proposes them."""

    # What the members support

    def send_commit(self) -> None:
        """The heartbeat; and a proposal that found the pipeline full, or that has no member to wait for, is made."""
        super().send_commit()
        self.propose_features()

    def believed_supports(self) -> tuple[int, ...]:
        """For the heartbeat: what each member is believed to support; empty if there is nothing to negotiate."""
        if not self.supports:
            return ()
        return tuple(
            self.supports if node == self.node else self.member_supports.get(node, 0)
            for node in range(self.replica_count)
        )

    def on_commit(self, message: Commit) -> None:
        """The heartbeat, and an answer if the primary is wrong about the features of this replica."""
        super().on_commit(message)
        if self.status is not Status.NORMAL or message.view != self.view or message.replica != self.primary:
            return
        if len(message.supports) == self.replica_count and message.supports[self.node] != self.supports:
            self.send(self.primary, Supports(self.view, self.supports, self.node, self.clock))

    def on_supports(self, message: Supports) -> None:
        """A backup says what it supports."""
        if not self.is_normal_primary or message.view != self.view:
            self.ignore("supports: not the normal primary of its view")
            return
        if not 0 <= message.features < 1 << FEATURE_MAX:
            self.ignore(f"supports: features are numbered 1..{FEATURE_MAX}")
            return
        if self.member_supports.get(message.replica, 0) == message.features:
            self.ignore("supports: known")
            return
        self.member_supports[message.replica] = message.features
        self.emit("on_features", m_from=message.replica, m_features=message.features)
        self.propose_features()

    def supported_by_all(self) -> int:
        """The features that every member is known to support."""
        mask = self.supports
        if "control.unsupported_member" in self.faults:
            return mask
        for node in self.others:
            mask &= self.member_supports.get(node, 0)
        return mask

    # Proposals

    def propose_features(self) -> None:
        """Proposes what is missing, while the pipeline has room."""
        if not self.supports or not self.is_normal_primary:
            return
        missing = self.supported_by_all() & ~self.enabled.mask
        if not missing:
            return
        proposed = {prepare.header.feature for prepare in self.log.slice(self.commit_min + 1, self.op)}
        for feature in feature_numbers(missing):
            if feature in proposed or not self.has_room:
                continue
            if "control.applied_on_leader_only" in self.faults:
                self.enabled.enable(feature, self.op + 1)
            self.propose(EnableFeature(feature), "propose_feature")
