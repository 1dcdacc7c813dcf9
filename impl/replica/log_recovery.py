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

from collections.abc import Callable
from functools import partial

from viewproof.impl.interface.checks import check
from viewproof.impl.interface.effects import AppendPrepares, DrainJournal
from viewproof.impl.interface.messages import (
    Commit,
    Nack,
    Prepare,
    PrepareResponse,
    RequestPrepare,
    RequestStartView,
    StartView,
    prepare_is_valid,
)
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.pre_votes import PreVotes
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.state import LogRepair, State
from viewproof.impl.replica.target import InstallTarget
from viewproof.impl.replica.writes import Writes

ROUNDS_ALONE = 3
"""Rounds of questions without success after which a start_view of the own view is asked for, too."""


class LogRecovery:
    """Boots at once, or once the log is whole again: `state.log_repair` is what is known of it until then."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        writes: Writes,
        journal: Journal,
        checkpoints: Checkpoints,
        installation: Installation,
        start_views: StartViews,
        boot: Boot,
        pre_votes: PreVotes,
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.journal = journal
        self.checkpoints = checkpoints
        self.installation = installation
        self.start_views = start_views
        self.boot = boot
        self.pre_votes = pre_votes
        self.log_view_found = state.log_view

    def begin(self) -> None:
        """The log in memory is that of the disk, unless it is damaged."""
        state, repair = self.state, self.state.log_repair
        if repair is None:
            self.journal.hold_only(state.log)
            self.boot.boot()
            return
        check(state.replica_count > 1, "a single replica has nobody to repair its log from")
        self._hold(repair)
        self._advance(repair)

    def _hold(self, repair: LogRepair) -> None:
        """What is clean in the journal serves whatever log is installed."""
        self.state.bodies = dict(repair.held)
        self.journal.hold_only(repair.held.values())

    @property
    def quorum_nack(self) -> int:
        """q_n: so many without a prepare leave no replication quorum."""
        return self.state.replica_count - self.state.quorums.replication + 1

    # The own log

    def missing(self, repair: LogRepair) -> list[tuple[int, str]]:
        """(op, checksum) of what is known to be missing, from the head down."""
        return repair.walk(self.state.log.base)[1]

    def ask(self) -> None:
        """Asks all others for what is missing, once per repair timeout; goes on with a log to install.

        It also tells them that it takes part in no view: they may need a later one, to start it or to give nacks.
        """
        state, repair = self.state, self.state.log_repair
        if repair is None or self.writes.superblock_writing is not None:
            return
        if state.ticks - repair.asked_at < state.config.repair_timeout_ticks:
            return
        repair.asked_at = state.ticks
        repair.rounds += 1
        self.pre_votes.ask()
        if repair.end is not None:
            if not self.journal.busy:  # the drain has failed
                self.journal.drain(state.checkpoint, stale=True, end=repair.end)
            return
        if state.target is not None:
            self.installation.advance()
        if state.log_repair is None or self.writes.superblock_writing is not None:
            return
        missing = [each for each in self.missing(repair) if each[1] not in repair.fetched]
        wanted = tuple(missing[: state.config.request_prepare_max])
        if wanted:
            views = tuple(repair.known[name].view if name in repair.known else -1 for _, name in wanted)
            self.out.send_others(RequestPrepare(state.log_view, wanted, state.node, state.clock, views))
        self._advance(repair)

    def _advance(self, repair: LogRepair) -> None:
        """Takes the next step that can be taken now: writes what came, or boots if the log is whole."""
        waits = self.journal.busy or self.writes.superblock_writing is not None or repair.end is not None
        if self.state.log_repair is None or waits:
            return
        log, missing = repair.walk(self.state.log.base)
        came = [repair.fetched[checksum] for _, checksum in missing if checksum in repair.fetched]
        if came:
            if not self.journal.refuses:
                came.sort(key=lambda prepare: prepare.header.op)
                self.journal.append(came[: self.state.config.append_prepares_max], repair=False)
        elif not missing and repair.op_max == repair.head_op:
            self._name_head(repair, partial(self.boot_whole, log))

    def _name_head(self, repair: LogRepair, then: Callable[[], None]) -> None:
        """The superblock names the log's head before the journal forgets what was lost: a prepare that was fetched,
        and written elsewhere, does not say that the log went on there. It keeps the clock of who said so, too.
        """
        state = self.state
        self.writes.write_superblock(
            view=state.view,
            log_view=state.log_view,
            head_op=repair.head_op,
            head_checksum=repair.head_checksum,
            then=then,
        )

    def boot_whole(self, log: list[Prepare]) -> None:
        """The log is whole: the replica boots. What the journal holds beside it is erased."""
        state, own = self.state, self.state.log
        parent = log[0].header.parent if log else own.base_checksum
        check(parent == own.base_checksum, f"the log above op {own.base} begins with the parent {parent}")
        state.log = Log(log, own.base_header)
        state.durable_op = state.op
        state.log_repair = state.target = None
        state.bodies = {}
        self.journal.hold_only(log)
        self.boot.boot()
        self._erase_rest()

    def _erase_rest(self) -> None:
        if not self.journal.busy and self.checkpoints.work is None and self.writes.superblock_writing is None:
            self.journal.drain(self.state.checkpoint, stale=self.state.target is None)

    def _on_installed(self, target: InstallTarget) -> None:
        """An installation before the boot ends the repair."""
        self.state.log_repair = None
        self.start_views.on_installed(target, "recover", log_view_found=self.log_view_found)
        self.journal.hold_only(self.state.log)
        self._erase_rest()

    # What comes

    def on_request_prepare(self, message: RequestPrepare) -> None:
        """Prepares have names: who asks for one may have it, whatever it is to this replica."""
        state, repair = self.state, self.state.log_repair
        held = {} if repair is None else repair.held
        found = [held[checksum] for _, checksum in message.wanted if checksum in held]
        if found:
            bodies = tuple(Prepare(prepare.header, prepare.body) for prepare in found)
            self.out.send(message.replica, PrepareResponse(bodies, state.node, state.clock))

    def on_prepare_response(self, message: PrepareResponse) -> None:
        """Prepares that were asked for."""
        repair = self.state.log_repair
        if repair is None:
            return
        missing = {checksum for _, checksum in self.missing(repair)}
        for prepare in message.prepares:
            if prepare.header.checksum in missing and prepare_is_valid(prepare):
                repair.fetched[prepare.header.checksum] = prepare
                repair.known[prepare.header.checksum] = prepare.header
        if self.state.target is not None:
            self.installation.on_prepare_response(message)
        self._advance(repair)

    def on_view_seen(self, message: Commit | Prepare) -> None:
        """A view that has started: its start_view may be what this replica needs.

        None of a view below its own can be: it may have voted in its own. Then the primary is told of that.
        """
        state, repair = self.state, self.state.log_repair
        view = message.view if isinstance(message, Commit) else message.header.view
        primary = view % state.replica_count
        if repair is None or primary == state.node:
            return
        needs = repair.op_max > repair.head_op or repair.rounds > ROUNDS_ALONE
        above = state.log.base + 1
        if view < state.view:
            if needs and self.start_views.may_ask:
                question = RequestStartView(state.view, above, state.node, state.clock, state.config.nonce)
                self.start_views.ask(primary, question)
        elif view > state.log_view or needs:
            self.start_views.request(view, above)

    def on_start_view(self, message: StartView) -> None:
        """A start_view that may take the place of the own log."""
        repair = self.state.log_repair
        if repair is None or not self.covers(repair, message):
            self.out.ignore("start_view: it may end below the own log")
            return
        self.start_views.on_start_view(message, self._on_installed)

    def covers(self, repair: LogRepair, message: StartView) -> bool:
        """True if a start_view holds all that this replica may have acknowledged and is not overruled.

        It does if it was made after this process began: the primary of a view prepared what was acknowledged in it. If
        the superblock was lost, log_view is not known, and nothing else tells.
        """
        if message.checkpoint < repair.snapshot_op_min:
            return False
        if message.nonce != 0 and self.answers(message.nonce):
            return True
        lost = self.state.superblock.recovery
        return not lost and (message.view > self.state.log_view or message.op >= repair.op_max)

    def answers(self, nonce: int) -> bool:
        """True if a start_view with this nonce answers a question of this very process."""
        return nonce == (self.state.superblock.recovery or self.state.config.nonce)

    # Nacks

    def on_nack(self, message: Nack) -> None:
        """Another replica never had a prepare that is missing here; with enough of them it is discarded.

        The own copy is faulty and does not count (seed 002: one more is needed then). Without its header the
        prepare before it is not known, so it stays. What is missing below it comes first: a discard ends all damage.
        """
        state, repair = self.state, self.state.log_repair
        op, checksum = message.op, message.checksum
        missing = [] if repair is None else self.missing(repair)
        if repair is None or message.view <= state.log_view or (op, checksum) not in missing:
            self.out.ignore("nack: of nothing that is missing")
            return
        nacks = repair.nacks.setdefault(checksum, set())
        nacks.add(message.replica)
        header = repair.known.get(checksum)
        waits = any(each[0] < op for each in missing)
        busy = self.journal.busy or repair.end is not None or state.target is not None or waits
        if len(nacks) >= self.quorum_nack and header is not None and checksum not in repair.fetched and not busy:
            self._discard(repair, op - 1, header.parent)

    def _discard(self, repair: LogRepair, end: int, checksum: str) -> None:
        """The log ends at `end` from now on: the superblock says so, then the journal forgets what lies above."""
        repair.end = repair.head_op = repair.op_max = end
        repair.head_checksum = checksum
        self._name_head(repair, partial(self.journal.drain, self.state.checkpoint, stale=True, end=end))

    # Writes

    def on_append_done(self, io: AppendPrepares) -> None:
        """Prepares of the own log, or of one to be installed, are durable; the trace shows nothing before the boot."""
        state, repair = self.state, self.state.log_repair
        if repair is None:
            return
        if io.repair:
            written = {prepare.header.checksum: prepare.header.op for prepare in io.prepares}
            kept = {prepare.header.checksum for prepare in repair.walk(state.log.base)[0]} | written.keys()
            slots = state.journal_slots
            taken = {op % slots for op in written.values()} if slots else set()
            for name in [name for name, each in repair.held.items() if each.header.op % max(1, slots) in taken]:
                if name not in kept:
                    del repair.held[name]
        else:
            for prepare in io.prepares:
                repair.held[prepare.header.checksum] = prepare
                repair.fetched.pop(prepare.header.checksum, None)
        self.journal.on_append_done(io)
        self._advance(repair)

    def on_drained(self, io: DrainJournal) -> None:
        """The journal has forgotten what was discarded."""
        repair = self.state.log_repair
        if repair is not None and repair.end is not None:
            repair.held = {name: each for name, each in repair.held.items() if each.header.op <= (io.end or 0)}
            self._hold(repair)
            repair.end = None
            self._advance(repair)
