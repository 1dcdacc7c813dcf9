"""Random appends, superblock writes, full disks, power losses: recovery never loses what was durable, nor invents."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from viewproof.impl.interface.durable import SuperblockState
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, make_header
from viewproof.impl.storage.data_file import DataFile, format_data_file, open_data_file
from viewproof.impl.storage.file import MemoryFile, MemoryFileSystem, StorageError

SECTOR = 512


class PowerLossError(BaseException):
    """Raised inside a write or sync; not an Exception, so that no storage code can take it for an I/O error."""


class PoweredFile(MemoryFile):
    """Counts writes and syncs down to the moment at which the power goes, before they take effect."""

    fuse: list[int]

    def write_at(self, offset: int, data: bytes) -> None:
        self._burn()
        super().write_at(offset, data)
        self._burn()

    def sync(self) -> None:
        self._burn()
        super().sync()

    def _burn(self) -> None:
        self.fuse[0] -= 1
        if self.fuse[0] == 0:
            raise PowerLossError


class PoweredFileSystem(MemoryFileSystem):
    """Memory files on one fuse."""

    def __init__(self) -> None:
        super().__init__()
        self.fuse = [-1]

    def make_file(self, path: str) -> MemoryFile:
        file = PoweredFile(path)
        file.fuse = self.fuse
        return file


class Model:
    """What a correct storage holds: durable for certain, and what the step that was interrupted may have added."""

    def __init__(self, superblock: SuperblockState) -> None:
        self.superblock = superblock
        self.log: list[Prepare] = []
        self.attempt_superblock: SuperblockState | None = None
        self.attempt_log: list[Prepare] = []

    @property
    def head(self) -> str:
        return self.log[-1].header.checksum if self.log else CHECKSUM_NONE

    def extend(self, source: random.Random, count: int, request: int) -> list[Prepare]:
        entries: list[Prepare] = []
        parent = self.head
        for index in range(count):
            body = source.randbytes(source.randint(0, 200))
            op = len(self.log) + index + 1
            header = make_header(
                parent=parent, view=self.superblock.log_view, op=op, client=1, request=request, commit=0, body=body
            )
            entries.append(Prepare(header, body))
            parent = header.checksum
        return entries


def step(data: DataFile, model: Model, source: random.Random, number: int) -> None:
    """One durable step: an append to the log of log_view, or a superblock with the head of the log in a later view."""
    model.attempt_superblock, model.attempt_log = None, []
    if source.random() < 0.7:
        model.attempt_log = model.extend(source, source.randint(1, 4), number)
        data.append(model.attempt_log)
        model.log += model.attempt_log
        model.attempt_log = []
        return
    later = replace(
        model.superblock,
        view=model.superblock.view + 1,
        log_view=model.superblock.view + 1,
        head_op=len(model.log),
        head_checksum=model.head,
        sequence=data.superblock.sequence + 1,
    )
    model.attempt_superblock = later
    data.write_superblock(later)
    model.superblock, model.attempt_superblock = later, None


def recover(files: MemoryFileSystem, model: Model) -> DataFile:
    """Open, compare with the model, and let the model follow what survived of the interrupted step."""
    data = open_data_file("d", 7, 1, 3, file_system=files)
    state = data.durable_state()
    found = replace(state.superblock, sequence=0)
    possible = [model.superblock] + ([model.attempt_superblock] if model.attempt_superblock else [])
    assert found in [replace(one, sequence=0) for one in possible]
    assert list(state.log[: len(model.log)]) == model.log
    extra = list(state.log[len(model.log) :])
    assert extra == model.attempt_log[: len(extra)]
    model.superblock, model.log = state.superblock, list(state.log)
    return data


def scatter(file: MemoryFile) -> None:
    """A disk may write the sectors of one write in any order, so each of them is a pending write of its own."""
    parts: list[tuple[int, bytes | None]] = []
    for offset, data in file.pending:
        if data is None:
            parts.append((offset, None))
            continue
        ends = [*range(offset // SECTOR * SECTOR + SECTOR, offset + len(data), SECTOR), offset + len(data)]
        for begin, end in zip([offset, *ends], ends, strict=False):
            parts.append((begin, data[begin - offset : end - offset]))
    file.pending = parts


@pytest.mark.parametrize("seed", range(60))
def test_recovery_never_loses_what_was_durable(seed: int) -> None:
    source = random.Random(seed)
    files = PoweredFileSystem()
    model = Model(format_data_file("d", 7, 1, 3, file_system=files))
    data = recover(files, model)
    crashes = 0
    for number in range(1, 80):
        if source.random() < 0.3:
            files.fuse[0] = source.randint(1, 10)
        journal = files.files["d/journal"]
        if source.random() < 0.1:
            journal.write_budget = source.randint(0, 300)
        try:
            step(data, model, source, number)
        except StorageError:
            model.attempt_log = []  # a full disk: the group was cut off again
        except PowerLossError:
            crashes += 1
            files.fuse[0] = -1
            journal.write_budget = None
            if seed % 2:
                scatter(journal)
                files.crash(lambda length: source.choice([0, length]))
            else:
                files.crash(lambda length: source.choice([0, length, source.randint(0, length)]))
            data = recover(files, model)
        journal.write_budget = None
        files.fuse[0] = -1
    assert crashes > 0
    files.crash()
    recover(files, model)
