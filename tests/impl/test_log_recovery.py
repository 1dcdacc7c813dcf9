"""A replica whose ring journal is damaged: silent until whole, by bodies, nacks or a start_view; the trace conforms."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.impl.link import Link
from tests.refinement.traces import load
from viewproof.impl.interface.durable import CLIENTS_PAPER, BootRefusedError, superblock_formatted
from viewproof.impl.interface.effects import DrainJournal, WriteSuperblock
from viewproof.impl.interface.messages import Commit, Nack, PrepareOk, PrepareResponse, StartView
from viewproof.impl.machine.state_machine import Append
from viewproof.impl.replica import ReplicaConfig, Status
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.ring_storage import RingStorage
from viewproof.impl.trace.events import encode_line
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions, RunVerdict

CONFIG = ReplicaConfig(run="test", checkpoint_interval=10, journal_slots=20, pipeline_max=4, ring=True)


class Rotten(Link):
    """A cluster whose journals are rings; `ask` is a client's next request."""

    def __init__(self, count: int, *faults: str) -> None:
        profile = SimProfile(slow_write=0.0, journal_slots=20, ring=True)
        self.disks = [
            RingStorage(superblock_formatted(1, node, count, None, CLIENTS_PAPER), profile, Random(0), defaultdict(int))
            for node in range(count)
        ]
        super().__init__(count, storages=self.disks, config=CONFIG, faults=faults)
        self.run()
        self.number = 0

    def ask(self, to: int) -> None:
        """One more request, appended to a key."""
        self.number += 1
        self.request(to, 1, self.number, Append(b"key", b"%d;" % self.number))

    def spoil(self, node: int, op: int, *, header: bool = False, body: bool = True) -> None:
        """Sectors of the entry at `op` rot."""
        disk = self.disks[node]
        cell = next(at for at in disk.geometry.cells_of(op) if disk.journal._op(at) == op)
        places = [disk.geometry.header_at(cell)] * header + [disk.geometry.prepare_at(cell)] * body
        for place in places:
            for content in (disk.file.content, disk.file.durable):
                content[place + 30] ^= 1

    def judge(self, directory: Path) -> RunVerdict:
        """The audit's verdict on the trace."""
        directory.mkdir(exist_ok=True)
        for node in range(len(self.disks)):
            lines = [encode_line(event) for event in self.events if event.node == node]
            (directory / f"replica-{node}.ndjson").write_bytes(b"".join(lines))
        return check_run("test", load(directory), AuditOptions())


def isolated(*nodes: int) -> Callable[[int, int, object], bool]:
    return lambda source, to, message: source in nodes or to in nodes


def test_lost_prepares_come_from_the_others_and_nothing_is_said_before(tmp_path: Path) -> None:
    link = Rotten(3)
    for _ in range(5):
        link.ask(0)
    link.crash(2)
    link.spoil(2, 2)
    link.spoil(2, 4, header=True)
    link.lose = isolated(2)
    link.boot(2)
    link.tick(30, 2)
    assert link[2].state.status is Status.RECOVERING
    assert link.names(2)[-1] != "restart"
    votes = len(link.messages(PrepareOk, 2))
    link.lose = lambda source, to, message: False
    link.tick(20, 2)
    assert link.of(2, "restart")[-1].op == 5
    assert votes == 5, "nothing was said meanwhile, and what is committed needs no vote"
    assert link.messages(PrepareResponse)
    link.ask(0)
    assert link.disks[2].is_damaged is False
    assert link.judge(tmp_path).verdict == "conforms"


def test_the_superblock_names_the_head_before_the_journal_forgets_what_was_lost() -> None:
    """A prepare that was fetched, and written elsewhere, does not say that the log went on above it."""
    link = Rotten(3)
    for _ in range(5):
        link.ask(0)
    link.crash(2)
    link.spoil(2, 4, header=True)
    link.hold = lambda node, io: node == 2 and isinstance(io, WriteSuperblock)
    link.boot(2)
    link.tick(30, 2)
    named = [io.superblock for node, io in link.held if node == 2 and isinstance(io, WriteSuperblock)]
    assert [(block.head_op, block.head_checksum) for block in named] == [(5, link[0].state.log[5].header.checksum)]
    before = len([io for node, io in link.writes if node == 2 and isinstance(io, DrainJournal)])
    assert link[2].state.status is Status.RECOVERING
    link.hold = lambda node, io: False
    link.tick(20, 2)
    assert link.of(2, "restart")[-1].op == 5
    assert len([io for node, io in link.writes if node == 2 and isinstance(io, DrainJournal)]) > before


def test_the_log_that_it_had_comes_back_with_a_later_snapshot(tmp_path: Path) -> None:
    link = Rotten(3)
    for _ in range(9):
        link.ask(0)
    link.lose = lambda source, to, message: to == 2 and isinstance(message, Commit)
    link.ask(0)
    link.tick(15, 0, 1)
    assert (link[2].state.op, link[2].state.commit_min, [link[node].state.checkpoint for node in range(3)]) == (
        10,
        9,
        [10, 10, 0],
    )
    link.crash(2)
    link.spoil(2, 3)
    link.boot(2)
    link.lose = lambda source, to, message: False
    link.tick(60)
    back = link.of(2, "recover")[-1]
    assert (back.view, back.op, back.m_checkpoint) == (0, 10, 10)
    assert link.judge(tmp_path).verdict == "conforms"


def test_two_damaged_replicas_mend_each_other(tmp_path: Path) -> None:
    link = Rotten(3)
    for _ in range(4):
        link.ask(0)
    for node in range(3):
        link.crash(node)
        link.spoil(node, 1 + node)
    for node in range(3):
        link.boot(node)
    link.tick(20)
    assert all(replica.state.status is not Status.RECOVERING for replica in link.replicas.values())
    assert link.judge(tmp_path).verdict == "conforms"


