"""Entries for those who lack them: by checksum from any replica, and by op from the primary that prepared them."""

from __future__ import annotations

from viewproof.impl.interface.messages import Nack, Prepare, PrepareResponse, RequestPrepare, RequestStartView
from viewproof.impl.replica.normal import stamped
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State, Status
from viewproof.impl.replica.view_change import ViewChange


class PrepareService:
    """Answers request_prepare, also by nacks."""

    def __init__(self, state: State, out: Outbox, view_change: ViewChange) -> None:
        self.state = state
        self.out = out
        self.view_change = view_change
        self._nacks_sent: dict[tuple[int, int, str], int] = {}

    def on_request_prepare(self, message: RequestPrepare) -> None:
        """Sends the bodies asked for that are here; as the primary of the view, its own prepares again.

        What is drained here comes as a snapshot, with start_view.
        """
        state, views = self.state, message.views
        drained = [op for op, checksum in message.wanted if not checksum and op <= state.log.base]
        if drained:
            question = RequestStartView(message.view, min(drained), message.replica, message.clock)
            self.view_change.on_request_start_view(question)
            return
        found: list[Prepare] = []
        for place, (op, checksum) in enumerate(message.wanted[: state.config.request_prepare_max]):
            prepare = state.log.get(op)
            if checksum:
                if prepare is None or prepare.header.checksum != checksum:
                    prepare = state.bodies.get(checksum)
                if prepare is not None:
                    found.append(Prepare(prepare.header, prepare.body))
                elif place < len(views) and self.may_nack(message, op, views[place]):
                    self._nack(message.replica, op, checksum, views[place])
            elif prepare is not None and state.is_normal_primary and prepare.header.view == message.view == state.view:
                self.out.send(message.replica, stamped(prepare, state.node, state.clock))
        if found:
            self.out.send(message.replica, PrepareResponse(tuple(found), state.node, state.clock))

    def may_nack(self, message: RequestPrepare, op: int, view: int) -> bool:
        """True if this replica never acknowledged an entry of `view` that it lacks, nor will up to the asker's view.

        Only in a view change to a later one: in normal status the prepare may still come (seed 002).
        """
        state = self.state
        later = state.status is Status.VIEW_CHANGE and state.view > message.view
        return later and view >= 0 and op > state.log.base

    def _nack(self, to: int, op: int, checksum: str, view: int) -> None:
        state = self.state
        key = (state.view, op, checksum)
        if key not in self._nacks_sent:
            self._nacks_sent[key] = self.out.emit(
                "nack", m_type="nack", m_view=state.view, m_log_view=view, m_op=op, m_checksum=checksum
            )
        self.out.send(to, Nack(state.view, op, checksum, state.node, state.clock, self._nacks_sent[key]))
