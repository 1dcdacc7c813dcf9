"""Control requests: which features every member supports, and the entries that enable them (seed 001).

While a feature is missing that the primary supports, it asks all members, in numbered rounds: a heartbeat has the round
and what was answered in it, and a backup that supports something else answers. A round has an end, so that what
was said before a restart does not count for long, and what was said in another round does not count at all. When the
last answer comes the primary proposes, in its own name and without waiting, each feature that every member supports,
that is not enabled and not proposed in its log. What was learned is forgotten with the view. A proposal that a view
change drops is made again by the primary that misses it.
"""

from __future__ import annotations

from viewproof.impl.interface.messages import Commit, Supports
from viewproof.impl.replica.features import FEATURE_MAX, feature_numbers
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.proposals import EnableFeature
from viewproof.impl.replica.state import State, Status


class Control:
    """Negotiates features and proposes them.

    `round`: how often this primary has asked, in this view; `member_supports`: what each backup answered to that.
    """

    def __init__(self, state: State, out: Outbox, normal: NormalOperation) -> None:
        self.state = state
        self.out = out
        self.normal = normal
        self.supports = state.config.supports
        self.round = 0
        self.asked_at = 0
        self.member_supports: dict[int, int] = {}

    def forget_view(self) -> None:
        """Another view begins."""
        self.round = 0
        self.member_supports = {}

    # What the members support

    def send_heartbeat(self) -> None:
        """The heartbeat, which may ask what the members support."""
        if self.missing() and self.is_due():
            self.ask()
        self.normal.send_commit(self._answers() if self.round else (), self.round)

    def is_due(self) -> bool:
        """Not asked yet in this view, or so long ago that a member may have been replaced since."""
        return not self.round or self.state.ticks - self.asked_at >= self.state.config.normal_timeout_ticks

    def ask(self) -> None:
        """A round begins; who is alone has all answers."""
        self.round += 1
        self.asked_at = self.state.ticks
        self.member_supports = {}
        self.out.emit("ask_features", m_view=self.state.view, m_round=self.round)
        if not self.state.others:
            self.propose_features()

    def _answers(self) -> tuple[int, ...]:
        own = self.state.node
        nodes = range(self.state.replica_count)
        return tuple(self.supports if node == own else self.member_supports.get(node, 0) for node in nodes)

    def on_commit(self, message: Commit) -> None:
        """A heartbeat that asks is answered, if the primary does not have the answer yet."""
        state = self.state
        if state.status is not Status.NORMAL or message.view != state.view or message.replica != state.primary:
            return
        asks = message.round and len(message.supports) == state.replica_count
        if asks and message.supports[state.node] != self.supports:
            self.say(message.round)

    def say(self, asked: int) -> None:
        """Answers a round of the primary."""
        state = self.state
        seq = self.out.emit(
            "say_features", m_type="supports", m_view=state.view, m_round=asked, m_features=self.supports
        )
        self.out.send(state.primary, Supports(state.view, asked, self.supports, state.node, state.clock, seq))

    def on_supports(self, message: Supports) -> None:
        """A backup says what it supports."""
        if not self.state.is_normal_primary or message.view != self.state.view:
            self.out.ignore("supports: not the normal primary of its view")
        elif message.round != self.round:
            self.out.ignore("supports: an answer to another round")
        elif not 0 <= message.features < 1 << FEATURE_MAX:
            self.out.ignore(f"supports: features are numbered 1..{FEATURE_MAX}")
        elif self.member_supports.get(message.replica, 0) == message.features:
            self.out.ignore("supports: known")
        else:
            self.learn(message)
            self.propose_features()

    def learn(self, message: Supports) -> None:
        """The answer counts, in this round."""
        self.member_supports[message.replica] = message.features
        self.out.emit(
            "on_features",
            m_type="supports",
            m_from=message.replica,
            m_seq=message.seq,
            m_view=message.view,
            m_round=message.round,
            m_features=message.features,
        )

    def supported_by_all(self) -> int:
        """The features that every member said that it supports."""
        mask = self.supports
        for node in self.state.others:
            mask &= self.member_supports.get(node, 0)
        return mask

    # Proposals

    def missing(self) -> int:
        """The features that this primary supports, and that are neither enabled nor proposed."""
        state = self.state
        if not self.supports or not state.is_normal_primary:
            return 0
        missing = self.supports & ~state.enabled.mask
        if missing:
            for prepare in state.log.slice(state.commit_min + 1, state.op):
                if prepare.header.feature:
                    missing &= ~(1 << prepare.header.feature - 1)
        return missing

    def propose_features(self) -> None:
        """Proposes what is missing and supported by all, while the pipeline has room."""
        for feature in feature_numbers(self.missing() & self.supported_by_all()):
            if self.normal.has_room:
                self.propose(feature)

    def propose(self, feature: int) -> None:
        """Proposes to enable a feature."""
        self.normal.propose(EnableFeature(feature), "propose_feature")
