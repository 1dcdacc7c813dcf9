"""Who hears of a later view goes there, where no healthy view is lost by it (L1; docs/core-protocol.md, rule 7 and
"When a view is left").

* A vote moves who is in a view change, a backup of the voter, and who knows q_v replicas in later views.
* A prepare or commit of a later view makes a replica ask for the log that the view started with.

Who does not, goes once it has heard nothing for long: clients wait that long, and then all is well again, so that only
a look at each step shows it.
"""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.impl.interface.effects import Effect, Send
from viewproof.impl.interface.messages import Commit, Message, Prepare, RequestStartView, StartViewChange
from viewproof.impl.replica import Replica, Status
from viewproof.impl.sim.checkers.base import Checker


class LaterViewsChecker(Checker):
    """Judges each replica right after it has handled a message of a later view.

    `heard`: replica → voter → latest view; `asked`: replica → view of its last question for a log, and its tick.
    """

    name = "later_views"

    def __init__(self) -> None:
        super().__init__()
        self.heard: dict[int, dict[int, int]] = {}
        self.asked: dict[int, tuple[int, int]] = {}

    def on_boot(self, node: int, replica: Replica) -> None:
        self.heard[node] = {}
        self.asked.pop(node, None)

    def on_question(self, node: int, replica: Replica, message: RequestStartView) -> None:
        """A replica asks for the log of a view."""
        self.asked[node] = message.view, replica.state.ticks

    def is_due(self, replica: Replica, message: Message) -> bool:
        """True if a replica that takes part in its view is about to handle a message of a later one."""
        if isinstance(message, Prepare):
            view = message.header.view
        elif isinstance(message, StartViewChange | Commit):
            view = message.view
        else:
            return False
        state = replica.state
        return view > state.view and state.status is not Status.RECOVERING and replica.writes.superblock_writing is None

    def on_handled(
        self, node: int, replica: Replica, message: Message, before: Status, effects: Iterable[Effect]
    ) -> None:
        """The replica has handled a message of a later view, `before` in that status, and says `effects`."""
        for effect in effects:
            if isinstance(effect, Send) and isinstance(effect.message, RequestStartView):
                self.on_question(node, replica, effect.message)
        if isinstance(message, StartViewChange):
            self._on_vote(node, replica, message, before)
        elif isinstance(message, Prepare):
            self._on_begun(node, replica, message.header.view)
        elif isinstance(message, Commit):
            self._on_begun(node, replica, message.view)

    def _on_vote(self, node: int, replica: Replica, vote: StartViewChange, before: Status) -> None:
        state, heard = replica.state, self.heard.setdefault(node, {})
        heard[vote.replica] = max(vote.view, heard.get(vote.replica, 0))
        later = sum(view > state.view for view in heard.values())
        by_primary, by_quorum = vote.replica == state.primary, later >= state.quorums.view_change
        if (before is Status.VIEW_CHANGE or by_primary or by_quorum) and _goes_to(replica) < vote.view:
            self.fail(
                f"replica {node}, {before.value} in view {state.view}, stays there after the vote of replica"
                f" {vote.replica} for view {vote.view}"
            )

    def _on_begun(self, node: int, replica: Replica, view: int) -> None:
        state = replica.state
        if _goes_to(replica) >= view or view % state.replica_count == node:
            return
        asked, at = self.asked.get(node, (0, 0))
        if asked < view or state.ticks - at > state.config.repair_timeout_ticks:
            self.fail(
                f"replica {node}, in view {state.view}, hears that view {view} has begun, and does not ask for it"
            )


def _goes_to(replica: Replica) -> int:
    """The latest view that the replica is in, or on its way to."""
    writing, target = replica.writes.superblock_writing, replica.state.target
    views = (replica.state.view, 0 if writing is None else writing.view, 0 if target is None else target.view)
    return max(views)
