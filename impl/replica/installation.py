"""The installation of a log: that of a start_view, or the one that a new primary chose (rules 5 to 7).

It goes: window of headers connects to the own log → bodies fetched → snapshot fetched, if one lies below → bodies
written as repair → one superblock write with view, log_view and log head → the new log replaces the old one. Until that
write is durable the replica keeps its view, its log_view and its whole log. Bodies come first: the others have them
until their next checkpoint, and a snapshot, with the segments that it names, may take longer than that.
"""

from __future__ import annotations

from msgspec import structs

from viewproof.impl.interface.checks import ContradictionError, check
from viewproof.impl.interface.effects import WriteSnapshot
from viewproof.impl.interface.messages import (
    Prepare,
    PrepareHeader,
    PrepareResponse,
    RequestPrepare,
    prepare_is_valid,
)
from viewproof.impl.replica.checkpoints import Checkpoints
from viewproof.impl.replica.journal import Journal
from viewproof.impl.replica.log import Log
from viewproof.impl.replica.outbox import Outbox
from viewproof.impl.replica.state import State, Status
from viewproof.impl.replica.target import InstallTarget, WantedSnapshot
from viewproof.impl.replica.transfer import SnapshotTransfer
from viewproof.impl.replica.writes import Writes


class Installation:
    """Installs `state.target`, step by step."""

    def __init__(
        self,
        state: State,
        out: Outbox,
        writes: Writes,
        journal: Journal,
        checkpoints: Checkpoints,
        transfer: SnapshotTransfer,
    ) -> None:
        self.state = state
        self.out = out
        self.writes = writes
        self.journal = journal
        self.checkpoints = checkpoints
        self.transfer = transfer
        self._fetched: WantedSnapshot | None = None

    def begin(self, target: InstallTarget) -> None:
        """A log is to be installed, in place of any other one; its snapshot may be half here already."""
        state, wanted = self.state, target.snapshot
        if wanted is not None:
            before = self._fetched
            if before is not None and (before.op, before.checksum) == (wanted.op, wanted.checksum):
                before.durable &= state.target is not None and state.target.snapshot is before
                target.snapshot = wanted = before
            self._fetched = wanted
            state.bodies = {name: each for name, each in state.bodies.items() if each.header.op > wanted.op}
        state.target = target
        self.advance()

    def advance(self) -> None:
        """Takes the next step of the installation that can be taken now."""
        state, target = self.state, self.state.target
        if target is None or self.writes.superblock_writing is not None:
            return
        if target.view < state.view or self._is_superseded(target):
            state.target = None
            return
        self.require_executed(f"the log of view {target.view}", target.view, target.op, target.headers)
        if target.snapshot is None and not state.log.connects(target.headers):
            state.target = None  # a failed append took away the entry below the window
            return
        if any(self.body_of(header) is None for header in self._above_base(target)):
            self._request_bodies(target)
            return
        if target.snapshot is not None and not self._has_snapshot(target, target.snapshot):
            return
        if self.journal.busy or (target.snapshot is None and state.overflows(target.op)):
            return  # in the second case for the checkpoint that is pending
        self._write(target)

    def require_executed(self, what: str, view: int, op: int, headers: tuple[PrepareHeader, ...]) -> None:
        """The log that starts `view`, called `what`, has all that this replica executed. Raises `ContradictionError`.

        Nothing is installed then, and nothing written: log, superblock and trace stay as they are, for whoever looks.
        """
        state = self.state
        differs = state.log.differs(headers, state.commit_min)
        if differs is not None:
            at, checksum = differs
            text = f"{what} has the entry {checksum} at op {at}, where this replica executed {state.log.checksum(at)}"
        elif op < state.commit_min and view > state.log_view:
            text = f"{what} ends at op {op}; this replica executed up to op {state.commit_min}"
        else:
            return
        first = headers[0].op if headers else op
        executed = [prepare.header for prepare in state.log.slice(first, state.commit_min)]
        raise ContradictionError(
            text,
            {
                "replica": state.node,
                "view": state.view,
                "log_view": state.log_view,
                "commit_min": state.commit_min,
                "offered_view": view,
                "offered_op": op,
                "offered": list(map(structs.asdict, headers)),
                "executed": list(map(structs.asdict, executed)),
            },
        )

    def _write(self, target: InstallTarget) -> None:
        """All of the log is here: what the journal lacks is written, then the superblock."""
        log = self.log_of(target)
        unsure = log.slice(min(target.base, self.state.durable_op) + 1, log.op)
        missing = [prepare for prepare in unsure if not self.is_journaled(prepare)]
        if missing:
            if not self.journal.refuses:
                self.journal.append(missing, repair=True)
            return
        restored = None if target.snapshot is None else target.snapshot.restored
        self.writes.write_superblock(
            view=target.view,
            log_view=target.view,
            head_op=target.op,
            head_checksum=log.head,
            then=self._install,
            snapshot=None if restored is None else restored.snapshot,
        )

    def _is_superseded(self, target: InstallTarget) -> bool:
        """True for a target of our own view, once normal, unless what we lack of it can only come as a snapshot."""
        if target.view > self.state.view or self.state.status is not Status.NORMAL:
            return False
        return target.snapshot is None or target.snapshot.op <= self.state.op

    def _has_snapshot(self, target: InstallTarget, wanted: WantedSnapshot) -> bool:
        """True once the snapshot is here and durable; else the next step towards that is taken."""
        if wanted.restored is None and wanted.snapshot is None:
            self.transfer.fetch_snapshot(target, wanted)
        elif wanted.restored is None and wanted.snapshot is not None:
            self.transfer.load(target, wanted, wanted.snapshot)
        restored = wanted.restored
        if restored is None:
            return False
        if wanted.op <= self.state.commit_min or not _connects_to(target.headers, restored.header):
            self.out.ignore("start_view: its snapshot is not below its log")
            self.state.target = None
            return False
        if wanted.durable or self.writes.snapshot_writing is not None or restored.snapshot is None:
            return wanted.durable
        self.writes.write_snapshot(restored.snapshot, restored.state_machine.partitions.held())
        return False

    def on_snapshot_written(self, io: WriteSnapshot) -> None:
        """A snapshot is durable: it may be the one to be installed."""
        wanted = None if self.state.target is None else self.state.target.snapshot
        if wanted is not None and wanted.restored is not None and wanted.restored.snapshot is not None:
            wanted.durable |= (wanted.op, wanted.checksum) == (io.op, io.checksum)

    # The log to install

    def body_of(self, header: PrepareHeader) -> Prepare | None:
        """The entry with its body, if it is here."""
        prepare = self.state.log.get(header.op)
        if prepare is not None and prepare.header.checksum == header.checksum:
            return prepare
        return self.state.bodies.get(header.checksum)

    def is_journaled(self, prepare: Prepare) -> bool:
        """True if the journal has the entry."""
        return prepare.header.checksum in self.journal.held

    def _base_of(self, target: InstallTarget) -> PrepareHeader | None:
        """The header of the entry below the log to install."""
        wanted = target.snapshot
        return self.state.log.base_header if wanted is None or wanted.restored is None else wanted.restored.header

    def _above_base(self, target: InstallTarget) -> tuple[PrepareHeader, ...]:
        """The window's headers whose entries the log to install has in memory."""
        base = self.state.log.base if target.snapshot is None else target.snapshot.op
        return target.headers[max(0, base - target.base) :]

    def log_of(self, target: InstallTarget) -> Log:
        """The log to install: the own log below the window, then the window's entries."""
        own = self.state.log
        if target.snapshot is None:
            check(own.connects(target.headers), "the log to install is a chain")
            log = Log(own.slice(1, target.base), own.base_header)
        else:
            log = Log((), self._base_of(target))
        for header in self._above_base(target):
            prepare = self.body_of(header)
            if prepare is not None:
                log.append(prepare)
        check(log.op == target.op, "the log to install is complete")
        return log

    def _install(self) -> None:
        """The superblock with the new log head is durable: the log is replaced."""
        state, target = self.state, self.state.target
        check(target is not None, "an installation has a target")
        if target is None:
            return
        state.log = self.log_of(target)
        state.durable_op = state.op
        if target.snapshot is not None and target.snapshot.restored is not None:
            self.checkpoints.adopt(target.snapshot.restored)
        self._fetched = None
        state.target = None
        state.bodies = {}
        target.on_installed(target)

    # Bodies

    def _request_bodies(self, target: InstallTarget) -> None:
        to = self.transfer.next_source(target)
        if to is None:
            return
        state = self.state
        wanted = [(header.op, header.checksum) for header in self._above_base(target) if self.body_of(header) is None]
        limit = state.config.request_prepare_max
        self.out.send(to, RequestPrepare(target.view, tuple(wanted[:limit]), state.node, state.clock))

    def on_prepare_response(self, message: PrepareResponse) -> None:
        """Bodies of the log to install."""
        target = self.state.target
        if target is None:
            self.out.ignore("prepare_response: nothing is being installed")
            return
        wanted = {header.checksum for header in self._above_base(target) if self.body_of(header) is None}
        for prepare in message.prepares:
            if prepare.header.checksum in wanted and prepare_is_valid(prepare):
                self.state.bodies[prepare.header.checksum] = prepare
                target.attempts = 0
        self.advance()


def _connects_to(headers: tuple[PrepareHeader, ...], header: PrepareHeader | None) -> bool:
    """True if `header` is the entry below the window, or one of the window's."""
    if header is None or not headers:
        return False
    first = headers[0]
    if header.op >= first.op:
        return header.op <= headers[-1].op and headers[header.op - first.op].checksum == header.checksum
    return header.op == first.op - 1 and header.checksum == first.parent
