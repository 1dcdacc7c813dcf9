"""A journal of 1 GB is opened and drained in bounded memory (what is above the checkpoint is the log, in memory)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from viewproof.impl.interface.durable import superblock_next
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, make_header
from viewproof.impl.interface.ranges import BODY_SIZE_MAX
from viewproof.impl.storage.data_file import format_data_file, open_data_file

OPS = 1_000
GROUP = 20
MEMORY_MAX_MIB = 200

RUN = """
import sys
from viewproof.impl.storage.file import RealFileSystem
from viewproof.impl.storage.journal import Journal
files = RealFileSystem()
journal = Journal.open(files.open(sys.argv[1] + "/journal"), 1, 0)
kept = len(journal.records())
journal.drain(files, int(sys.argv[2]))
print(kept, len(journal.records()), journal.size)
print(next(int(line.split()[1]) >> 10 for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def make(directory: Path) -> None:
    """A directory with a journal of 1 GB."""
    format_data_file(directory, 1, 0, 3)
    data = open_data_file(directory)
    data.write_superblock(superblock_next(data.superblock, view=0, log_view=0, head_op=0, head_checksum="", clock=0))
    parent = CHECKSUM_NONE
    group: list[Prepare] = []
    for op in range(1, OPS + 1):
        body = op.to_bytes(8, "big") * (BODY_SIZE_MAX // 8)
        header = make_header(parent=parent, view=0, op=op, client=1, request=op, commit=op - 1, body=body)
        group.append(Prepare(header, body))
        parent = header.checksum
        if len(group) == GROUP:
            data.append(group)
            group = []
    data.close()


@pytest.mark.long
def test_a_journal_of_1_gb_is_opened_and_drained_in_bounded_memory(tmp_path: Path) -> None:
    make(tmp_path)
    run = subprocess.run(
        [sys.executable, "-c", RUN, str(tmp_path), "10"], capture_output=True, text=True, timeout=300, check=True
    )
    counts, mebibytes = run.stdout.splitlines()
    assert counts.split()[:2] == [str(OPS), str(OPS - 10)]
    assert int(counts.split()[2]) > (OPS - 10) * BODY_SIZE_MAX
    assert int(mebibytes) < MEMORY_MAX_MIB
    data = open_data_file(tmp_path)
    assert data.journal_recovery.records == OPS - 10
    data.close()
