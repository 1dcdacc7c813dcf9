"""A replica whose log is damaged on its own disk repairs it from the others before it boots (seed 002).

Until then it takes part in nothing: no votes, no acknowledgements. To the others it is down, but for the prepares that
it sends to those who ask by checksum. It becomes whole in one of three ways:

* the prepares it lacks come from others, asked for by op and checksum: then it boots as ever (`restart`);
* enough others never had one (nacks): it was not committed and never will be, so it leaves the log with all above it;
* a start_view comes that is newer than its log, or covers the highest op that the log may have had, or answers this
  very process: the replica installs that (`recover`). This is the only way if it does not know where its log ended.

A replica acknowledges in no view above its log_view before it installs that view. So the nacks of q_n others, each of
which acknowledges nothing below its own, higher view, leave too few for a quorum in every view in which it may have
acknowledged the prepare.
"""

from __future__ import annotations

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal
from viewproof.impl.interface.messages import (
    Commit,
    Message,
    Nack,
    Prepare,
    PrepareResponse,
    RequestPrepare,
    RequestSnapshot,
    RequestStartView,
    SnapshotChunk,
    StartView,
    prepare_is_valid,
)
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.recovery import Recovery
from viewproof.impl.replica.state import InstallTarget, LogRepair, Status

ROUNDS_ALONE = 3
"""Rounds of questions without success after which a start_view of the own view is asked for, too."""


