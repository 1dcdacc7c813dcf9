"""One server process: TCP, ticks, and for each of its groups a replica with data directory and trace file.

The protocol itself is impl/replica; the order in which a replica's effects are carried out is that of
impl/net/group_host.py. Before anything leaves the process, the trace events of all its groups are in their files. A
message and a request carry the number of their group; one for a group that this process does not run closes the
connection, with the reason, and is never given to another group. A disk that refuses a write stops the process: nothing
was acknowledged, and a restart recovers what is durable.

Run: ``python -m viewproof.impl.net.server --data DIR --replica I --addresses HOST:PORT,... [--groups G,G]
[--trace FILE]``; the directory must have been formatted (impl/storage/data_file.py). SIGTERM and SIGINT end it cleanly.
Exit codes: 0 ended, 2 could not start or had to stop; the reason is one line on stderr.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import functools
import logging
import secrets
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import NamedTuple

import msgspec

from viewproof.impl.faults import FaultError, segments_with, stand_in
from viewproof.impl.groups.group import Group, GroupTable
from viewproof.impl.interface.durable import ConfigurationError
from viewproof.impl.interface.messages import Message, Request
from viewproof.impl.interface.ranges import COUNTER_MAX
from viewproof.impl.machine.snapshot import SnapshotError
from viewproof.impl.net.address import address_text
from viewproof.impl.net.configuration import configuration_of
from viewproof.impl.net.framing import Holds, NotPrimary, Position, Status, frame_control
from viewproof.impl.net.group_host import GroupHost
from viewproof.impl.net.guard import Guard
from viewproof.impl.net.inbound import Inbound, InboundHost
from viewproof.impl.net.limits import limits_of
from viewproof.impl.net.links import PeerLink
from viewproof.impl.net.listener import Listener
from viewproof.impl.net.metrics import GroupMetrics, Sample, counter, exposition, gauge, serve_metrics
from viewproof.impl.net.peers import Peers
from viewproof.impl.net.server_config import (
    ServerConfig,
    ServerError,
    data_path,
    groups_there,
    parse_addresses,
    trace_path,
)
from viewproof.impl.net.settings import SETTINGS, Key, Value, server_config
from viewproof.impl.net.settings_files import EFFECTIVE_NAME, keep_effective, resolve
from viewproof.impl.net.tls import Tls, TlsError
from viewproof.impl.replica.features import UnknownEntryError
from viewproof.impl.storage.data_file import DataFile, open_data_file
from viewproof.impl.storage.file import RealFileSystem, StorageError
from viewproof.impl.trace.files import TraceError, TraceWriter

__all__ = ["ServerConfig", "ServerError", "main", "parse_addresses", "run_server", "serve"]

RENEWAL_SECONDS = 0.5
"""Between two looks at the files of certificates."""

POSITION_TICKS = 10
"""Ticks after which the others are told again what a replica holds, if it changed."""

logger = logging.getLogger("viewproof.impl.net")


class Opened(NamedTuple):
    """The files of one group."""

    data: DataFile
    trace: TraceWriter | None
    metrics: GroupMetrics


class Server:
    """The process. ``run`` returns after ``stop``; it raises ServerError if it has to give up."""

    def __init__(self, config: ServerConfig, opened: dict[Group, Opened]) -> None:
        superblock = next(iter(opened.values())).data.superblock
        self._config = config
        limits = limits_of(superblock.replica_count, len(opened), config.clients_max)
        if limits is None:
            raise ServerError("the limit of open files (ulimit -n) leaves no room beside replicas and files")
        self._peers = stand_in("peers", Peers, config.faults, superblock.replica)(
            cluster=superblock.cluster,
            replica=superblock.replica,
            addresses=config.addresses,
            configuration=configuration_of(
                [files.data.superblock for files in opened.values()],
                config.checkpoint_interval,
                config.segment_bytes,
                config.layout,
            ),
            incarnation=secrets.randbits(62) | 1,
            sessions=superblock.clients.sessions,
            positions=self._positions,
            tls=None if config.tls is None else Tls(config.tls),
            on_outdated=lambda group, reason: self._groups[group].on_outdated(reason),
        )
        self._host = InboundHost(
            peers=self._peers,
            limits=limits,
            on_request=self._on_request,
            on_peer_message=self._on_peer_message,
            status=self.status,
            flush_later=self._flush_later,
            kind=stand_in("inbound", Inbound, config.faults, superblock.replica),
        )
        others = (peer for peer in range(superblock.replica_count) if peer != superblock.replica)
        self.links = {peer: PeerLink(peer, self._peers, self._host.log) for peer in others}
        self.clients: dict[tuple[int, int], Inbound] = self._host.clients
        self._guard = stand_in("guard", Guard, config.faults, superblock.replica)()
        self.failure: ServerError | None = None
        self._groups = GroupTable({group: GroupHost(group, self, config, *files) for group, files in opened.items()})
        self._flush_due: asyncio.Handle | None = None
        self._told: tuple[Position, ...] = ()
        self._done = asyncio.Event()

    def stop(self) -> None:
        """End ``run`` cleanly."""
        self._done.set()

    @property
    def stopping(self) -> bool:
        """True once ``run`` is to end."""
        return self._done.is_set()

    def status(self, number: int | None) -> Status:
        """What the replica of a group says of itself; of the first group, if None. Raises UnknownGroupError."""
        numbers = tuple(group.number for group in self._groups.groups)
        status = self._groups[numbers[0] if number is None else number].status(numbers)
        return msgspec.structs.replace(
            status,
            refused=tuple(sorted(self._host.refused.items())),
            connections=self._host.counts(),
            problems=(*(text for group in self._groups for text in group.problems()), *self._peers.problems()),
            configuration=self._peers.configuration.digest,
            heard=self._peers.heard,
            namespace_bits=self._peers.configuration.namespace_bits,
            notices=self._host.expiry.notices(),
        )

    def metrics(self) -> str:
        """What the process measures, as Prometheus reads it."""
        self._forget_clients()
        return exposition(self._samples())

    def _samples(self) -> Iterator[Sample]:
        labels = (("replica", str(self._peers.replica)),)
        for group in self._groups:
            yield from group.samples(labels)
        replicas, clients, _ = self._host.counts()
        yield gauge("viewproof_connections", (*labels, ("of", "replicas")), replicas)
        yield gauge("viewproof_connections", (*labels, ("of", "clients")), clients)
        for name, times in sorted(self._host.refused.items()):
            yield counter("viewproof_refused_total", (*labels, ("what", name)), times)

    def _forget_clients(self) -> None:
        for group in self._groups:
            group.metrics.keep(functools.partial(self._is_connected, group.group.number))

    def _is_connected(self, group: int, client: int) -> bool:
        return (group, client) in self.clients

    def _positions(self) -> tuple[Position, ...]:
        """What the data directories hold; nothing is said of it by a process with mistakes switched on."""
        incarnation = self._peers.incarnation
        return () if self._config.faults else tuple(group.position(incarnation) for group in self._groups)

    def _tell_positions(self) -> None:
        """What this replica holds, to the others, who notice if its data directory holds less at some later time."""
        positions = self._peers.all_positions()
        if positions != self._told:
            self._told = positions
            frame = frame_control(Holds(positions))
            for link in self.links.values():
                link.send(frame)

    async def run(self) -> None:
        """Serve until ``stop``. Raises ServerError if the address cannot be bound, or on a fatal error."""
        address = self._config.addresses[self._peers.replica]
        listener = Listener(self._host)
        try:
            await listener.open(*address, loopback_only=self._peers.tls is None and not self._config.without_tls)
        except ValueError as error:
            raise ServerError(
                f"{error}, and whoever reaches a replica without TLS can forge what it is told: give --tls DIRECTORY "
                "(`vsr authority` makes one), or, on a network that you trust wholly, --without-tls"
            ) from error
        except OSError as error:
            raise ServerError(f"cannot listen on {address_text(address)}: {error.strerror or error}") from error
        measured = await self._open_metrics(listener)
        tasks = [asyncio.create_task(link.keep_up()) for link in self.links.values()]
        tasks.append(asyncio.create_task(self._host.look_after()))
        if self._peers.tls is not None:
            tasks.append(asyncio.create_task(self._renew(self._peers.tls)))
        try:
            for group in self._groups:
                group.boot()
            self.flush()
            tasks.append(asyncio.create_task(self._tick()))
            for task in tasks:
                task.add_done_callback(self._on_task_done)
            logger.info("replica %d of cluster %d on %s:%d", self._peers.replica, self._peers.cluster, *address)
            await self._done.wait()
        finally:
            listener.close()
            if measured is not None:
                measured.close()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for connection in tuple(self._host.connections):
                told = "" if self.failure is None or connection.is_client else str(self.failure)
                connection.part(told, stops=True)
            for group in self._groups:
                await group.close()
        if self.failure is not None:
            raise self.failure

    async def _open_metrics(self, listener: Listener) -> asyncio.Server | None:
        port = self._config.metrics_port
        try:
            return None if port is None else await serve_metrics(port, self.metrics)
        except OSError as error:
            listener.close()
            raise ServerError(f"cannot serve metrics on 127.0.0.1:{port}: {error.strerror or error}") from error

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        """None of them ends before the process, but for a mistake of this program."""
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("internal error", exc_info=error)
            self.fail(ServerError(f"internal error, see the log: {error!r}"))

    async def _renew(self, tls: Tls) -> None:
        """Takes new certificates into use: all connections begin anew; those whose certificate ends are closed."""
        while True:
            await asyncio.sleep(RENEWAL_SECONDS)
            try:
                if tls.refresh():
                    logger.info("%s: new certificates are in use", tls.directory)
                    self._host.part_all("certificates were renewed")
                    for link in self.links.values():
                        link.redial()
                self._peers.take_back(self._peers.replica, "tls")
            except TlsError as error:
                if self._peers.note(self._peers.replica, "tls", f"the certificates before go on: {error}"):
                    self._host.log.note(f"the certificates before go on: {error}")

    async def _tick(self) -> None:
        """Ticks at a fixed rate; a process that was held up does not make up for the ticks it missed."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        for number in count():
            due = max(due + self._config.tick_seconds, loop.time())
            await asyncio.sleep(due - loop.time())
            for group in self._groups:
                group.tick()
            if number % POSITION_TICKS == 0:
                self._tell_positions()
                self._forget_clients()
                for link in self.links.values():
                    link.look()
            self.flush()

    def _on_peer_message(self, number: int, message: Message) -> None:
        group = self._groups[number]
        if self._takes(message, group):
            group.on_message(message)

    def _takes(self, message: Message, group: GroupHost) -> bool:
        """False, counted and logged, if it is too far ahead of what the replica knows."""
        too_far = self._guard.too_far(message, group.replica.state)
        if too_far is not None:
            self._host.refused[too_far.field] += 1
            self._host.log.note(f"dropped: {too_far.text}")
        return too_far is None

    def _on_request(self, connection: Inbound, number: int, request: Request) -> None:
        group = self._groups[number]
        self._host.took(connection, number, request.client)
        replica = group.replica
        primary = replica.state.is_normal_primary and self._peers.has_majority
        if primary and self._takes(request, group):
            group.metrics.on_request(request.client, request.request)
            group.on_message(request)
            return
        group.metrics.on_turned_away("refused" if primary else "not_primary")
        hint = NotPrimary(request.client, request.request, replica.state.view, str(replica.state.status), number)
        connection.send(frame_control(hint))

    def _flush_later(self) -> None:
        """Flush after the input that this iteration of the event loop found was all handed over."""
        if self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_soon(self.flush)

    def flush(self) -> None:
        """Trace events, then messages, then durable writes."""
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        for group in self._groups:
            if self.failure is None:
                group.write_trace()
        if self.failure is not None:
            return
        for link in self.links.values():
            link.flush()
        to_flush, self._host.to_flush = self._host.to_flush, []
        for connection in to_flush:
            connection.flush()
        for group in self._groups:
            group.start_io()

    def fail(self, error: ServerError) -> None:
        """The process has to stop: ``run`` raises the first error."""
        if self.failure is None:
            logger.error("stopping: %s", error)
            self.failure = error
            self._done.set()