def test_a_prepare_that_nobody_else_had_is_discarded(tmp_path: Path) -> None:
    link = Rotten(2)
    link.ask(0)
    link.lose = isolated(1)
    link.ask(0)
    link.ask(0)
    link.crash(0)
    link.spoil(0, 2)
    link.boot(0)
    link.lose = lambda source, to, message: False
    link.tick(20, 0)
    assert link[0].state.status is Status.RECOVERING, "a backup in normal status nacks nothing"
    assert link.messages(Nack) == []
    link.change_view(1)
    link.tick(20, 0)
    assert link.of(0, "restart")[-1].op == 1
    assert link.of(1, "nack")
    link.tick(300)
    link.ask(link[0].state.view % 2)
    assert link.judge(tmp_path).verdict == "conforms"


def test_what_lies_below_a_discarded_prepare_stays(tmp_path: Path) -> None:
    link = Rotten(2)
    for _ in range(3):
        link.ask(0)
    link.lose = isolated(1)
    link.ask(0)
    link.crash(0)
    link.spoil(0, 2)
    link.spoil(0, 4)
    link.boot(0)
    link.lose = lambda source, to, message: isinstance(message, PrepareResponse)
    link.change_view(1)
    link.tick(20, 0)
    assert link.messages(Nack)
    assert link[0].state.status is Status.RECOVERING, "op 2 is missing, and everything depends on it"
    link.lose = lambda source, to, message: False
    link.tick(20, 0)
    assert link.of(0, "restart")[-1].op == 3
    assert link.judge(tmp_path).verdict == "conforms"


def test_a_recovery_that_was_not_seen_is_followed_by_another(tmp_path: Path) -> None:
    """It dies when superblock and snapshot are durable and its trace does not say so; what follows its log rots."""
    link = Rotten(3)
    for _ in range(5):
        link.ask(0)
    link.crash(2)
    link.spoil(2, 3)
    for _ in range(7):
        link.ask(0)
    link.boot(2)
    link.hold = lambda node, io: node == 2 and isinstance(io, WriteSuperblock)
    link.tick(60)
    [(_, install)] = link.held
    assert isinstance(install, WriteSuperblock)
    assert install.superblock.checkpoint == 10
    disk = link.disks[2]
    disk.finish(install)
    link.crash(2)
    for content in (disk.file.content, disk.file.durable):
        content[disk.geometry.header_at(13)] ^= 1
    link.hold = lambda node, io: False
    link.boot(2)
    link.ask(0)
    link.tick(60)
    [back] = link.of(2, "recover")
    assert (back.checkpoint, back.m_checkpoint, back.op) == (10, 0, 13)
    assert link.judge(tmp_path).verdict == "conforms"


def test_a_damaged_replica_of_a_later_view_brings_the_others_there(tmp_path: Path) -> None:
    """It takes no start_view of their view, in which it may have promised not to be, and cannot vote for another."""
    link = Rotten(3)
    link.ask(0)
    link.lose = isolated(2)
    link.change_view(2)
    view = link[2].state.view
    assert view > link[0].state.view == 0
    for _ in range(11):
        link.ask(0)
    link.crash(2)
    link.spoil(2, 1, header=True)
    link.boot(2)
    link.lose = lambda source, to, message: False
    link.tick(400)
    assert link.of(2, "recover")[-1].view >= view
    link.ask(link[2].state.view % 3)
    assert {replica.state.op for replica in link.replicas.values()} == {13}
    assert link.judge(tmp_path).verdict == "conforms"


def uncertain(*faults: str) -> tuple[Rotten, StartView]:
    """Backup 2 of view 1 acknowledged op 4 and does not know it any more; an old start_view of view 1 ends at op 2."""
    link = Rotten(3, *faults)
    link.ask(0)
    link.ask(0)
    link.change_view(1)
    link.tick(3)
    view = link[1].state.view
    old = next(m for m in link.messages(StartView, view % 3) if isinstance(m, StartView) and m.view == view)
    old = msgspec.structs.replace(old, headers=link[view % 3].state.log.headers(1))
    backup = next(node for node in (2, 0) if node != view % 3)
    link.ask(view % 3)
    link.ask(view % 3)
    link.crash(backup)
    link.spoil(backup, 4, header=True)
    link.lose = isolated(backup)
    link.boot(backup)
    link.deliver(backup, old)
    link.run()
    return link, old


def test_an_old_start_view_is_not_enough_for_an_uncertain_head(tmp_path: Path) -> None:
    link, old = uncertain()
    backup = next(node for node, replica in link.replicas.items() if replica.state.status is Status.RECOVERING)
    assert old.op == 2
    link.lose = lambda source, to, message: False
    link.tick(30)
    assert link.of(backup, "recover")[-1].op == 4
    assert link[backup].state.status is Status.NORMAL
    assert link.judge(tmp_path).verdict == "conforms"


def test_the_audit_rejects_a_head_from_an_old_start_view(tmp_path: Path) -> None:
    link, _ = uncertain("recover.head_from_old_start_view")
    assert all(replica.state.status is Status.NORMAL for replica in link.replicas.values())
    verdict = link.judge(tmp_path)
    assert verdict.verdict == "violates"
    assert verdict.violations[0].action == "recover_log"


def test_a_cluster_of_one_stops_with_a_message() -> None:
    link = Rotten(1)
    link.tick(300)
    link.ask(0)
    link.ask(0)
    link.crash(0)
    link.spoil(0, 1)
    with pytest.raises(BootRefusedError, match="nobody to repair from"):
        link.boot(0)
