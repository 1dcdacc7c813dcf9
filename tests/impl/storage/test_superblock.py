"""The superblock: every crash leaves an old or a new version, every broken copy is survived, nothing is 'fresh'."""

from __future__ import annotations

import errno
import os
import random
from dataclasses import fields, replace
from functools import partial
from itertools import count

import pytest

from viewproof.impl.interface.durable import CLIENTS_SESSIONS, Quorums, SuperblockState, superblock_formatted
from viewproof.impl.storage.file import MemoryFile
from viewproof.impl.storage.superblock import (
    COPIES,
    COPY_SIZE,
    Superblock,
    SuperblockError,
    SuperblockRefusedError,
)

FIRST = superblock_formatted(cluster=7, replica=1, replica_count=3)
HEAD = "ab" * 16


def formatted() -> tuple[MemoryFile, Superblock]:
    file = MemoryFile("superblock")
    block = Superblock.format(file, FIRST)
    return file, block


def write(block: Superblock, **columns: object) -> SuperblockState:
    block.write(replace(block.state, sequence=block.state.sequence + 1, **columns))  # type: ignore[arg-type]
    return block.state


def content(state: SuperblockState) -> SuperblockState:
    return replace(state, sequence=0)


def test_what_is_written_is_read_back() -> None:
    file, block = formatted()
    written = write(block, view=5, log_view=4, head_op=9, head_checksum=HEAD)
    assert Superblock.open(file).state == written
    assert written.sequence == 2


def test_every_field_is_stored() -> None:
    state = SuperblockState(
        cluster=1 << 63, replica=3, replica_count=5, quorums=Quorums(replication=2, view_change=4), view=70,
        log_view=60, head_op=50, head_checksum=HEAD, sequence=40, clock=30, clients=CLIENTS_SESSIONS,
        checkpoint=20, snapshot=HEAD, group=2, recovery=10, recoveries=11,
    )  # fmt: skip
    defaults = SuperblockState(cluster=0, replica=0, replica_count=0, quorums=Quorums(0, 0))
    assert all(getattr(state, field.name) != getattr(defaults, field.name) for field in fields(SuperblockState))
    file = MemoryFile("superblock")
    Superblock.format(file, state)
    assert Superblock.open(file).state == state


def test_format_refuses_a_file_with_content() -> None:
    with pytest.raises(SuperblockError, match="refusing to overwrite"):
        Superblock.format(MemoryFile("superblock", b"x"), FIRST)


