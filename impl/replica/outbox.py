"""What the replica says: trace events, messages and writes, in order, until its host takes them."""

from __future__ import annotations

from collections import deque
from typing import Unpack

import msgspec

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import Effect, Emit, Send
from viewproof.impl.interface.messages import Message
from viewproof.impl.replica.state import State
from viewproof.impl.trace.events import MessageColumns, TraceEvent


class Outbox:
    """`effects` for the host, `ignored`: messages not used, by reason; `io_errors`: the last failures of the disk."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.effects: list[Effect] = []
        self.ignored: dict[str, int] = {}
        self.io_errors: deque[str] = deque(maxlen=8)

    def take(self) -> list[Effect]:
        """The effects since the last call."""
        effects = self.effects
        if not effects:
            return []
        self.effects = []
        return effects

    def emit(self, event: str, *, configuration: bool = False, **message: Unpack[MessageColumns]) -> int:
        """Emits an event with all observations before the sends it allows; returns its `seq`. `m_seq` 0: not known."""
        state = self.state
        state.seq += 1
        state.clock += 1
        if not state.config.traced:
            return state.seq
        if not message.get("m_seq"):
            message["m_seq"] = None
        superblock, log = state.superblock, state.log
        trace_event = TraceEvent(  # by place, which takes a third of the time: a request has eleven events
            state.config.run,
            state.node,
            state.seq,
            state.clock,
            event,
            state.status.value,
            state.view,
            state.log_view,
            superblock.view,
            superblock.log_view,
            log.op,
            log.head,
            state.commit_min,
            state.commit_max,
            state.digest,
            state.table_digest,
            state.enabled.mask,
            state.checkpoint,
            **message,
        )
        if configuration:
            trace_event = msgspec.structs.replace(trace_event, **self._configuration())
        self.effects.append(Emit(trace_event))
        return state.seq

    def _configuration(self) -> dict[str, int]:
        """The columns of `start` and `restart`."""
        state, config = self.state, self.state.config
        return {
            "replicas": state.replica_count,
            "quorum_replication": state.quorums.replication,
            "quorum_view_change": state.quorums.view_change,
            "client_slots": state.clients.slots,
            "client_sessions": int(state.clients.sessions),
            "client_gaps": int(state.clients.gaps),
            "pipeline": config.pipeline_max,
            "checkpoint_interval": config.checkpoint_interval,
            "journal_slots": state.journal_slots,
            "supports": config.supports,
            "feature_rounds": 1,
            **({"ring": 1} if config.ring else {}),
            **({"partitions": 1} if config.shows_partitions else {}),
        }

    def send(self, to: int, message: Message) -> None:
        """Sends to another replica."""
        check(to != self.state.node, "a replica sends no message to itself")
        self.effects.append(Send(to, message))

    def send_others(self, message: Message) -> None:
        """Sends to every other replica, in index order."""
        for node in self.state.others:
            self.effects.append(Send(node, message))

    def ignore(self, reason: str) -> None:
        """A message is not used; counted by reason."""
        self.ignored[reason] = self.ignored.get(reason, 0) + 1
