"""The status machine: every transition between recovering, normal and view_change.

| from | to | when |
|---|---|---|
| recovering | normal | boot, and the own view has started and is another's |
| recovering | view_change | boot, and the own view has not started, or is the own |
| recovering, view_change, normal | normal | the log of a started view is installed, in that view |
| normal, view_change | view_change | a later view is wanted, and durable |
"""

from __future__ import annotations

from typing import Protocol

from viewproof.impl.interface.checks import check
from viewproof.impl.replica.state import State, Status


class OfView(Protocol):
    """A component that keeps what belongs to a view."""

    def forget_view(self) -> None:
        """Another view begins."""


class StatusMachine:
    """Changes status and views; what belonged to the view before is forgotten by who keeps it."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.of_view: tuple[OfView, ...] = ()

    def _forget_view(self) -> None:
        for component in self.of_view:
            component.forget_view()

    def transition_to_normal_from_recovering(self) -> None:
        """Boot: a replica that may go on in its view."""
        self.state.status = Status.NORMAL

    def transition_to_view_change_from_recovering(self) -> None:
        """Boot: a replica whose view has not started, or that cannot lead it any more."""
        self.state.status = Status.VIEW_CHANGE

    def transition_to_view_change(self, view: int) -> None:
        """To a later view, which is durable; a log of an earlier one is not installed any more."""
        state = self.state
        check(view > state.view, f"a view change from view {state.view} to {view}")
        state.view = view
        state.status = Status.VIEW_CHANGE
        if state.target is not None and state.target.view < view:
            state.target = None
        state.timers.view_changes_failed += 1
        state.timers.heard_at = state.timers.resent_at = state.ticks
        self._forget_view()

    def transition_to_normal(self, view: int) -> None:
        """The log of `view` is installed, and durable with it."""
        state, timers = self.state, self.state.timers
        check(view >= state.view, f"the log of view {view} in view {state.view}")
        state.view = state.log_view = view
        state.status = Status.NORMAL
        timers.view_changes_failed = 0
        timers.answered_at = {}
        timers.normal_at = timers.heard_at = state.ticks
        timers.progress_at = timers.retransmit_at = timers.heartbeat_at = state.ticks
        state.find_unexecuted()
        self._forget_view()
