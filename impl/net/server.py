"""One replica as a process: TCP, ticks, durable I/O in threads, trace file; the protocol itself is impl/replica.

Order of effects. What one batch of input produced is carried out in this order: trace events are written (write(2)),
then messages are sent, then durable writes are queued. They are done one at a time, in order, in a thread; when one is
durable (after its fdatasync) the replica is told and what that produced is carried out before the next write starts. So
no message leaves before the events that came before it in the replica's list are in the file, and a kill at any moment
leaves at most one durable step that the trace does not show (traces/README.md). A disk that refuses a write stops the
process: nothing was acknowledged, and a restart recovers what is durable.

Run: ``python -m impl.net.server --data DIR --replica I --addresses HOST:PORT,... [--trace FILE]``; the directory must
have been formatted (impl/storage/data_file.py). SIGTERM and SIGINT end it cleanly. Exit codes: 0 ended, 2 could not
start or had to stop; the reason is one line on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import logging
import signal
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVarTuple

from impl.checks import InvariantError
from impl.durable import ConfigurationError
from impl.effects import AppendPrepares, Effect, Emit, IoEffect, Send, SendClient
from impl.faults import FaultError
from impl.messages import Message, Request
from impl.net.client import Address
from impl.net.framing import FRAME_SIZE_MAX, NotPrimary, Status, frame_control, frame_message
from impl.net.links import Inbound, InboundHost, PeerLink
from impl.replica import Replica, ReplicaConfig
from impl.storage.data_file import DataFile, open_data_file
from impl.storage.file import RealFileSystem, StorageError
from impl.trace import TraceError, TraceEvent, TraceWriter

__all__ = ["ServerConfig", "ServerError", "main", "parse_addresses", "run_server", "serve"]

REQUEST_QUEUE_MAX = 1024
"""Requests that wait for room in the pipeline; further ones are dropped, and their clients ask again."""

_InputTs = TypeVarTuple("_InputTs")

logger = logging.getLogger("impl.net")


class ServerError(Exception):
    """The server could not start or had to stop; the text says why and names the file or address."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How one replica is run.

    ``addresses`` of all replicas by index; ``cluster`` and the replica count must match the data directory;
    ``trace`` None: no trace. ``run`` is the run id in the trace. A tick is ``tick_seconds``; the replica's own
    timeouts count ticks. ``until_stdin_closes``: end when stdin does, so that no replica outlives its parent.
    ``pipeline_max``: entries prepared and not committed, and entries in one append to the journal.
    To measure what durability costs, and for nothing else: without ``synced`` nothing is flushed to the disk, with
    ``flush_each`` every entry is written and flushed on its own, also those that could share one flush.
    """

    data: Path
    replica: int
    addresses: tuple[Address, ...]
    cluster: int | None = None
    trace: Path | None = None
    run: str = "run"
    tick_seconds: float = 0.01
    faults: frozenset[str] = field(default_factory=frozenset)
    frame_size_max: int = FRAME_SIZE_MAX
    until_stdin_closes: bool = False
    pipeline_max: int = 256
    synced: bool = True
    flush_each: bool = False


def parse_addresses(text: str) -> tuple[Address, ...]:
    """``host:port,host:port,...`` as a tuple. Raises ServerError naming the part that is wrong."""
    addresses: list[Address] = []
    for part in text.split(","):
        host, _, port = part.strip().rpartition(":")
        if not host or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ServerError(f"address {part.strip()!r} is not HOST:PORT")
        addresses.append((host.strip("[]"), int(port)))
    return tuple(addresses)


class Server:
    """The host of one replica. ``run`` returns after ``stop``; it raises ServerError if it has to give up."""

    def __init__(self, config: ServerConfig, data: DataFile, trace: TraceWriter | None) -> None:
        superblock = data.superblock
        self._config = config
        self._data = data
        self._trace = trace
        self._replica = Replica(
            data.durable_state(),
            ReplicaConfig(
                run=config.run,
                traced=trace is not None,
                faults=config.faults,
                pipeline_max=config.pipeline_max,
                request_queue_max=REQUEST_QUEUE_MAX,
                append_prepares_max=config.pipeline_max,
                prepare_buffer_max=2 * config.pipeline_max,
            ),
            seq=trace.seq if trace is not None else 0,
            clock=trace.clock if trace is not None else 0,
        )
        self._host = InboundHost(
            cluster=superblock.cluster,
            replica=superblock.replica,
            replica_count=superblock.replica_count,
            frame_size_max=config.frame_size_max,
            on_request=self._on_request,
            on_peer_message=self._on_peer_message,
            status=self.status,
            flush_later=self._flush_later,
        )
        self._links = {
            peer: PeerLink(peer, address, self._host.hello())
            for peer, address in enumerate(config.addresses)
            if peer != superblock.replica
        }
        self._io_thread = ThreadPoolExecutor(1, thread_name_prefix="storage")
        self._events: list[TraceEvent] = []
        self._flush_due: asyncio.Handle | None = None
        self._encoded: tuple[Message, bytes] | None = None
        self._io_queue: deque[IoEffect] = deque()
        self._journal_writes = 0
        self._io_running: asyncio.Future[None] | None = None
        self._done = asyncio.Event()
        self._failure: ServerError | None = None

    def stop(self) -> None:
        """End ``run`` cleanly."""
        self._done.set()

    def status(self) -> Status:
        """What this replica says of itself."""
        replica = self._replica
        return Status(
            cluster=self._host.cluster,
            replica=self._host.replica,
            replica_count=self._host.replica_count,
            status=str(replica.status),
            view=replica.view,
            log_view=replica.log_view,
            op=replica.op,
            commit_min=replica.commit_min,
            commit_max=replica.commit_max,
            journal_bytes=self._data.journal_bytes,
            peers=tuple(peer for peer, link in self._links.items() if link.connected),
            journal_writes=self._journal_writes,
        )

    async def run(self) -> None:
        """Serve until ``stop``. Raises ServerError if the address cannot be bound, or on a fatal error."""
        loop = asyncio.get_running_loop()
        address = self._config.addresses[self._host.replica]
        try:
            listener = await loop.create_server(lambda: Inbound(self._host), *address)
        except OSError as error:
            raise ServerError(f"cannot listen on {address[0]}:{address[1]}: {error.strerror or error}") from error
        tasks = [asyncio.create_task(link.keep_up()) for link in self._links.values()]
        try:
            self._step(self._replica.boot)
            self._flush()
            tasks.append(asyncio.create_task(self._tick()))
            logger.info("replica %d of cluster %d on %s:%d", self._host.replica, self._host.cluster, *address)
            await self._done.wait()
        finally:
            listener.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for connection in tuple(self._host.connections):
                connection.close()
            if self._io_running is not None:
                await asyncio.wait([self._io_running])
            self._io_thread.shutdown()
        if self._failure is not None:
            raise self._failure

    async def _tick(self) -> None:
        """Ticks at a fixed rate; a process that was held up does not make up for the ticks it missed."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            due = max(due + self._config.tick_seconds, loop.time())
            await asyncio.sleep(due - loop.time())
            self._step(self._replica.on_tick)
            self._flush()

    def _on_peer_message(self, message: Message) -> None:
        self._step(self._replica.on_message, message)

    def _on_request(self, connection: Inbound, request: Request) -> None:
        self._host.took(connection, request.client)
        replica = self._replica
        if replica.is_normal_primary:
            self._step(replica.on_message, request)
            return
        hint = NotPrimary(request.client, request.request, replica.view, str(replica.status))
        connection.send(frame_control(hint))

    def _step(self, handler: Callable[[*_InputTs], list[Effect]], *inputs: *_InputTs) -> None:
        """One transition of the replica; after a failure none is made any more."""
        if self._failure is not None:
            return
        try:
            self._carry_out(handler(*inputs))
        except InvariantError as error:
            self._fail(ServerError(f"replica {self._host.replica} contradicts itself: {error}"))
        except Exception as error:  # a bug: its state is unknown now, so it must not go on
            logger.exception("internal error")
            self._fail(ServerError(f"replica {self._host.replica}: internal error, see the log: {error!r}"))

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        """Sort a list of effects into what ``_flush`` does in order."""
        for effect in effects:
            if isinstance(effect, Emit):
                self._events.append(effect.event)
            elif isinstance(effect, Send):
                self._links[effect.to].send(self._frame(effect.message))
            elif isinstance(effect, SendClient):
                connection = self._host.clients.get(effect.client)
                if connection is not None:
                    connection.send(frame_message(effect.message))
            else:
                self._io_queue.append(effect)

    def _frame(self, message: Message) -> bytes:
        """The frame of a message to a replica; one that goes to several is encoded once."""
        if self._encoded is None or self._encoded[0] is not message:
            self._encoded = (message, frame_message(message))
        return self._encoded[1]

    def _flush_later(self) -> None:
        """Flush after the input that this iteration of the event loop found was all handed over."""
        if self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        """Trace events, then messages, then durable writes."""
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        if self._failure is not None:
            return
        try:
            if self._trace is not None and self._events:
                self._trace.write_all(self._events)
        except OSError as error:
            self._fail(ServerError(f"{self._config.trace}: cannot write the trace: {error.strerror or error}"))
            return
        self._events.clear()
        for link in self._links.values():
            link.flush()
        to_flush, self._host.to_flush = self._host.to_flush, []
        for connection in to_flush:
            connection.flush()
        self._start_io()

    def _start_io(self) -> None:
        """Start the next durable write, if none is running."""
        if self._io_running is not None or not self._io_queue or self._done.is_set():
            return
        effect = self._io_queue.popleft()
        if isinstance(effect, AppendPrepares):
            write = functools.partial(self._append, effect)
        else:
            write = functools.partial(self._data.write_superblock, effect.superblock)
        self._io_running = asyncio.get_running_loop().run_in_executor(self._io_thread, write)
        self._io_running.add_done_callback(functools.partial(self._on_io_done, effect))

    def _append(self, effect: AppendPrepares) -> None:
        """In the storage thread: one write and one flush; with ``flush_each`` so many for every entry."""
        size = 1 if self._config.flush_each else len(effect.prepares)
        for start in range(0, len(effect.prepares), size):
            self._data.append(effect.prepares[start : start + size], effect.repair)
            self._journal_writes += 1

    def _on_io_done(self, effect: IoEffect, future: asyncio.Future[None]) -> None:
        self._io_running = None
        if self._done.is_set() or future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._fail(ServerError(str(error)) if isinstance(error, StorageError) else ServerError(repr(error)))
            return
        self._step(self._replica.on_io_done, effect)
        self._flush()

    def _fail(self, error: ServerError) -> None:
        if self._failure is None:
            logger.error("stopping: %s", error)
            self._failure = error
            self._done.set()