_FORESEEN = (StorageError, SnapshotError, TraceError, ConfigurationError, FaultError, UnknownEntryError, TlsError)


async def serve(config: ServerConfig, stop: asyncio.Event | None = None) -> None:
    """Open data directories and traces, run the replicas until ``stop`` is set or SIGTERM or SIGINT comes.

    Raises ServerError; its text is for the user.
    """
    try:
        there = groups_there(config.data, config.layout)
    except OSError as error:
        raise ServerError(f"{error.filename or config.data}: {error.strerror or error}") from error
    if there and there != config.groups:
        there_names, names = (",".join(group.name for group in groups) for groups in (there, config.groups))
        raise ServerError(f"{config.data} was formatted for --groups {there_names}, but {names} was asked for")
    with contextlib.ExitStack() as stack:
        try:
            opened = {group: _open(config, group, stack) for group in config.groups}
            if config.values is not None:
                _keep_settings(config, config.values)
            server = Server(config, opened)
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, server.stop)
            if config.until_stdin_closes:
                await loop.connect_read_pipe(lambda: _StdinWatcher(server), sys.stdin)
            watcher = asyncio.create_task(_stop_when_set(stop, server)) if stop is not None else None
            await server.run()
            if watcher is not None:
                watcher.cancel()
        except _FORESEEN as error:
            raise ServerError(str(error)) from error
        except OSError as error:
            raise ServerError(f"{error.filename or config.trace}: {error.strerror or error}") from error


