"""`vsr recover` on a real cluster: each thing a replica refuses to start with, and the way back under its identity."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.impl.net.test_checkpoints import OPTIONS, put, wait_level
from tests.refinement.traces import load
from viewproof.impl.net.client import Client
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.storage.inspect import inspect_data_file
from viewproof.impl.storage.superblock import COPY_SIZE
from viewproof.refinement.checker import check_run
from viewproof.refinement.cli.root import cli
from viewproof.refinement.verdict import AuditOptions

VICTIM = 2


def vsr(*words: object) -> tuple[int, str]:
    """Exit code and output of a command."""
    result = CliRunner().invoke(cli, [str(word) for word in words])
    return result.exit_code, result.output


def spoil_superblock(data: Path) -> None:
    path = data / "superblock"
    path.write_bytes(b"\xff" * (3 * COPY_SIZE) + path.read_bytes()[3 * COPY_SIZE :])


def spoil_journal_header(data: Path) -> None:
    path = data / "journal"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])


def spoil(path: Path, offset: int) -> None:
    """Flips a bit."""
    content = bytearray(path.read_bytes())
    content[offset] ^= 1
    path.write_bytes(content)


def lose_journal(data: Path) -> None:
    (data / "journal").unlink()


def lose_all(data: Path) -> None:
    shutil.rmtree(data)
    data.mkdir()


DAMAGE: dict[str, tuple[Callable[[Path], None], str, tuple[str, ...]]] = {
    "superblock": (spoil_superblock, "superblock", ()),
    "journal header": (spoil_journal_header, "journal", ()),
    "journal missing": (lose_journal, "journal", ()),
    "disk": (lose_all, "superblock", ("--all-lost", "--replica", str(VICTIM), "--cluster", "1")),
}


KINDS = [kind if kind == "superblock" else pytest.param(kind, marks=pytest.mark.long) for kind in DAMAGE]


@pytest.mark.parametrize("kind", KINDS)
def test_back_under_the_old_identity(kind: str, tmp_path: Path) -> None:
    spoil, file, options = DAMAGE[kind]
    with Cluster(tmp_path, server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        put(cluster, 60)
        wait_level(cluster)
        cluster.kill(VICTIM)
        data, report = cluster.data_path(VICTIM), tmp_path / "report.json"
        spoil(data)
        code, output = vsr("recover", data, "--json", report)
        found = json.loads(report.read_text())
        assert code == 1, output
        assert found["findings"][0]["file"] == str(data / file)
        assert "--from-cluster" in found["findings"][0]["action"]
        cluster.start(VICTIM)
        with pytest.raises(Exception, match=file):
            asyncio.run(cluster.wait_answering(VICTIM))
        put(cluster, 20)
        code, output = vsr("recover", data, "--from-cluster", cluster.address_list(), "--timeout", 60, *options)
        assert code == 0, output
        assert (data / "before-recovery-1").is_dir()
        assert "being recovered" in vsr("recover", data)[1]
        cluster.start(VICTIM)
        wait_level(cluster)
        cluster.kill(0)
        put(cluster, 30)
        assert asyncio.run(read(cluster, b"key-1")) == b"%1000d" % 29
        cluster.start(0)
        wait_level(cluster)
        cluster.stop_all()
        assert vsr("recover", data)[0] == 0
    conforms(cluster)


def conforms(cluster: Cluster) -> None:
    """The audit says so of all traces."""
    verdict = check_run("run", load(cluster.trace_directory), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)


def test_a_damaged_journal_mends_itself(tmp_path: Path) -> None:
    with Cluster(tmp_path, server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        data = cluster.data_path(VICTIM)
        for which in (1, 0):  # the last append, too: that it was acknowledged is not forgotten
            put(cluster, 28)
            wait_level(cluster)
            cluster.kill(VICTIM)
            records = inspect_data_file(data).records
            assert records, "all is drained"
            spoil(data / "journal", records[-1 if which else len(records) // 2].offset)
            assert "what to do: start the replica: it fetches this" in vsr("recover", data)[1]
            cluster.start(VICTIM)
            wait_level(cluster)
        assert "fetched from the other replicas" in cluster.log_path(VICTIM).read_text()
        cluster.stop_all()
        assert vsr("recover", data)[0] == 0
        assert "nothing is wrong" in vsr("recover", data)[1]
    conforms(cluster)


async def read(cluster: Cluster, key: bytes) -> bytes | None:
    client = Client(cluster.addresses, cluster.cluster)
    value = await client.get(key)
    await client.close()
    return value


def test_a_replica_whose_files_are_whole_is_put_back_for_an_entry_that_fails(tmp_path: Path) -> None:
    with Cluster(tmp_path, server_options=OPTIONS) as cluster:
        cluster.format()
        cluster.start_all()
        asyncio.run(cluster.wait_ready())
        put(cluster, 30)
        wait_level(cluster)
        cluster.kill(VICTIM)
        data = cluster.data_path(VICTIM)
        assert vsr("recover", data, "--entry-fails", 35)[0] == 2
        recover = ("recover", data, "--from-cluster", cluster.address_list(), "--timeout", 60, "--entry-fails", 35)
        code, output = vsr(*recover)
        assert (code, "no other replica has a checkpoint there yet" in output) == (4, True), output
        put(cluster, 30)
        while not all(status is None or status.checkpoint >= 40 for status in asyncio.run(cluster.statuses())):
            put(cluster, 1)
        code, output = vsr(*recover)
        assert (code, "applying the entry at op 35 fails here" in output) == (0, True), output
        cluster.start(VICTIM)
        wait_level(cluster)
        cluster.stop_all()
    verdict = check_run("run", load(cluster.trace_path(0).parent), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