async def serve(config: ServerConfig, stop: asyncio.Event | None = None) -> None:
    """Open the data directory and the trace, run the replica until ``stop`` is set or SIGTERM or SIGINT comes.

    Raises ServerError; its text is for the user.
    """
    try:
        data = open_data_file(
            config.data,
            config.cluster,
            config.replica,
            len(config.addresses),
            file_system=RealFileSystem(config.synced),
            check_views=not config.faults,
        )
    except StorageError as error:
        raise ServerError(str(error)) from error
    try:
        _report_recovery(data, config.synced)
        trace = TraceWriter(config.trace) if config.trace is not None else None
        try:
            server = Server(config, data, trace)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, server.stop)
            if config.until_stdin_closes:
                await loop.connect_read_pipe(lambda: _StdinWatcher(server), sys.stdin)
            watcher = asyncio.create_task(_stop_when_set(stop, server)) if stop is not None else None
            await server.run()
            if watcher is not None:
                watcher.cancel()
        finally:
            if trace is not None:
                trace.close()
    except (StorageError, TraceError, ConfigurationError, FaultError) as error:
        raise ServerError(str(error)) from error
    except OSError as error:
        raise ServerError(f"{error.filename or config.trace}: {error.strerror or error}") from error
    finally:
        data.close()


class _StdinWatcher(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.stop()


async def _stop_when_set(stop: asyncio.Event, server: Server) -> None:
    await stop.wait()
    server.stop()


def _report_recovery(data: DataFile, synced: bool) -> None:
    for problem in data.superblock_problems:
        logger.warning("%s: superblock: %s; repaired from the other copies", data.path, problem)
    if data.journal_recovery.cut_offset is not None:
        logger.warning("%s: journal: %s", data.path, data.journal_recovery)
    if not synced:
        logger.warning("%s: nothing is flushed to the disk (--no-sync): a power failure loses it", data.path)


def run_server(config: ServerConfig) -> None:
    """Run one replica in this process until SIGTERM or SIGINT. Raises ServerError."""
    asyncio.run(serve(config))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line of one server process; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m impl.net.server", description="Run one replica.")
    parser.add_argument("--data", type=Path, required=True, help="data directory, formatted before")
    parser.add_argument("--replica", type=int, required=True, help="index of this replica")
    parser.add_argument("--addresses", required=True, help="host:port of all replicas, by index, with commas")
    parser.add_argument("--cluster", type=int, help="cluster id that the data directory must have")
    parser.add_argument("--trace", type=Path, help="trace file (NDJSON), continued if it exists")
    parser.add_argument("--run", default="run", help="run id written to the trace")
    parser.add_argument("--tick", type=float, default=0.01, help="seconds per tick")
    parser.add_argument("--fault", action="append", default=[], help="named mistake to switch on (for tests)")
    parser.add_argument("--pipeline", type=int, default=256, help="entries prepared and not committed, at most")
    parser.add_argument("--flush-each", action="store_true", help="one flush for every entry: for measurements only")
    parser.add_argument("--no-sync", action="store_true", help="flush nothing to the disk: for measurements only")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when stdin does (for a parent process)")
    options = parser.parse_args(arguments)
    logging.basicConfig(
        stream=sys.stderr, level=logging.INFO, format=f"%(asctime)s replica {options.replica} %(levelname)s %(message)s"
    )
    try:
        run_server(
            ServerConfig(
                data=options.data,
                replica=options.replica,
                addresses=parse_addresses(options.addresses),
                cluster=options.cluster,
                trace=options.trace,
                run=options.run,
                tick_seconds=options.tick,
                faults=frozenset(options.fault),
                until_stdin_closes=options.until_stdin_closes,
                pipeline_max=options.pipeline,
                flush_each=options.flush_each,
                synced=not options.no_sync,
            )
        )
    except ServerError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