def _keep_settings(config: ServerConfig, values: Mapping[Key, Value]) -> None:
    """A disk that refuses them now is no reason not to start: the settings that never change are those of before."""
    try:
        keep_effective(RealFileSystem(config.synced), config.data, values)
    except OSError as error:
        path = error.filename or config.data / EFFECTIVE_NAME
        logger.warning("%s: the settings in effect are not kept there: %s", path, error.strerror or error)


def _open(config: ServerConfig, group: Group, stack: contextlib.ExitStack) -> Opened:
    """The data directory and the trace of one group; both are closed with ``stack``."""
    metrics = GroupMetrics()
    data = open_data_file(
        data_path(config.data, group),
        config.cluster,
        config.replica,
        len(config.addresses),
        file_system=RealFileSystem(config.synced, metrics.sync_seconds.observe),
        check_views=not config.faults,
        group=group.number,
        segments=segments_with(config.faults),
        accept_loss=config.accept_loss,
    )
    stack.callback(data.close)
    _report_recovery(data, config.synced)
    if config.trace is None:
        return Opened(data, None, metrics)
    trace = TraceWriter(trace_path(config.trace, group))
    stack.callback(trace.close)
    trace.require_of(config.replica, group.run(config.run))
    if trace.clock > COUNTER_MAX:
        raise ServerError(f"{trace.path}: its last event has clock {trace.clock}, which is out of range: begin another")
    return Opened(data, trace, metrics)


