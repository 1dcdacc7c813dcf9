"""What all others have drained is in their snapshot, and comes as that."""

from __future__ import annotations

import pytest

from tests.impl.link import Link
from tests.impl.test_checkpoint import CONFIG, left_behind, requests
from viewproof.impl.interface.messages import SnapshotChunk
from viewproof.impl.replica import Status
from viewproof.impl.sim.storage import SimStorage


@pytest.mark.parametrize("missed", [1, 2])
def test_who_lacks_what_the_others_have_drained_takes_their_snapshot_though_its_log_connects(missed: int) -> None:
    """Nothing lies above the checkpoint, so the window is the entry there: it connects, and nobody has its body."""
    link = Link(3, config=CONFIG)
    requests(link, 0, 1, 4 - missed)
    link.tick(20)
    link.lose = lambda source, to, message: 2 in (source, to)
    requests(link, 0, 5 - missed, 4)
    link.tick(20)
    assert (link[0].state.checkpoint, link[1].state.checkpoint, link[2].state.op) == (4, 4, 4 - missed)
    link.change_view(1)
    link.crash(2)
    disk = link.storages[2]
    assert isinstance(disk, SimStorage)
    disk.crash()
    link.boot(2)
    link.lose = lambda source, to, message: False
    link.tick(400)
    levels = {(link[node].state.status, link[node].state.commit_min, link[node].state.view) for node in range(3)}
    assert levels == {(Status.NORMAL, 4, link[1].state.view)}


def test_a_snapshot_that_takes_long_is_not_in_vain_when_the_others_drain_the_log_above_it() -> None:
    """The entries above it came first; the others take another checkpoint before the snapshot is all here."""
    link = left_behind()
    link.lose = lambda source, to, message: isinstance(message, SnapshotChunk)
    link.tick(12)
    target = link[2].state.target
    assert target is not None
    assert (target.op, target.snapshot and target.snapshot.op) == (10, 8)
    link.lose = lambda source, to, message: to == 2 and not isinstance(message, SnapshotChunk)
    requests(link, 0, 11, 13)
    assert link[0].state.log.base == link[1].state.log.base == 12
    link.tick(40)
    assert [event.commit_min for event in link.of(2, "on_start_view")][-1] == 8
    assert link[2].state.op == 10
