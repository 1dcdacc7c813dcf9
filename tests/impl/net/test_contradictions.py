"""A server stops before a log that contradicts what it executed; the others say why, until it is back."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

from click.testing import CliRunner

from tests.impl.net.raw import RawConnection, replica_hello
from tests.impl.net.waiting import wait_for
from viewproof.impl.interface.messages import StartView, make_header
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.framing import frame_message
from viewproof.impl.net.sync_client import SyncClient
from viewproof.impl.storage.recover import diagnose
from viewproof.refinement.cli import cli


def problems_of(cluster: Cluster, out: Path) -> list[str]:
    """What `vsr status` says is wrong."""
    words = ["status", "--addresses", cluster.address_list(), "--cluster", str(cluster.cluster), "--json", str(out)]
    CliRunner().invoke(cli, words)
    problems: list[str] = json.loads(out.read_text())["problems"]
    return problems


def test_a_server_stops_before_a_log_that_contradicts_what_it_executed(tmp_path: Path) -> None:
    with Cluster(tmp_path / "cluster", cluster=7) as cluster:
        cluster.format()
        cluster.start_all()
        with SyncClient(cluster.addresses, 7) as client:
            client.put(b"k", b"v")
        primary = asyncio.run(cluster.wait_ready())
        victim, liar = (node for node in range(3) if node != primary)
        cluster.kill(liar)

        def view_of_victim() -> int:
            status = asyncio.run(cluster.statuses())[victim]
            return -1 if status is None or status.commit_min == 0 else status.view

        wait_for(lambda: view_of_victim() >= 0, "the victim executes")
        view = view_of_victim() + 3
        view += (liar - view) % 3
        header = make_header(parent="", view=0, op=1, client=9, request=1, commit=0, body=b"another")
        with RawConnection(cluster.addresses[victim], replica_hello(cluster.addresses[victim], liar)) as connection:
            connection.socket.sendall(frame_message(StartView(view, 1, 1, (header,), liar)))
            wait_for(lambda: not cluster.alive(victim), "the victim stops")
        reason = f"replica {victim}: the start_view of view {view} from replica {liar} has the entry {header.checksum}"
        log = cluster.log_path(victim).read_text()
        assert reason in log
        assert "Traceback" not in log
        assert cluster.stop(victim) == 2
        found = diagnose(cluster.data_path(victim))
        assert found.agreed is not None
        assert found.agreed.view < view
        evidence = cluster.data_path(victim) / "contradiction-1.json"
        kept = json.loads(evidence.read_text())
        assert f"replica {victim}: {kept['reason']}" in log
        assert [each["checksum"] for each in kept["offered"]] == [header.checksum]
        assert kept["executed"][0]["op"] == 1
        assert (kept["offered_view"], kept["replica"]) == (view, victim)
        assert found.evidence == (evidence.name,)

        def told(what: str = f"has stopped: {reason}") -> bool:
            return any(
                what in problem and str(evidence) in problem
                for problem in problems_of(cluster, tmp_path / "status.json")
            )

        wait_for(told, "`vsr status` shows why the victim stopped, and where the evidence lies")
        cluster.start(victim)
        cluster.start(liar)
        asyncio.run(cluster.wait_ready())
        wait_for(lambda: not told(), "it is shown no more that it has stopped")
        before = f"replica {victim}: it stopped before: {kept['reason']}"
        assert told(before)
        evidence.unlink()
        cluster.stop(victim)
        cluster.start(victim)
        asyncio.run(cluster.wait_answering(victim))
        assert not told(before)
        with SyncClient(cluster.addresses, 7) as client:
            assert client.get(b"k") == b"v"
        assert set(cluster.stop_all().values()) == {0}