class _StdinWatcher(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self._server = server

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.stop()


async def _stop_when_set(stop: asyncio.Event, server: Server) -> None:
    await stop.wait()
    server.stop()


def _report_recovery(data: DataFile, synced: bool) -> None:
    for problem in data.problems:
        logger.warning("%s", problem)
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
    """Command line of one server process; returns the exit code. Its settings are those of `impl.net.settings`."""
    parser = argparse.ArgumentParser(prog="python -m viewproof.impl.net.server", description="Run one replica.")
    parser.add_argument("--config", type=Path, help="configuration file (TOML)")
    for key, setting in SETTINGS.items():
        option = "--data" if key == ("replica", "data") else setting.option
        action = "store_true" if setting.kind is bool else "append" if option == "--feature" else "store"
        parser.add_argument(option, dest=".".join(key), action=action, default=None, help=setting.text)
    parser.add_argument("--fault", action="append", default=[], help="named mistake to switch on (for tests)")
    parser.add_argument("--accept-loss", action="store_true", help="start without lost messages, if on its own")
    parser.add_argument("--flush-each", action="store_true", help="one flush for every entry: for measurements only")
    parser.add_argument("--no-sync", action="store_true", help="flush nothing to the disk: for measurements only")
    parser.add_argument("--until-stdin-closes", action="store_true", help="end when stdin does (for a parent process)")
    options = parser.parse_args(arguments)
    try:
        values = resolve(options.config, {key: getattr(options, ".".join(key)) for key in SETTINGS})
        config = server_config(
            values,
            faults=frozenset(options.fault),
            until_stdin_closes=options.until_stdin_closes,
            accept_loss=options.accept_loss,
            flush_each=options.flush_each,
            synced=not options.no_sync,
        )
        logging.basicConfig(
            stream=sys.stderr,
            level=logging.INFO,
            format=f"%(asctime)s replica {config.replica} %(levelname)s %(message)s",
        )
        run_server(config)
    except (ServerError, ConfigurationError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
