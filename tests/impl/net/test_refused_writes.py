"""A server whose disk refuses a superblock write makes it again, and says so meanwhile."""

from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path

import pytest

from viewproof.impl.net.cluster import free_ports
from viewproof.impl.net.connection import fetch_status
from viewproof.impl.net.framing import Status
from viewproof.impl.net.server import serve
from viewproof.impl.net.server_config import ServerConfig
from viewproof.impl.storage.data_file import format_data_file
from viewproof.impl.storage.file import RealFile
from viewproof.impl.storage.superblock import COPY_SIZE

ADDRESS = "127.0.0.1"


def test_a_superblock_write_that_the_disk_refuses_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    format_data_file(tmp_path / "data", 1, 0, 1)
    address = (ADDRESS, free_ports(1)[0])
    config = ServerConfig(data=tmp_path / "data", replica=0, addresses=(address,))
    right = RealFile.write_at
    refuses = True

    def write_at(file: RealFile, offset: int, data: bytes) -> None:
        if refuses and file.path.endswith("superblock") and offset == 2 * COPY_SIZE and data != before:
            right(file, offset, data[:100])
            raise OSError(errno.EIO, "Input/output error")
        right(file, offset, data)

    before = (tmp_path / "data" / "superblock").read_bytes()[2 * COPY_SIZE : 3 * COPY_SIZE]
    monkeypatch.setattr(RealFile, "write_at", write_at)

    async def status_when(shows: str) -> Status:
        deadline, found = time.monotonic() + 30, None
        while time.monotonic() < deadline:
            found = await fetch_status(address, 1, 1.0)
            if found is not None and (bool(shows), True) == (bool(found.problems), shows in "".join(found.problems)):
                return found
            await asyncio.sleep(0.02)
        raise AssertionError(f"never {shows!r}: {found}")

    async def run() -> None:
        nonlocal refuses
        stop = asyncio.Event()
        server = asyncio.create_task(serve(config, stop))
        refused = await status_when("cannot write the superblock: Input/output error")
        assert refused.problems[0].endswith("it is tried again later")
        refuses = False
        await status_when("")
        stop.set()
        await server

    asyncio.run(run())
    superblock = (tmp_path / "data" / "superblock").read_bytes()
    assert superblock[2 * COPY_SIZE : 3 * COPY_SIZE] != before
    assert "it is tried again later" in caplog.text
