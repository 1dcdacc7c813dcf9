"""Power cuts inside `vsr recover --from-cluster`: the directory then does not start as another replica's, nor as a new
one's; the command given again brings the replica back, and nothing that was answered is lost.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.impl.damage import DamagedLink
from tests.impl.power import SURVIVAL, PowerLossError
from tests.impl.test_power_cuts import judge
from viewproof.impl.net.recovery import recovery_superblock
from viewproof.impl.storage.data_file import open_data_file
from viewproof.impl.storage.file import StorageError
from viewproof.impl.storage.recover import diagnose, reset_for_recovery

VICTIM = 2


def lost(ring: bool) -> DamagedLink:
    """Three replicas with a checkpoint, of which the victim is stopped and cannot read its superblock any more."""
    link = DamagedLink(VICTIM, ring)
    for _ in range(8):
        link.ask(1)
    link.change_view(1)
    link.settle()
    link.stop(VICTIM)
    for copy in range(4):
        link.file("superblock").content[copy * 4096] ^= 1
    link.file("superblock").durable = bytearray(link.file("superblock").content)
    link.file_storages[VICTIM].files._locked.clear()
    return link


def recover(link: DamagedLink) -> None:
    """What the command does to the directory."""
    files = link.file_storages[VICTIM].files
    files._locked.clear()
    found = diagnose("d", files)
    assert found.recoverable, found.findings
    statuses = [None if node == VICTIM else link._status(node) for node in range(3)]
    reset_for_recovery(found, recovery_superblock(statuses, VICTIM, 1, 0, found.copies), files)


def steps_of(ring: bool) -> int:
    """The number of I/Os of the command."""
    link = lost(ring)
    fuse = link.file_storages[VICTIM].files.fuse
    before = fuse.count
    recover(link)
    return fuse.count - before


def cut(link: DamagedLink, point: int, kind: str) -> str:
    """Cuts the power at an I/O of the command; what a start finds then."""
    files = link.file_storages[VICTIM].files
    files.fuse.at = files.fuse.count + point
    with pytest.raises(PowerLossError):
        recover(link)
    files.fuse.at = 0
    files.crash(SURVIVAL[kind])
    try:
        data = open_data_file("d", file_system=files)
        superblock = data.durable_state().superblock
        data.close()
    except StorageError:
        recover(link)
        return "refused"
    assert superblock.recovery, "a directory that starts says that its promises were lost"
    assert superblock.replica == VICTIM
    assert superblock.view >= max(link.replicas[node].state.view for node in (0, 1))
    return "recovering"


@pytest.mark.parametrize("ring", [False, True], ids=["append-only", "ring"])
@pytest.mark.parametrize("kind", SURVIVAL)
def test_the_command_can_be_given_again_after_any_power_cut(ring: bool, kind: str, tmp_path: Path) -> None:
    outcomes: dict[int, str] = {}
    for point in range(1, steps_of(ring) + 1):
        link = lost(ring)
        outcomes[point] = cut(link, point, kind)
        link.start(VICTIM)
        link.settle()
        link._need_victim()
        judge(link, tmp_path / str(point))
    assert len(outcomes) > 8
    assert outcomes[1] == "refused"
    if kind != "half":
        assert outcomes[max(outcomes)] == {"everything": "recovering", "nothing": "refused"}[kind]
