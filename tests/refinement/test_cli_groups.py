"""`vsr` with both planes in every process: format, cluster, repl, status, inspect."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from viewproof.impl.groups.group import BOTH_PLANES
from viewproof.impl.net.cluster import Cluster
from viewproof.refinement.cli import cli, repl
from viewproof.refinement.cli.watch import description


def vsr(*words: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)), input=stdin)


def test_format_makes_one_directory_for_each_group_and_start_says_which_there_are(tmp_path: Path) -> None:
    data = tmp_path / "data"
    result = vsr("format", data, "--replica", "0", "--groups", "partitions,metadata")
    assert (result.exit_code, sorted(path.name for path in data.iterdir())) == (0, ["metadata", "partitions"])
    wrong = vsr("start", data, "--replica", "0", "--addresses", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
    assert wrong.exit_code == 2
    assert "was formatted for --groups metadata,partitions, but single was asked for" in wrong.stderr
    unknown = vsr("format", tmp_path / "other", "--replica", "0", "--groups", "shards")
    assert unknown.exit_code == 2
    assert "unknown group 'shards'; there are single, metadata, partitions" in unknown.stderr
    several = vsr("inspect", data)
    assert several.exit_code == 2
    assert "give that of one replica, and group" in several.stderr
    assert vsr("inspect", data / "metadata").exit_code == 0


def test_a_group_whose_superblock_is_lost_is_there_and_the_file_is_named(tmp_path: Path) -> None:
    data = tmp_path / "data"
    vsr("format", data, "--replica", "0", "--groups", "metadata,partitions")
    (data / "metadata" / "superblock").unlink()
    words = ("--replica", "0", "--groups", "metadata,partitions", "--addresses", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
    start = vsr("start", data, *words)
    assert start.exit_code == 2
    assert f"{data}/metadata/superblock" in start.stderr
    assert "vsr recover" in start.stderr


def test_a_user_talks_to_each_group_and_sees_the_state_of_both(tmp_path: Path) -> None:
    with Cluster(tmp_path, groups=BOTH_PLANES) as cluster:
        cluster.format()
        cluster.start_all()
        told = description(cluster, 0)
        assert "vsr repl --group partitions" in told
        assert "run.metadata" in told
        addresses = ("--addresses", cluster.address_list())
        keys = vsr("repl", "--group", "metadata", *addresses, stdin="put a 1\nget a\n")
        assert keys.stdout.splitlines() == ["ok", "1"]
        lines = 'send 0/1/2 hello\nsend 0/1/2 "two words"\npoll 0/1/2 1 9\nstore 0/1/2 7 3\nstore 0/1/2 7 2\n'
        messages = vsr("repl", "--group", "partitions", *addresses, stdin=lines + "offset 0/1/2 7\noffset 0/1/2 8\n")
        assert messages.stdout.splitlines() == [
            "offset 0",
            "offset 1",
            "1 two words",
            "(end 2)",
            "refused: the offset is above the end of the partition",
            "ok",
            "2",
            "(none)",
        ]
        wrong = vsr("repl", "--group", "metadata", *addresses, stdin="poll 0/1/2 0 1\n")
        assert wrong.stdout.splitlines() == ["refused: poll belongs to the group of the plane partitions"]
        refused = vsr("repl", *addresses, stdin="get a\n")
        assert refused.exit_code == 2
        assert "group 0 is not run here" in refused.stderr
        asyncio.run(cluster.wait_ready(120))
        status = vsr("status", *addresses, "--timeout", "20", "--json", tmp_path / "status.json")
        assert (status.exit_code, status.stdout.count("metadata "), status.stdout.count("partitions ")) == (0, 3, 3)
        found = json.loads((tmp_path / "status.json").read_text())["replicas"]
        assert [answer["group"] for answer in found] == [1, 2] * 3


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("send 0/1 x", "PARTITION is STREAM/TOPIC/PARTITION, as 0/1/2, not '0/1'"),
        ("poll 0/1/99999999 0 1", r"partition must be in 0\.\.16777215"),
        ("poll 0/1/2 -1 1", "OFFSET is a number of at least 0, not '-1'"),
        ("store 0/1/2 x 1", "CONSUMER is a number of at least 0"),
        ("offset 0/1/2", "offset takes PARTITION CONSUMER, 2 words, but got 1"),
    ],
)
def test_a_wrong_line_about_partitions_is_told_what_is_wrong(line: str, problem: str) -> None:
    with pytest.raises(repl.LineError, match=problem):
        repl.parse(line)
