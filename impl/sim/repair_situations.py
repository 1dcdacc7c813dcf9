"""What is met while replicas mend their logs, counted as in `impl.sim.situations` (seed 002, answers and nacks).

| statistic | a situation |
|---|---|
| `answer: prepare` | a prepare that another's log lacks was asked for, and sent; `…, own log damaged`: by such a one |
| `answer: silence, …` | not sent: `own log damaged` (its slot may be faulty), `drained`, `normal`, `view`: no later |
| `answer: nack` | it was nacked: never had it, in a view change to a later view |
| `nacks: fewer than q_n` | a nack came of what is missing; n - q_r + 1 are needed, as the own copy is faulty |
| `nacks: enough, waits` | they suffice, but one below is missing, its header is lost, or a write is under way |
| `nacks: discard` | they suffice: the log ends below |
| `nacks: too late` | a nack of nothing that is missing any more, or of no later view |
| `mended: prepares` | a replica booted with a damaged log, which others completed; `discard`: which nacks shortened |
| `mended: start_view, …` | … one came `of a later view`, that `covers` all it may have had, or `answer`s its question |
| `start_view refused` | a replica with a damaged log heard one that may end below what it acknowledged |
| `truncated` | an installed log ends below the one it replaced |
"""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.impl.interface.effects import Effect, Send
from viewproof.impl.interface.messages import Message, Nack, PrepareResponse, RequestPrepare, StartView
from viewproof.impl.replica import Replica, Status
from viewproof.impl.replica.state import LogRepair
from viewproof.impl.trace.events import TraceEvent


class RepairSituations:
    """Watches events and deliveries of all replicas."""

    def __init__(self, replica_count: int, statistics: dict[str, int]) -> None:
        self.statistics = statistics
        self.last: list[TraceEvent | None] = [None] * replica_count
        self.damaged: list[str] = [""] * replica_count
        self.starts: dict[tuple[int, int | None, int | None], tuple[str, ...]] = {}

    def on_boot(self, node: int, replica: Replica) -> None:
        """A process began, over the log of its disk."""
        self.damaged[node] = "" if replica.state.log_repair is None else "prepares"

    def on_event(self, node: int, event: TraceEvent) -> None:
        """A replica has emitted an event."""
        before, self.last[node] = self.last[node], event
        way = self.damaged[node]
        if event.event == "recover":
            for each in self.starts.get((node, event.m_from, event.m_seq), ()):
                self.statistics[f"mended: start_view, {each}"] += 1
        elif event.event == "restart" and way:
            self.statistics[f"mended: {way}"] += 1
        if event.event in ("recover", "restart"):
            self.damaged[node] = ""
        elif event.event in ("start_view", "on_start_view") and before is not None:
            self.statistics["truncated"] += (event.op or 0) < (before.op or 0)

    def before_message(self, node: int, replica: Replica, message: Message) -> str:
        """A message arrives; returns what it is to a replica with a damaged log, for `after_message`."""
        repair = replica.state.log_repair
        if isinstance(message, Nack):
            return self._nack(replica, repair, message)
        if isinstance(message, StartView) and repair is not None and message.view >= replica.state.view:
            ways = _ways(replica, repair, message)
            self.starts[node, message.replica, message.seq] = ways
            self.statistics["start_view refused"] += not ways
        return ""

    def after_message(self, replica: Replica, message: Message, met: str, effects: Iterable[Effect]) -> None:
        """The replica has handled it."""
        if isinstance(message, Nack):
            repair = replica.state.log_repair
            discards = met == "enough, waits" and repair is not None and repair.end == message.op - 1
            self.statistics[f"nacks: {'discard' if discards else met}"] += 1
            if discards:
                self.damaged[replica.state.node] = "discard"
        elif isinstance(message, RequestPrepare) and message.views:
            self._on_question(replica, message, [each.message for each in effects if isinstance(each, Send)])

    def _nack(self, replica: Replica, repair: LogRepair | None, message: Nack) -> str:
        missing = [] if repair is None else replica.log_recovery.missing(repair)
        if repair is None or message.view <= replica.state.log_view or (message.op, message.checksum) not in missing:
            return "too late"
        known = repair.nacks.get(message.checksum, set()) | {message.replica}
        return "enough, waits" if len(known) >= replica.log_recovery.quorum_nack else "fewer than q_n"

    def _on_question(self, replica: Replica, message: RequestPrepare, said: list[Message]) -> None:
        answers = [answer for answer in said if isinstance(answer, PrepareResponse)]
        sent = {prepare.header.checksum for answer in answers for prepare in answer.prepares}
        nacked = {answer.checksum for answer in said if isinstance(answer, Nack)}
        for op, checksum in message.wanted:
            if checksum in sent:
                met = "prepare" if replica.state.log_repair is None else "prepare, own log damaged"
            elif checksum in nacked:
                met = "nack"
            else:
                met = f"silence, {_silence(replica, message, op)}"
            self.statistics[f"answer: {met}"] += 1


def _ways(replica: Replica, repair: LogRepair, message: StartView) -> tuple[str, ...]:
    """Why a replica with a damaged log may take a start_view (`impl.replica.log_recovery`)."""
    block = replica.state.superblock
    if not block.recovery and message.view > replica.state.log_view:
        return ("of a later view",)
    ways = ("covers",) if not block.recovery and message.op >= repair.op_max else ()
    return (*ways, "answer") if message.nonce == (block.recovery or replica.state.config.nonce) else ways


def _silence(replica: Replica, message: RequestPrepare, op: int) -> str:
    if replica.state.status is Status.RECOVERING:
        return "own log damaged"
    if op <= replica.state.log.base:
        return "drained"
    return "normal" if replica.state.status is Status.NORMAL else "view"
