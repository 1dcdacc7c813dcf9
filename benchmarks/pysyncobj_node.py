"""One node of a PySyncObj cluster under load, for `benchmarks/cluster.py`; a process of its own.

    python -m benchmarks.pysyncobj_node NODE ADDRESSES DIRECTORY '{"flush": …, …}'

PySyncObj 0.3 keeps its journal in a memory-mapped file and never flushes it. So that durable means the same on both
sides, the flush is added from here, by its own `flush` (an msync of the mapping, which waits for the disk):

* `each`: at the end of every `add` of an entry to the journal;
* `group`: once before each message that acknowledges entries, and before a leader counts its own;
* `none`: as it is; what was acknowledged survives the process, not the machine.

Requests start inside the leader's process, with `clients` of them outstanding: there is no client's connection, which
spares it work that the other side has. The leader prints one JSON object and ends; the others are ended by the caller.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated
from pysyncobj.journal import FileJournal
from pysyncobj.transport import TCPTransport

GIVE_UP_SECONDS = 20.0


class Flushes:
    """The journal's entries that are not flushed yet, and counts over the whole run."""

    def __init__(self) -> None:
        self.journal: Any = None
        self.dirty = False
        self.entries = 0
        self.flushes = 0

    def flush(self) -> None:
        """Flush if entries were added since the last one."""
        if self.dirty:
            self.journal.flush()
            self.dirty = False
            self.flushes += 1


FLUSHES = Flushes()


class FlushingTransport(TCPTransport):  # type: ignore[misc]
    """Flushes before a message says that entries are held."""

    def send(self, node: Any, message: dict[str, Any]) -> Any:
        """As TCPTransport.send."""
        if message["type"] == "next_node_idx":
            FLUSHES.flush()
        return super().send(node, message)


class Store(SyncObj):  # type: ignore[misc]
    """A replicated dictionary."""

    def __init__(self, own: str, others: list[str], conf: SyncObjConf, transport: type[TCPTransport]) -> None:
        self._values: dict[bytes, bytes] = {}
        super().__init__(own, others, conf, transportClass=transport)

    @replicated  # type: ignore[untyped-decorator]
    def put(self, key: bytes, value: bytes) -> None:
        """Set ``key`` to ``value``."""
        self._values[key] = value


def watch_journal(each: bool) -> None:
    """Count what the journal takes; with ``each`` flush it every time."""
    add: Callable[..., None] = FileJournal.add

    def add_watched(journal: Any, *entry: Any) -> None:
        add(journal, *entry)
        FLUSHES.journal, FLUSHES.dirty = journal, True
        FLUSHES.entries += 1
        if each:
            FLUSHES.flush()

    FileJournal.add = add_watched


class Load:
    """``clients`` requests outstanding, each followed by the next when it is answered, until ``end``."""

    def __init__(self, store: Store, clients: int, value_bytes: int, warm_up_seconds: float, seconds: float) -> None:
        self.latencies: list[float] = []
        self.failed = 0
        self._store = store
        self._value = bytes(value_bytes)
        self.start = time.perf_counter() + warm_up_seconds
        self.end = self.start + seconds
        for client in range(clients):
            self._issue(b"bench-%d" % client)

    def _issue(self, key: bytes) -> None:
        called = time.perf_counter()

        def answered(_: object, error: int) -> None:
            now = time.perf_counter()
            if error:
                self.failed += 1
            elif called >= self.start:
                self.latencies.append(now - called)
            if now < self.end:
                self._issue(key)

        self._store.put(key, self._value, callback=answered)


def run(own: int, addresses: list[str], directory: Path, setting: dict[str, Any]) -> dict[str, float]:
    """Be one node; returns what the leader measured."""
    flush = setting["flush"]
    watch_journal(flush == "each")
    conf = SyncObjConf(
        autoTick=False,
        journalFile=str(directory / f"journal-{own}"),
        appendEntriesUseBatch=setting["batch"],
        appendEntriesPeriod=setting["period"],
        logCompactionMinEntries=1 << 60,
        logCompactionMinTime=1 << 30,
    )
    others = [address for node, address in enumerate(addresses) if node != own]
    store = Store(addresses[own], others, conf, FlushingTransport if flush == "group" else TCPTransport)
    load: Load | None = None
    give_up = time.perf_counter() + GIVE_UP_SECONDS
    entries = flushes = 0
    while load is None or time.perf_counter() < load.end:
        if flush == "group":
            FLUSHES.flush()
        store.doTick(setting["tick"])
        if load is None and store._isLeader() and store.isReady():
            load = Load(store, setting["clients"], setting["value_bytes"], setting["warm_up"], setting["seconds"])
            entries, flushes = FLUSHES.entries, FLUSHES.flushes
        if load is None and time.perf_counter() > give_up + setting["seconds"]:
            raise SystemExit("no leader")
    latencies = sorted(load.latencies)
    count = len(latencies)
    return {
        "requests_per_second": count / (time.perf_counter() - load.start),
        "latency_ms_median": latencies[count // 2] * 1e3 if count else 0.0,
        "latency_ms_99": latencies[count * 99 // 100] * 1e3 if count else 0.0,
        "entries_per_flush": (FLUSHES.entries - entries) / max(FLUSHES.flushes - flushes, 1),
        "failed": load.failed,
    }


def main() -> None:
    """Parse the arguments, run, print."""
    logging.disable(logging.CRITICAL)  # it logs each entry that it sent twice and takes back
    own, addresses, directory, setting = sys.argv[1:]
    result = run(int(own), addresses.split(","), Path(directory), json.loads(setting))
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
    os._exit(0)  # its destructors wait


if __name__ == "__main__":
    main()
