"""Views never fall, restarts included, and nothing is sent with a view that is not durable (I6, rule 2)."""

from __future__ import annotations

from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Message,
    Prepare,
    PrepareOk,
    StartView,
    StartViewChange,
)
from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker

_BINDING = (Commit, DoViewChange, PrepareOk, StartView, StartViewChange)


class ViewsChecker(Checker):
    """Compares the view of every binding message with the disk, and every boot with what was sent before."""

    name = "views"

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[int, int] = {}
        self.offers: dict[tuple[int, int], tuple[int, int]] = {}

    def on_boot(self, node: int, replica: Replica) -> None:
        sent = self.sent.get(node, 0)
        if replica.state.view < sent:
            self.fail(f"replica {node} booted in view {replica.state.view}, it had sent messages of view {sent}")

    def on_send(self, node: int, message: Message, durable_view: int) -> None:
        if isinstance(message, Prepare):
            view = message.header.view
        elif isinstance(message, _BINDING):
            view = message.view
        else:
            return
        if view > durable_view:
            self.fail(f"replica {node} sent {type(message).__name__} of view {view}, durable is {durable_view}")
        if view > self.sent.get(node, 0):
            self.sent[node] = view
        if isinstance(message, DoViewChange):
            self._check_offer(node, message)

    def _check_offer(self, node: int, message: DoViewChange) -> None:
        offer = self.offers.setdefault((node, message.view), (message.log_view, message.op))
        if offer != (message.log_view, message.op):
            second = (message.log_view, message.op)
            self.fail(f"replica {node} offered two logs in view {message.view}: {offer}, then {second}")