class LogRecovery(Recovery):
    """Boots at once, or once the log is whole again."""

    def boot_now(self) -> None:
        """The log in memory is that of the disk, unless it is damaged."""
        repair = self.log_repair
        if repair is None:
            super().boot_now()
            return
        check(self.replica_count > 1, "a single replica has nobody to repair its log from")
        self.log_view_found = self.log_view
        if self._boot_faulty(repair):
            return
        self.repaired = dict(repair.held)
        self.journaled = {checksum: prepare.header.op for checksum, prepare in repair.held.items()}
        self._advance_repair()

    def _boot_faulty(self, repair: LogRepair) -> bool:
        """Faults of recovery that boot at once; true if one did."""
        if "recover.empty_journal_is_new" in self.faults and not repair.held:
            self.log_repair = None
            self.view = self.log_view = 0
            super().boot_now()
            return True
        if "nack.clears_faulty" in self.faults:
            whole: list[Prepare] = []
            for prepare in sorted(repair.held.values(), key=lambda each: (each.header.op, -each.header.view)):
                before = whole[-1].header.checksum if whole else self.log.base_checksum
                if prepare.header.op == self.log.base + len(whole) + 1 and prepare.header.parent == before:
                    whole.append(prepare)
            self._boot_whole(whole)
            return True
        return False

    @property
    def quorum_nack(self) -> int:
        """q_n: so many without a prepare leave no replication quorum."""
        return self.replica_count - self.quorums.replication + 1

    # The own log

    def _walk(self, repair: LogRepair) -> tuple[list[Prepare], list[tuple[int, str]]]:
        """The log as far as it is here, from its head down, and (op, checksum) of what is known to be missing."""
        op, checksum = repair.head_op, repair.head_checksum
        log: list[Prepare] = []
        missing: list[tuple[int, str]] = []
        while op > self.log.base:
            prepare = repair.held.get(checksum)
            header = repair.known.get(checksum) if prepare is None else prepare.header
            if prepare is None:
                missing.append((op, checksum))
            else:
                log.append(prepare)
            if header is None:
                break
            op, checksum = op - 1, header.parent
        log.reverse()
        return log, missing

    def ask_for_lost_prepares(self) -> None:
        """Asks all others for what is missing, once per repair timeout; goes on with a log to install."""
        repair = self.log_repair
        if repair is None or self.lost_snapshot is not None or self.superblock_writing is not None:
            return
        if self.ticks - repair.asked_at < self.config.repair_timeout_ticks:
            return
        repair.asked_at = self.ticks
        repair.rounds += 1
        if repair.end is not None:
            if not self.journal_busy:  # the drain has failed
                self.drain_journal(self.checkpoint, stale=True, end=repair.end)
            return
        if self.target is not None:
            self.continue_install()
        if self.log_repair is None or self.superblock_writing is not None:
            return
        missing = [each for each in self._walk(repair)[1] if each[1] not in repair.fetched]
        wanted = tuple(missing[: self.config.request_prepare_max])
        if wanted:
            views = tuple(repair.known[name].view if name in repair.known else -1 for _, name in wanted)
            self.send_others(RequestPrepare(self.log_view, wanted, self.node, self.clock, views))
        self._advance_repair()

    def _advance_repair(self) -> None:
        """Takes the next step that can be taken now: writes what came, or boots if the log is whole."""
        repair = self.log_repair
        if repair is None or self.journal_busy or self.superblock_writing is not None or repair.end is not None:
            return
        log, missing = self._walk(repair)
        came = [repair.fetched[checksum] for _, checksum in missing if checksum in repair.fetched]
        if came:
            if not self.journal_refuses:
                came.sort(key=lambda prepare: prepare.header.op)
                self.write_prepares(came[: self.config.append_prepares_max], repair=False)
        elif not missing and repair.op_max == repair.head_op:
            self._boot_whole(log)

    def _boot_whole(self, log: list[Prepare]) -> None:
        """The log is whole: the replica boots. What the journal holds beside it is erased."""
        parent = log[0].header.parent if log else self.log.base_checksum
        check(parent == self.log.base_checksum, f"the log above op {self.log.base} begins with the parent {parent}")
        self.log = Log(log, self.log.base_header)
        self.durable_op = self.log.op
        self.log_repair = self.target = None
        self.repaired = {}
        self.journaled = {prepare.header.checksum: prepare.header.op for prepare in log}
        super().boot_now()
        self._erase_rest()

    def _erase_rest(self) -> None:
        if not self.journal_busy and self.checkpoint_work is None and self.superblock_writing is None:
            self.drain_journal(self.checkpoint, stale=self.target is None)

    # What comes

    def on_message_recovering(self, message: Message) -> None:
        """A message arrived before this replica has booted."""
        repair = self.log_repair
        if isinstance(message, SnapshotChunk):
            if self.lost_snapshot is not None:
                self.on_lost_chunk(message)
            else:
                self.on_snapshot_chunk(message)
                self.continue_install()
        elif repair is None or self.lost_snapshot is not None:
            self.ignore("any: not booted")
        elif isinstance(message, RequestPrepare):
            self._serve(repair, message)
        elif isinstance(message, RequestSnapshot):
            self.on_request_snapshot(message)
        elif isinstance(message, PrepareResponse):
            self._on_lost_prepares(repair, message)
        elif isinstance(message, Nack):
            self._on_nack(repair, message)
        elif isinstance(message, StartView):
            self._on_start_view_recovering(repair, message)
        elif isinstance(message, Commit | Prepare):
            self._on_view_seen(repair, message.view if isinstance(message, Commit) else message.header.view)
        else:
            self.ignore("any: not booted")

    def _serve(self, repair: LogRepair, message: RequestPrepare) -> None:
        """Prepares have names: who asks for one may have it, whatever it is to this replica."""
        found = [repair.held[checksum] for _, checksum in message.wanted if checksum in repair.held]
        if found:
            bodies = tuple(Prepare(prepare.header, prepare.body) for prepare in found)
            self.send(message.replica, PrepareResponse(bodies, self.node, self.clock))

    def _on_lost_prepares(self, repair: LogRepair, message: PrepareResponse) -> None:
        missing = {checksum for _, checksum in self._walk(repair)[1]}
        for prepare in message.prepares:
            if prepare.header.checksum in missing and prepare_is_valid(prepare):
                repair.fetched[prepare.header.checksum] = prepare
                repair.known[prepare.header.checksum] = prepare.header
        if self.target is not None:
            self.on_prepare_response(message)
        self._advance_repair()

    def _on_view_seen(self, repair: LogRepair, view: int) -> None:
        """A view that has started: its start_view may be what this replica needs.

        None of a view below its own can be: it may have voted in its own. Then the primary is told of that.
        """
        if view % self.replica_count == self.node:
            return
        needs = repair.op_max > repair.head_op or repair.rounds > ROUNDS_ALONE
        if view < self.view:
            if needs and self.ticks - self.start_view_asked_at >= self.config.repair_timeout_ticks:
                self.start_view_asked_at = self.ticks
                question = RequestStartView(self.view, self.log.base + 1, self.node, self.clock, self.config.nonce)
                self.send(view % self.replica_count, question)
        elif view > self.log_view or needs:
            self.request_start_view(view, self.log.base + 1)

    def _on_start_view_recovering(self, repair: LogRepair, message: StartView) -> None:
        if not self._covers(repair, message) and "recover.head_from_old_start_view" not in self.faults:
            self.ignore("start_view: it may end below the own log")
            return
        self.on_start_view(message)

    def _covers(self, repair: LogRepair, message: StartView) -> bool:
        """True if a start_view holds all that this replica may have acknowledged and is not overruled.

        It does if it was made after this process began: the primary of a view prepared what was acknowledged in it. If
        the superblock was lost, log_view is not known, and nothing else tells.
        """
        lost = self.superblock.recovery
        asked = message.nonce == (lost or self.config.nonce) or "recover.stale_nonce" in self.faults
        answered = message.nonce != 0 and asked
        return answered or (not lost and (message.view > self.log_view or message.op >= repair.op_max))

    # Nacks

    def _on_nack(self, repair: LogRepair, message: Nack) -> None:
        """Another replica never had a prepare that is missing here; with enough of them it is discarded.

        The own copy is faulty and does not count (seed 002: one more is needed then). Without its header the
        prepare before it is not known, so it stays. What is missing below it comes first: a discard ends all damage.
        """
        op, checksum = message.op, message.checksum
        missing = self._walk(repair)[1]
        if message.view <= self.log_view or (op, checksum) not in missing:
            self.ignore("nack: of nothing that is missing")
            return
        if "nack.not_nacked_is_present" in self.faults:
            return
        nacks = repair.nacks.setdefault(checksum, set())
        nacks.add(message.replica)
        header = repair.known.get(checksum)
        waits = any(each[0] < op for each in missing)
        busy = self.journal_busy or repair.end is not None or self.target is not None or waits
        if len(nacks) >= self.quorum_nack and header is not None and checksum not in repair.fetched and not busy:
            self._discard(repair, op - 1, header.parent)

    def _discard(self, repair: LogRepair, end: int, checksum: str) -> None:
        """The log ends at `end` from now on: the superblock says so, then the journal forgets what lies above."""
        repair.end = end

        def then() -> None:
            self.drain_journal(self.checkpoint, stale=True, end=end)

        repair.head_op, repair.head_checksum, repair.op_max = end, checksum, end
        block = self.superblock
        head = (end, checksum) if block.head_op > end else (block.head_op, block.head_checksum)
        self.write_superblock(view=self.view, log_view=self.log_view, head_op=head[0], head_checksum=head[1], then=then)

    # Writes

    def on_append_done(self, io: AppendPrepares) -> None:
        """Prepares of the own log, or of one to be installed, are durable; the trace shows nothing before the boot."""
        repair = self.log_repair
        if repair is None:
            super().on_append_done(io)
            return
        written = {prepare.header.checksum: prepare.header.op for prepare in io.prepares}
        if io.repair:
            names = {prepare.header.checksum for prepare in self._walk(repair)[0]}
            slots = self.journal_slots
            taken = {op % slots for op in written.values()} if slots else set()
            gone = [name for name, each in repair.held.items() if each.header.op % max(1, slots) in taken]
            for name in gone:
                if name not in names and name not in written:
                    del repair.held[name]
            self.forget_overwritten(written)
        else:
            for prepare in io.prepares:
                repair.held[prepare.header.checksum] = prepare
                repair.fetched.pop(prepare.header.checksum, None)
        self.journaled |= written
        self._advance_repair()

    def on_append_failed(self, io: AppendPrepares) -> None:
        """Before the boot it is only tried again."""
        if self.log_repair is None:
            super().on_append_failed(io)
            return
        self.journal_refuses_until = self.ticks + self.config.write_retry_ticks

    def on_drained(self, io: DrainJournal) -> None:
        """The journal is drained, or has forgotten what was discarded."""
        super().on_drained(io)
        repair = self.log_repair
        if repair is not None and repair.end is not None:
            repair.held = {name: each for name, each in repair.held.items() if each.header.op <= (io.end or 0)}
            self.repaired = dict(repair.held)
            self.journaled = {name: each.header.op for name, each in repair.held.items()}
            repair.end = None
            self._advance_repair()

    def transition_to_normal(self, target: InstallTarget) -> None:
        """An installation before the boot ends the repair."""
        recovers = self.log_repair is not None
        super().transition_to_normal(target)
        if recovers:
            self.log_repair = None
            check(self.status is Status.NORMAL, "a replica that installed a view is normal")
            self.journaled = {prepare.header.checksum: prepare.header.op for prepare in self.log}
            self._erase_rest()
