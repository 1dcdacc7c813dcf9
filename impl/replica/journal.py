"""The replica's side of its journal: one write at a time, an append or a drain.

An append that failed is not tried again: what it held is no longer in the log, and for a while nothing new is taken.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State


class Journal:
    """`appending` and `draining` are in flight; `held`: checksum → op of what the journal has, of the log or not."""

    def __init__(self, state: State, out: Outbox) -> None:
        self.state = state
        self.out = out
        self.appending: AppendPrepares | None = None
        self.draining: DrainJournal | None = None
        self.held: dict[str, int] = {}
        self._refuses_until = 0
        self.hold_only(state.log)

    def hold_only(self, prepares: Iterable[Prepare]) -> None:
        """These are all that the journal has, as far as it counts."""
        self.held = {prepare.header.checksum: prepare.header.op for prepare in prepares}

    @property
    def busy(self) -> bool:
        """True while an append or a drain is in flight."""
        return self.appending is not None or self.draining is not None

    @property
    def refuses(self) -> bool:
        """True for a while after a failed append: nothing new is taken."""
        return self.state.ticks < self._refuses_until

    @property
    def full(self) -> bool:
        """True if the next op has no room above the checkpoint."""
        return not self.fits(self.state.op + 1)

    def fits(self, op: int) -> bool:
        """True if the journal has room for `op`: it never takes the slot of an op that is not drained.

        Without checkpoints nothing is ever drained, and the journal has no bound.
        """
        slots = self.state.journal_slots
        return slots == 0 or op - self.state.drained <= slots

    def append(self, prepares: Sequence[Prepare], *, repair: bool) -> None:
        """Starts a journal write."""
        check(not self.busy, "one journal write at a time")
        check(len(prepares) > 0, "a journal write has entries")
        self.appending = AppendPrepares(tuple(prepares), repair)
        self.out.effects.append(self.appending)

    def append_log(self) -> None:
        """Writes all entries of the log that are not durable, as one group, unless a write is in flight."""
        state = self.state
        if self.busy or state.durable_op == state.op or self.refuses:
            return
        end = min(state.op, state.durable_op + state.config.append_prepares_max)
        self.append(state.log.slice(state.durable_op + 1, end), repair=False)

    def end_append(self, io: AppendPrepares) -> None:
        """The append in flight has ended, well or not."""
        check(io is self.appending, "the journal write that ended is the one in flight")
        self.appending = None

    def on_append_done(self, io: AppendPrepares) -> None:
        """What was written is held. Written as repair, it may lie where something was that is not of the log."""
        written = {prepare.header.checksum: prepare.header.op for prepare in io.prepares}
        slots = self.state.journal_slots
        if io.repair and slots:
            taken = {op % slots for op in written.values()}
            log = self.state.log
            self.held = {
                checksum: op
                for checksum, op in self.held.items()
                if op % slots not in taken or log.checksum(op) == checksum
            }
        self.held |= written

    def on_append_failed(self) -> None:
        """Nothing new is taken for a while."""
        self._refuses_until = self.state.ticks + self.state.config.write_retry_ticks

    def drain(self, op: int, *, stale: bool, end: int | None = None) -> None:
        """Starts dropping what lies at or below `op`, and with `stale` what is not of the log, or above `end` in it."""
        check(not self.busy, "one journal write at a time")
        self.draining = DrainJournal(op, stale, end)
        self.out.effects.append(self.draining)

    def on_drained(self, io: DrainJournal) -> None:
        """The journal is drained."""
        check(io is self.draining, "the drain finished is the one in flight")
        state = self.state
        self.draining = None
        state.drained = max(state.drained, io.op)
        if io.stale:
            self.hold_only(state.log.slice(io.op + 1, state.durable_op))

    def on_drain_failed(self) -> None:
        """The journal is as it was."""
        self.draining = None
