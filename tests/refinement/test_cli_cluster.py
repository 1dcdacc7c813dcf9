"""`vsr cluster`, `repl`, `inspect` and `record` as a user runs them: directories, killed replicas, wrong words."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pytest
from click.testing import CliRunner, Result

from tests.schemas import validated
from viewproof.impl.machine.state_machine import Done, Operation, Outcome, Refused, Value
from viewproof.impl.machine.state_machine import Result as Answer
from viewproof.impl.net.client import UnreachableError
from viewproof.impl.net.cluster import Cluster, ClusterError, free_ports
from viewproof.impl.net.sync_client import SyncClient
from viewproof.refinement.cli import cli, repl, used
from viewproof.refinement.cli.watch import SHORT_LIVES_MAX, Watch

PROGRAM = [sys.executable, "-m", "viewproof"]
ROOT = Path(__file__).resolve().parents[2]


def vsr(*words: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(cli, list(map(str, words)), input=stdin)


def environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT)}


@contextmanager
def running(cwd: Path, *words: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, list[str]]]]:
    """`vsr cluster` in another working directory, once it is ready, and its JSON result."""
    command = [*PROGRAM, "cluster", *words, "--json", "ready.json"]
    with (cwd / "stderr").open("w") as stderr:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        )
    try:
        wait_for(lambda: (cwd / "ready.json").exists() or process.poll() is not None)
        yield process, validated(json.loads((cwd / "ready.json").read_text()))
    finally:
        process.kill()
        process.wait()


def wait_for(condition: object, seconds: float = 90) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


def test_a_killed_replica_does_not_end_a_cluster_in_a_relative_directory(tmp_path: Path) -> None:
    with running(tmp_path, "here") as (process, ready):
        os.kill(int(ready["pids"][0]), signal.SIGKILL)
        wait_for(lambda: "restart it with" in (tmp_path / "stderr").read_text())
        told = (tmp_path / "stderr").read_text()
        assert f"replica 0 (pid {ready['pids'][0]}) was killed by signal 9; restart it with: vsr start " in told
        assert (
            f"vsr start {tmp_path / 'here/data/replica-0'} --replica 0 --addresses {','.join(ready['addresses'])}"
            in told
        )
        assert f"--trace {tmp_path / 'here/traces/run/replica-0.ndjson'} --run run" in told
        answer = vsr("repl", "--addresses", ",".join(ready["addresses"]), stdin="put a 1\nput b hello world\nget a\n")
        assert answer.stdout == "ok\n1\n"
        assert answer.exit_code == 2
        assert "line 2: put takes KEY VALUE" in answer.stderr
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert process.stdout is not None
        told = process.stdout.read()
        assert f"vsr audit {tmp_path / 'here/traces/run'}" in told
        assert f"pid {ready['pids'][2]}" in told
    assert (tmp_path / "here/traces/run/replica-0.ndjson").exists()


def test_restart_starts_a_killed_replica_again(tmp_path: Path) -> None:
    with running(tmp_path, "here", "--restart") as (process, ready):
        os.kill(int(ready["pids"][1]), signal.SIGKILL)
        wait_for(lambda: "replica 1 started again (pid " in (tmp_path / "stderr").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_a_cluster_with_tls_tells_nothing_to_who_has_no_certificate(tmp_path: Path) -> None:
    with running(tmp_path, "here", "--tls") as (process, ready):
        asked = ("--addresses", ",".join(ready["addresses"]))
        shown = ("--tls", str(tmp_path / "here/tls/clients"))
        assert vsr("status", *asked).exit_code == 4
        assert vsr("status", *asked, *shown).exit_code == 0
        assert vsr("repl", *asked, *shown, stdin="put a 1\nget a\n").stdout == "ok\n1\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 0
        assert process.stdout is not None
        told = process.stdout.read()
    assert f"tls      {tmp_path / 'here/tls'}\n" in told
    assert f"--addresses {','.join(ready['addresses'])} --tls {tmp_path / 'here/tls/clients'}\n" in told


def test_a_run_is_recorded_with_tls(tmp_path: Path) -> None:
    words = ("--tls", "--requests", "40", "--clients", "2", "--groups", "metadata,partitions", "--no-kill")
    recorded = vsr("record", tmp_path / "rec", *words)
    assert recorded.exit_code == 0, recorded.output
    assert "clients' view: consistent" in recorded.output
    assert vsr("audit", tmp_path / "rec").exit_code == 0


def test_an_interrupted_measurement_keeps_what_it_has(tmp_path: Path) -> None:
    with running(tmp_path, "here") as (_, ready):
        addresses = ",".join(ready["addresses"])
        words = ("bench", "--addresses", addresses, "--seconds", "600", "--clients", "2", "--json", "bench.json")
        measuring = subprocess.Popen(
            [*PROGRAM, *words],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
        )

        def executed() -> int:
            vsr("status", "--addresses", addresses, "--json", tmp_path / "status.json")
            replicas = json.loads((tmp_path / "status.json").read_text())["replicas"]
            return max(one["commit_min"] for one in replicas if one is not None)

        wait_for(lambda: executed() > 100)
        measuring.send_signal(signal.SIGINT)
        told, _ = measuring.communicate(timeout=120)
    assert measuring.returncode == 4
    assert told.startswith("interrupted: this is what was measured before\n")
    report = validated(json.loads((tmp_path / "bench.json").read_text()))
    assert (report["interrupted"], report["exit_code"]) == (True, 4)


class Failing(Cluster):
    """A cluster of one whose process gives up at once, every time."""

    starts = 0

    def exit_code(self, replica: int) -> int | None:
        return 2

    def start(self, replica: int) -> None:
        self.starts += 1


def test_a_replica_that_gives_up_again_and_again_is_not_started_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewproof.refinement.cli.watch.RESTART_SECONDS", 0.0)
    said: list[str] = []
    cluster = Failing(tmp_path, 1)
    watch = Watch(cluster, True, said.append)
    for _ in range(30):
        watch.look()
    assert cluster.starts == SHORT_LIVES_MAX - 1
    assert "ended with exit code 2: (no log); it gave up 5 times in a row; restart it with: vsr start" in said[-1]


def test_record_in_a_relative_directory_writes_there(tmp_path: Path) -> None:
    words = [*PROGRAM, "record", "rec", "--requests", "20", "--no-kill"]
    result = subprocess.run(words, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=180)
    assert result.returncode == 0, result.stderr
    assert len(list((tmp_path / "rec/run").glob("*.ndjson"))) == 3
    assert "vsr audit rec/run" in result.stdout


def test_an_unknown_fault_leaves_nothing_behind(tmp_path: Path) -> None:
    assert vsr("record", tmp_path / "rec", "--fault", "nope").exit_code == 2
    assert not list(tmp_path.iterdir())


def test_data_of_another_cluster_and_lost_data_are_named_before_anything_starts(tmp_path: Path) -> None:
    Cluster(tmp_path, 3).format_or_check()
    Cluster(tmp_path, 3).format_or_check()
    result = vsr("cluster", tmp_path, "--replicas", "5")
    assert result.exit_code == 2
    assert "was formatted for a cluster of 3 replicas, but 5 were asked for: use --replicas 3" in result.stderr
    with pytest.raises(ClusterError, match="belongs to cluster 1, not to cluster 9"):
        Cluster(tmp_path, 3, cluster=9).format_or_check()
    (tmp_path / "data/replica-0").rename(tmp_path / "gone")
    with pytest.raises(ClusterError, match=r"replica-0: not there.* a lost replica is not made anew"):
        Cluster(tmp_path, 3).format_or_check()
    assert not (tmp_path / "data/replica-0").exists()
    assert not (tmp_path / "logs").exists()


def test_inspect_of_a_clusters_directory_names_those_of_its_replicas(tmp_path: Path) -> None:
    Cluster(tmp_path, 3).format()
    for directory in (tmp_path, tmp_path / "data"):
        result = vsr("inspect", directory)
        assert result.exit_code == 2
        assert "holds several data directories; give that of one replica" in result.stderr
        assert "data/replica-0, " in result.stderr
    assert vsr("inspect", tmp_path / "data/replica-1").exit_code == 0


def test_a_client_gives_up_soon_if_nobody_listens() -> None:
    addresses = [("127.0.0.1", port) for port in free_ports(3)]
    started = time.monotonic()
    with (
        SyncClient(addresses, 1, unreachable_seconds=0.3) as client,
        pytest.raises(UnreachableError, match=rf"at 127\.0\.0\.1:{addresses[0][1]}, .* without TLS; are"),
    ):
        client.get(b"k")
    assert time.monotonic() - started < 10


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            "put b hello world",
            'put takes KEY VALUE, 2 words, but got 3; one with spaces needs quotes: put key "two words"',
        ),
        ("put", "put takes KEY VALUE, 2 words, but got 0"),
        ("del a", "del is no command; did you mean delete? "),
        ("foo", "foo is no command. There are: put KEY VALUE | "),
        ("put a 'b", "no closing quotation"),
    ],
)
def test_a_wrong_line_is_told_what_is_wrong(line: str, problem: str) -> None:
    with pytest.raises(repl.LineError) as error:
        repl.parse(line)
    assert str(error.value).startswith(problem)


def test_quotes_hold_words_together() -> None:
    assert repl.parse('put k "two words"\n') == ["put", "k", "two words"]
    assert repl.parse("\n") == []


def test_simulate_says_that_a_directory_holds_earlier_traces(tmp_path: Path) -> None:
    words = ("simulate", "--requests", "5", "--out", tmp_path / "sim")
    assert "earlier traces" not in vsr(*words, "--runs", "2", "--replicas", "5").stderr
    assert "earlier traces" not in vsr(*words, "--runs", "2").stderr
    assert len(list((tmp_path / "sim/seed-1").iterdir())) == 3, "those of replicas 3 and 4 are gone"
    assert "holds earlier traces too (seed-1, seed-2), and vsr audit" in vsr(*words, "--seed", "7").stderr
    assert used.other_runs(tmp_path / "nowhere", []) == []


class Answering:
    """A client whose state machine gives one answer to everything."""

    def __init__(self, result: Answer) -> None:
        self.result = result

    def execute(self, operation: Operation) -> Answer:
        return self.result


@pytest.mark.parametrize(
    ("line", "result", "text"),
    [
        ("put a 1", Done(), "ok"),
        ("put a 1", Refused("put belongs to the group of the plane metadata"), "refused: put belongs to the group"),
        ("get a", Value(None), "(none)"),
        ("delete a", Outcome(False), "(none)"),
        ("cas a 1 2", Outcome(True), "swapped"),
        ("store 0/1/2 7 9", Outcome(False), "refused: the offset is above the end of the partition"),
    ],
)
def test_every_answer_is_words_a_refusal_too(line: str, result: Answer, text: str) -> None:
    client = cast(SyncClient, Answering(result))
    assert repl.answer(client, repl.parse(line)).startswith(text)
