"""`vsr format`, `start`, `status` and `inspect` through the life of a replica: words, JSON and exit codes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from tests.schemas import validated
from viewproof.impl.net.cluster import free_ports
from viewproof.impl.storage.superblock import COPIES, COPY_SIZE
from viewproof.refinement.cli import cli

PROGRAM = [sys.executable, "-m", "viewproof"]
ROOT = Path(__file__).resolve().parents[2]
GROUPS = ("--groups", "metadata,partition:0/1/2")


def vsr(*words: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)), input=stdin)


def report_of(result: Result, file: Path) -> Any:
    """The JSON written, which has the exit code."""
    assert "Traceback" not in result.output
    report = json.loads(file.read_text())
    assert report["exit_code"] == result.exit_code
    return report


def test_format_says_what_it_made_and_does_not_make_it_twice(tmp_path: Path) -> None:
    words = ("format", tmp_path / "d", "--replica", "1", "--json", tmp_path / "j")
    report = report_of(vsr(*words), tmp_path / "j")
    assert (report["directory"], report["cluster"], report["replica"]) == (str(tmp_path / "d"), 1, 1)
    again = vsr(*words)
    assert again.exit_code == 2
    assert str(tmp_path / "d") in again.stderr


def test_a_life_of_one_replica_with_a_group_of_one_partition(tmp_path: Path) -> None:
    data = tmp_path / "d"
    assert vsr("format", data, "--replica", "0", "--replicas", "1", *GROUPS).exit_code == 0
    address = f"127.0.0.1:{free_ports(1)[0]}"
    asked = ("--addresses", address)
    nobody = report_of(vsr("status", *asked, "--json", tmp_path / "j"), tmp_path / "j")
    assert (nobody["replicas"], nobody["exit_code"]) == ([None], 4)
    words = ["start", str(data), "--replica", "0", *GROUPS, *asked, "--checkpoint-interval", "5", "--json"]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*PROGRAM, *words, str(tmp_path / "s")], cwd=ROOT, stderr=log, stdout=log)
    try:
        wait_until(lambda: vsr("status", *asked).exit_code == 0)
        lines = "".join(f"send 0/1/2 message{number}\n" for number in range(9))
        sent = vsr("repl", "--group", "partition:0/1/2", *asked, stdin=lines)
        assert sent.stdout.splitlines() == [f"offset {number}" for number in range(9)]
        wait_until(lambda: "commit_min 10  commit_max 10  checkpoint 10" in vsr("status", *asked).stdout)
        result = vsr("status", *asked, "--json", tmp_path / "j")
        assert "partition-0-1-2" in result.stdout
        metadata, partition = report_of(result, tmp_path / "j")["replicas"]
        assert (metadata["group_name"], metadata["op"], metadata["checkpoint"]) == ("metadata", 0, 0)
        assert (partition["group_name"], partition["op"], partition["checkpoint"]) == ("partition-0-1-2", 10, 10)
        assert partition["status"] == "normal"
        process.send_signal(signal.SIGTERM)
        assert process.wait(90) == 0
    finally:
        process.kill()
        process.wait()
    assert validated(json.loads((tmp_path / "s").read_text()))["directory"] == str(data)
    shown = vsr("inspect", "partition", data / "partition-0-1-2", "--json", tmp_path / "j")
    assert "partition 0/1/2 (namespace 16777218): the next message gets offset 9" in shown.stdout
    assert report_of(shown, tmp_path / "j")["whole"]
    damage_superblock(data / "partition-0-1-2", copies=1)
    one_lost = vsr("inspect", "superblock", data / "partition-0-1-2", "--json", tmp_path / "j")
    assert f"{COPIES - 1} of {COPIES} superblock copies valid" in one_lost.stdout
    assert "quorums = replication 1, view_change 1" in one_lost.stdout
    assert report_of(one_lost, tmp_path / "j")["exit_code"] == 0
    damage_superblock(data / "partition-0-1-2", copies=COPIES)
    refused = vsr("start", data, "--replica", "0", *GROUPS, *asked, "--json", tmp_path / "none")
    assert refused.exit_code == 2
    assert str(data / "partition-0-1-2") in refused.stderr
    assert "vsr recover" in refused.stderr
    assert not (tmp_path / "none").exists()
    lost = vsr("inspect", "superblock", data / "partition-0-1-2", "--json", tmp_path / "j")
    assert report_of(lost, tmp_path / "j")["exit_code"] == 1


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def damage_superblock(data: Path, copies: int) -> None:
    """Flips a byte in the first copies."""
    content = bytearray((data / "superblock").read_bytes())
    for copy in range(copies):
        content[copy * COPY_SIZE + 40] ^= 1
    (data / "superblock").write_bytes(bytes(content))