class RefusingFile(MemoryFile):
    """Its n-th write fails after some bytes, and with `for_good` all that follow; power is lost at step `crash_at`."""

    def __init__(self, durable: bytes, refused: int, *, for_good: bool = False, crash_at: int = 0) -> None:
        super().__init__("superblock", durable)
        self.refused, self.for_good, self.crash_at = refused, for_good, crash_at
        self.writes = self.steps = 0

    def write_at(self, offset: int, data: bytes) -> None:
        self._step()
        self.writes += 1
        if self.writes == self.refused or (self.for_good and self.writes > self.refused):
            super().write_at(offset, data[: COPY_SIZE // 50])
            raise OSError(errno.EIO, "Input/output error")
        super().write_at(offset, data)

    def sync(self) -> None:
        self._step()
        super().sync()

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise PowerLossError


@pytest.mark.parametrize("refused", range(1, COPIES + 1))
def test_a_write_that_fails_leaves_the_version_before_and_is_made_again(refused: int) -> None:
    file = RefusingFile(bytes(formatted()[0].durable), refused)
    block = Superblock.open(file)
    with pytest.raises(SuperblockRefusedError, match="Input/output error; the version before was written again"):
        write(block, view=4)
    assert block.state == FIRST
    assert Superblock.open(MemoryFile("superblock", bytes(file.durable))).state == FIRST
    assert write(block, view=4) == Superblock.open(MemoryFile("superblock", bytes(file.durable))).state


@pytest.mark.parametrize("refused", range(1, COPIES + 1))
def test_power_may_be_lost_while_the_version_before_is_written_again(refused: int) -> None:
    for crash_at in count(2):  # the first step opens it
        file = RefusingFile(bytes(formatted()[0].durable), refused, crash_at=crash_at)
        block = Superblock.open(file)
        try:
            write(block, view=4)
        except PowerLossError:
            for seed in range(20):
                after = MemoryFile("superblock", bytes(file.durable))
                after.content, after.pending = bytearray(file.content), list(file.pending)
                after.crash(partial(random.Random(seed).randint, 0))
                assert Superblock.open(after).state.view in (0, 4)
        except SuperblockRefusedError:
            return


@pytest.mark.parametrize("refused", range(1, COPIES + 1))
def test_without_the_version_before_the_superblock_must_be_opened_again(refused: int) -> None:
    block = Superblock.open(RefusingFile(bytes(formatted()[0].durable), refused, for_good=True))
    with pytest.raises(SuperblockError, match="cannot write the superblock") as caught:
        write(block, view=4)
    assert not isinstance(caught.value, SuperblockRefusedError)
    with pytest.raises(SuperblockError, match="open it again"):
        write(block, view=4)


class PowerLossError(Exception):
    """Raised by CrashingFile at the chosen point."""


class CrashingFile(MemoryFile):
    """Loses power at its n-th write or sync, before it takes effect."""

    def __init__(self, durable: bytes, crash_at: int) -> None:
        super().__init__("superblock", durable)
        self.steps = 0
        self.crash_at = crash_at

    def _step(self) -> None:
        self.steps += 1
        if self.steps == self.crash_at:
            raise PowerLossError

    def write_at(self, offset: int, data: bytes) -> None:
        self._step()
        super().write_at(offset, data)

    def sync(self) -> None:
        self._step()
        super().sync()


# The header ends at byte 100; the bytes after it are zeros in every version.
CUTS = [*range(110), COPY_SIZE - 1, COPY_SIZE]


@pytest.mark.parametrize("crash_at", range(1, 8))
def test_a_crash_at_any_write_point_and_byte_leaves_the_old_or_the_new_version(crash_at: int) -> None:
    original, block = formatted()
    old = write(block, view=1, log_view=1, head_op=3, head_checksum=HEAD)
    new = replace(old, sequence=3, view=2, log_view=2, head_op=8, head_checksum="cd" * 16)
    seen = set()
    random_source = random.Random(crash_at)
    cuts = [(a, b) for a in CUTS for b in (0, 50, a, COPY_SIZE)]
    cuts += [(random_source.choice(CUTS), random_source.choice(CUTS)) for _ in range(100)]
    for first_cut, second_cut in cuts:
        file = CrashingFile(bytes(original.durable), 0)
        victim = Superblock.open(file)
        file.steps, file.crash_at = 0, crash_at
        try:
            victim.write(new)
            finished = True
        except PowerLossError:
            finished = False
        file.crash_at = 0
        kept = iter([first_cut, second_cut])
        file.crash(lambda length, kept=kept: next(kept))  # type: ignore[misc]
        survivor = Superblock.open(file)
        assert content(survivor.state) in (content(old), content(new))
        if finished or crash_at > 3:
            assert content(survivor.state) == content(new)
        seen.add(survivor.state.view)
        # A second crash directly after the boot shows the same version: the repair was durable.
        file.crash()
        assert content(Superblock.open(file).state) == content(survivor.state)
    assert seen <= {1, 2}


def test_any_flipped_byte_of_a_copy_is_survived_and_repaired() -> None:
    original, block = formatted()
    state = write(block, view=3, log_view=3, head_op=1, head_checksum=HEAD)
    for copy in range(COPIES):
        for position in [*range(110), COPY_SIZE - 1]:
            damaged = bytearray(original.durable)
            damaged[copy * COPY_SIZE + position] ^= 0x41
            file = MemoryFile("superblock", bytes(damaged))
            opened = Superblock.open(file)
            assert content(opened.state) == content(state)
            assert len(opened.problems) == 1
            assert f"copy {copy}" in opened.problems[0]
            assert Superblock.open(file).problems == ()


def test_two_broken_copies_are_survived_and_three_refused() -> None:
    original, _ = formatted()
    for broken, fits in (((0, 1), True), ((1, 2), True), ((2, 3), True), ((0, 1, 2), False), ((1, 2, 3), False)):
        damaged = bytearray(original.durable)
        for copy in broken:
            damaged[copy * COPY_SIZE + 20] ^= 1
        if fits:
            Superblock.open(MemoryFile("superblock", bytes(damaged)))
        else:
            with pytest.raises(SuperblockError, match="will not start"):
                Superblock.open(MemoryFile("superblock", bytes(damaged)))


class UnreadableFile(MemoryFile):
    """Some copies cannot be read."""

    bad: frozenset[int] = frozenset()
    number = errno.EIO

    def read_at(self, offset: int, length: int) -> bytes:
        if offset // COPY_SIZE in self.bad:
            raise OSError(self.number, os.strerror(self.number))
        return super().read_at(offset, length)


def test_two_copies_that_the_medium_refuses_are_survived_and_three_refused() -> None:
    file = UnreadableFile("superblock")
    state = write(Superblock.format(file, FIRST), view=3)
    for bad in ({0}, {3}, {1, 2}):
        file.bad = frozenset(bad)
        block = Superblock.open(file)
        assert (block.state, len(block.problems)) == (state, len(bad))
        assert all("Input/output error" in problem for problem in block.problems)
    file.bad = frozenset({0, 1, 3})
    with pytest.raises(SuperblockError, match="Input/output error"):
        Superblock.open(file)
    file.bad, file.number = frozenset({0}), errno.EMFILE
    with pytest.raises(SuperblockError, match="cannot read the superblock: Too many open files"):
        Superblock.open(file)


def test_an_empty_or_garbled_superblock_never_counts_as_fresh() -> None:
    for damaged in (b"", b"\0" * COPY_SIZE * COPIES, b"garbage" * 999):
        with pytest.raises(SuperblockError, match="no version of the superblock"):
            Superblock.open(MemoryFile("superblock", damaged))


def test_a_copy_in_the_wrong_place_does_not_count() -> None:
    original, _ = formatted()
    copy = bytes(original.durable[:COPY_SIZE])
    with pytest.raises(SuperblockError, match="misdirected"):
        Superblock.open(MemoryFile("superblock", copy * COPIES))


def test_views_never_fall() -> None:
    _, block = formatted()
    write(block, view=5, log_view=5)
    for view, log_view in ((4, 4), (5, 4), (6, 7)):
        with pytest.raises(SuperblockError, match="neither may fall"):
            write(block, view=view, log_view=log_view)


def test_a_sequence_must_rise_and_faulty_runs_may_lower_a_view() -> None:
    file, block = formatted()
    with pytest.raises(SuperblockError, match="does not rise"):
        block.write(FIRST)
    write(block, view=5, log_view=5)
    faulty = Superblock.open(file, check_views=False)
    write(faulty, view=1, log_view=0)
    assert Superblock.open(file).state.view == 1


def test_a_failed_write_is_reported_and_ends_the_use_of_the_object() -> None:
    for fail in ("write", "sync"):
        file, block = formatted()
        if fail == "write":
            file.write_budget = 100
        else:
            file.sync_errno = errno.EIO
        with pytest.raises(SuperblockError, match=r"cannot (write|sync) the superblock"):
            write(block, view=1)
        file.write_budget, file.sync_errno = None, None
        with pytest.raises(SuperblockError, match="open it again"):
            write(block, view=1)
        assert Superblock.open(file).state.view in (0, 1)


def test_a_version_that_lost_cannot_come_back() -> None:
    file, block = formatted()
    old = block.state
    lost = replace(old, view=1, sequence=2)
    newer = MemoryFile("superblock", bytes(file.durable))
    Superblock.open(newer).write(lost)
    # Only copy 0 of the new version survived.
    mixed = MemoryFile("superblock", bytes(newer.durable[:COPY_SIZE] + file.durable[COPY_SIZE:]))
    opened = Superblock.open(mixed)
    assert opened.state.view == 0
    assert opened.state.sequence > 2
    for broken in range(1, COPIES):
        damaged = bytearray(mixed.durable)
        damaged[broken * COPY_SIZE] ^= 1
        assert Superblock.open(MemoryFile("superblock", bytes(damaged))).state.view == 0


def test_a_crash_during_the_repair_of_two_broken_copies_is_survived() -> None:
    original, _ = formatted()
    for broken in ((0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)):
        damaged = bytearray(original.durable)
        for copy in broken:
            damaged[copy * COPY_SIZE + 20] ^= 1
        for crash_at in range(1, 4):
            file = CrashingFile(bytes(damaged), crash_at)
            with pytest.raises(PowerLossError):
                Superblock.open(file)
            file.crash_at = 0
            file.crash(lambda length: length // 100)
            assert content(Superblock.open(file).state) == content(FIRST)
