"""Exactly once, from outside: a real cluster that is killed, behind a network that loses and copies requests.

Every appended token is unique. What was acknowledged is there once; what was not (evicted, given up) at most once; the
history as a whole has an order that explains every answer; and the traces conform.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from tests.impl.net.mischief import Chances, Mischief
from tests.impl.net.porcupine import verdict_of_porcupine
from tests.refinement.traces import load as load_trace
from viewproof.impl.interface.durable import CLIENTS_PAPER, ClientTableConfig
from viewproof.impl.net.cluster import Cluster
from viewproof.impl.net.history import CheckResult, Operation, check_history
from viewproof.impl.net.load import APPENDS, Load
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

CLIENTS = 4
KEYS = 12
EVICTING = ClientTableConfig(slots=2, sessions=True)
"""Fewer slots than clients: they evict each other all the time."""


@dataclass(frozen=True)
class Seen:
    """What the clients of a run saw, and what was done to them."""

    history: list[Operation]
    check: CheckResult
    mischief: Counter[str]
    evictions: int
    retries: int


def run(
    directory: Path,
    table: ClientTableConfig,
    *,
    requests: int,
    kills: int,
    seed: int,
    faults: tuple[str, ...] = (),
    chances: Chances | None = None,
    may_be_copied: bool = True,
) -> Seen:
    """Appends and gets under mischief, with ``kills`` random processes killed and restarted meanwhile."""

    async def scenario(cluster: Cluster) -> Seen:
        source = random.Random(seed)
        await cluster.wait_ready()
        async with Mischief(cluster.addresses, seed, chances) as mischief:
            load = Load(
                mischief.addresses,
                cluster.cluster,
                clients=CLIENTS,
                keys=KEYS,
                seed=seed,
                weights=APPENDS,
                send_twice=0.1,
                may_be_copied=may_be_copied,
            )
            back = asyncio.Event()
            running = asyncio.create_task(load.run(requests=requests, at_least_until=back))
            for _ in range(kills):
                await asyncio.sleep(source.uniform(0.1, 0.6))
                victim = source.randrange(cluster.replica_count)
                cluster.kill(victim)
                await asyncio.sleep(source.uniform(0.1, 0.8))
                cluster.start(victim)
                await cluster.wait_answering(victim)
            back.set()
            await running
            await asyncio.sleep((chances or Chances()).copy_seconds_max)
            await load.read_all()
            await load.close()
        return Seen(
            load.history, check_history(without_doubt(load.history)), mischief.counts, load.evictions, load.retries
        )

    with Cluster(directory, run="once", clients=table, faults=faults) as cluster:
        cluster.format()
        cluster.start_all()
        seen = asyncio.run(scenario(cluster))
        cluster.stop_all()
    return seen


def wrong_tokens(history: list[Operation]) -> list[str]:
    """Tokens that are lost, doubled or never appended, in the last read of each key."""
    last = {op.key: op for op in history if op.kind == "get" and op.returned is not None}
    wrong: list[str] = []
    for key, read in last.items():
        found = Counter(_tokens(read))
        appends = [op for op in history if op.kind == "append" and op.key == key]
        sent = {op.argument for op in appends}
        acknowledged = [op.argument for op in appends if op.returned is not None and op.returned < read.called]
        wrong += [f"{key!r}: {token!r} is there {count} times" for token, count in found.items() if count > 1]
        wrong += [f"{key!r}: {token!r} was never appended" for token in found if token not in sent]
        wrong += [f"{key!r}: {token!r} is lost" for token in acknowledged if token not in found]
    return wrong


def without_doubt(history: list[Operation]) -> list[Operation]:
    """An equal history of appends and gets for a search that unanswered operations slow down.

    A get without an answer tells nothing. An append without one took effect before the first get that saw its token was
    answered; if none saw it, not even the last get of its key, it may as well have had no effect.
    """
    settled: list[Operation] = []
    for op in history:
        if op.returned is not None:
            settled.append(op)
            continue
        if op.kind == "get":
            continue
        assert op.kind == "append"
        token = op.argument or b""
        seen = [get.returned for get in history if get.key == op.key and token in _tokens(get)]
        if seen:
            settled.append(replace(op, returned=min(time for time in seen if time is not None)))
    return settled


def _tokens(get: Operation) -> list[bytes]:
    if get.kind != "get" or get.returned is None:
        return []
    return [token + b";" for token in (get.value or b"").split(b";")[:-1]]


def judge(directory: Path, seen: Seen) -> None:
    """Nothing is lost or doubled, seen from the clients and from the traces."""
    assert wrong_tokens(seen.history) == []
    assert seen.check.ok, seen.check.failures
    verdict = check_run("once", load_trace(directory / "traces"), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.violations, verdict.missing)
    for done in ("copy", "lose", "cut"):
        assert seen.mischief[done] > 0, seen.mischief
    assert seen.retries > 0


def test_nothing_is_lost_or_doubled_while_clients_evict_each_other(tmp_path: Path) -> None:
    seen = run(tmp_path, EVICTING, requests=250, kills=1, seed=1)
    judge(tmp_path, seen)
    assert seen.evictions > 0


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("table", [EVICTING, ClientTableConfig(sessions=True), CLIENTS_PAPER], ids=repr)
def test_nothing_is_lost_or_doubled_over_many_kills(tmp_path: Path, table: ClientTableConfig, seed: int) -> None:
    seen = run(tmp_path, table, requests=1000, kills=6, seed=100 + seed)
    judge(tmp_path, seen)
    assert verdict_of_porcupine(without_doubt(seen.history)) == "ok"
    assert (seen.evictions > 0) == (table == EVICTING)


@pytest.mark.long
def test_a_client_that_trusts_the_network_to_make_no_copies_is_seen_to_double(tmp_path: Path) -> None:
    chances = Chances(copy=0.7, hold=0.4, copy_seconds_max=0.03)
    seen = run(tmp_path, EVICTING, requests=300, kills=0, seed=2, chances=chances, may_be_copied=False)
    assert any("times" in text for text in wrong_tokens(seen.history))


def test_a_table_that_forgets_evicted_clients_is_seen_to_double(tmp_path: Path) -> None:
    chances = Chances(copy=0.8, copy_seconds_max=0.5)
    seen = run(tmp_path, EVICTING, requests=300, kills=0, seed=3, faults=("table.evict_forgets",), chances=chances)
    assert any("times" in text for text in wrong_tokens(seen.history))
    assert seen.check.verdict == "violation"
