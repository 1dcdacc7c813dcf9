"""What the simulator's nemesis may do to disks, and the summary of what runs met."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.refinement.traces import load
from viewproof.impl.interface.durable import CLIENTS_PAPER, superblock_formatted
from viewproof.impl.interface.messages import Prepare, make_header
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile, profile_draw, storage_profile_draw
from viewproof.impl.sim.ring_storage import RingStorage
from viewproof.impl.sim.rot import Rot
from viewproof.impl.sim.run import simulate
from viewproof.impl.sim.summary import SECTIONS, add, main, summarise, summary_lines
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

PROFILE = SimProfile(ring=True, rot=1.0, checkpoint_interval=20, pipeline_max=4, journal_slots=24)


def disks(count: int, ops: list[int]) -> list[RingStorage]:
    """Ring journals; replica i has the log up to `ops[i]`."""
    storages = [
        RingStorage(superblock_formatted(1, node, count, None, CLIENTS_PAPER), PROFILE, Random(0), defaultdict(int))
        for node in range(count)
    ]
    parent, log = "", []
    for op in range(1, max(ops) + 1):
        header = make_header(parent=parent, view=0, op=op, client=1, request=op, commit=op - 1, body=b"%d" % op)
        log.append(Prepare(header, b"%d" % op))
        parent = header.checksum
    for storage, op in zip(storages, ops, strict=True):
        storage.journal.append(log[:op])
    return storages


@pytest.mark.parametrize("seed", range(6))
def test_what_only_one_of_two_replicas_had_can_be_nacked_however_often_it_is_struck(seed: int) -> None:
    storages = disks(2, [6, 4])
    rot = Rot(storages, 0, 2, Random(seed), set())
    lost: set[int] = set()
    for _ in range(30):
        rot.strike(0)
        damage = storages[0].recover().damage
        if damage is None:
            continue
        assert damage.op_max == damage.head_op == 6, "the end of the log is known"
        held = {prepare.header.op for prepare in damage.held}
        lost |= set(range(1, 7)) - held
        assert {5, 6} - held <= {header.op for header in damage.known}, "headers of what must be nacked"
    assert lost


def test_a_replica_that_was_left_behind_cannot_be_spared_twice() -> None:
    """It lacks a prepare that the others have drained; with a second one in need of a later view nobody could lead."""
    storages = disks(3, [4, 4, 4])
    rot = Rot(storages, 1, 2, Random(1), set())
    file, geometry = storages[0].file, storages[0].geometry
    for content in (file.durable, file.content):
        content[geometry.prepare_at(3) + 40] ^= 1
    assert rot.stricken == set(), "the others have it"
    rot.interval = 4
    assert rot.stricken == {0}, "they may drain it before it comes back"
    assert not rot.may_lose(1, None)
    assert rot.may_lose(0, None)


def test_a_replica_with_whole_cells_and_an_uncertain_head_still_needs_the_others() -> None:
    """Prepares of other logs, which were never installed, were written to both cells of the slot of the lost one."""
    (storage,) = disks(1, [4])
    storage.superblock = replace(storage.superblock, replica_count=3)
    file, geometry = storage.file, storage.geometry
    lost = [cell for cell in geometry.cells_of(4) if storage.journal._op(cell) == 4]
    for content in (file.durable, file.content):
        for cell in lost:
            content[geometry.prepare_at(cell) + 40] ^= 1
            content[geometry.header_at(cell) + 40] ^= 1
    assert storage.recover().damage is not None
    assert storage.is_damaged
    for view in (1, 2):
        other = make_header(parent="", view=view, op=4, client=1, request=9, commit=3, body=b"x")
        storage.journal.append([Prepare(other, b"x")], repair=True)
    assert not storage.is_damaged
    assert storage.needs_others


def test_a_replica_that_needs_the_others_is_not_left_with_too_few_of_them() -> None:
    assert simulate(21_173, requests=40).ok


def test_a_third_of_the_seeds_has_rotten_disks_unless_told_otherwise() -> None:
    drawn = [storage_profile_draw(profile_draw(Random(seed)), Random(seed)) for seed in range(200)]
    assert 40 < sum(profile.ring for profile in drawn) < 100
    without = [storage_profile_draw(profile_draw(Random(seed)), Random(seed), rot=False) for seed in range(200)]
    assert not any(profile.ring for profile in without)
    assert all(a == b for a, b in zip(drawn, without, strict=True) if not a.ring)


def test_the_summary_counts_what_runs_met(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = simulate(1, profile=NAMED_PROFILES["rot"], requests=60)
    once = summarise([result.statistics])
    assert once["decision table of the ring"]["equal and valid"] == result.statistics["recovered: equal and valid"] > 0
    twice = add([once, once])
    assert twice["faults"]["crashes"] == 2 * result.statistics["crashes"] > 0
    assert {name for counts in twice.values() for name in counts} >= set(SECTIONS["faults"])
    assert len(summary_lines(once, 10)) == 1
    never = next(name for name, count in once["faults"].items() if count == 0)
    assert f"{never} 0;" in summary_lines(once, 1_000)[-1]
    for name in "ab":
        (tmp_path / name).write_text(json.dumps({"summary": once, "runs": [{"ok": True}]}))
    assert main([str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "2 runs, 0 failed" in capsys.readouterr().out


class Aims(Random):
    """Draws that every write goes astray, to cells as given."""

    def __init__(self, targets: list[int]) -> None:
        super().__init__(0)
        self.targets = targets

    def random(self) -> float:
        return 0.0

    def randrange(self, *bounds: int) -> int:
        return self.targets.pop(0)


def test_a_slot_whose_prepare_lies_under_a_stray_one_keeps_its_header() -> None:
    (storage,) = disks(1, [4])
    storage.profile = replace(PROFILE, misdirected_write=0.5)
    storage.may_lose = lambda cell: True
    storage.random = Aims([1, 7, 8])
    prepare, header = storage.geometry.prepare_at, storage.geometry.header_at
    assert storage._aim(prepare(2), b"x") == prepare(1), "it lands on the prepare in cell 1"
    assert storage._aim(header(1), b"x") == header(1), "so the header of cell 1 arrives"
    assert storage._aim(header(3), b"x") == header(8)
    assert storage.unheadered == {3}
    storage.recover()
    assert storage.unheadered == set(), "what both rings name is headed again"


def conforms(seed: int, profile: str, out: Path) -> None:
    """A run that a campaign found, of a named profile or that of its seed."""
    result = simulate(seed, requests=60, profile=NAMED_PROFILES[profile] if profile else None, out=out)
    assert result.ok, result.failures
    assert result.trace is not None
    assert check_run(result.run, load(result.trace), AuditOptions()).verdict == "conforms"


def test_a_prepare_fetched_beside_a_rotten_cell_is_of_the_log_after_the_next_crash_too(tmp_path: Path) -> None:
    """The cell was erased at the boot in between, and with it what said that the log goes on there."""
    conforms(40_001_836, "rot", tmp_path)


def test_a_loss_that_a_log_with_later_ops_hides_is_not_forgotten(tmp_path: Path) -> None:
    """Its record was cut at the next boot, as the ring had no room for its op yet, and with it the mark of the loss."""
    conforms(64_007_755, "rot", tmp_path)


def test_what_nacks_discarded_is_seen_after_them(tmp_path: Path) -> None:
    """The log ended where the superblock says already, and the replica died before it was back."""
    conforms(64_038_471, "", tmp_path)


def test_a_log_that_was_installed_and_not_seen_reaches_what_the_replica_had(tmp_path: Path) -> None:
    """It was of the replica's own view, above the snapshot that the replica shows as it comes back in the next one."""
    conforms(67_000_004, "late", tmp_path)


def test_a_prepare_that_came_with_another_log_stays_in_the_own_one() -> None:
    """The own copy was lost; what came for a log that was never named took its place, and the boot erased it."""
    result = simulate(64_031_079, requests=60)
    assert result.ok, result.failures


def test_a_rotten_cell_that_is_passed_over_leaves_no_later_end_uncertain() -> None:
    """It stayed where nothing was found by it, and its slot's next op began to be uncertain while it was not there."""
    result = simulate(50_000_706, requests=60)
    assert result.ok, result.failures


def test_what_a_damaged_replica_holds_beside_its_log_is_no_copy() -> None:
    """It erased that once its log was mended, and the last copy rotted meanwhile."""
    result = simulate(64_059_416, requests=60, profile=NAMED_PROFILES["late"])
    assert result.ok, result.failures


@pytest.mark.parametrize("seed", [62_011_089, 62_012_223])
def test_what_another_holds_beside_its_log_is_no_copy(seed: int) -> None:
    """One of two had prepares of a log that it never took, and erased them; the other had lost their headers."""
    result = simulate(seed, replicas=2, requests=60)
    assert result.ok, result.failures
