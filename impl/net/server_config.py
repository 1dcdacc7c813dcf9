"""How a server process is run: its configuration, its errors, addresses, and where each group keeps its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viewproof.impl.groups.group import GROUPS, NAMESPACES, PARTITION_PREFIX, SINGLE, Group, partition_group
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.machine.partition_log import SEGMENT_BYTES
from viewproof.impl.net.address import Address
from viewproof.impl.storage.data_file import JOURNAL_NAME, SUPERBLOCK_NAME

__all__ = [
    "CHECKPOINT_INTERVAL",
    "ServerConfig",
    "ServerError",
    "data_path",
    "groups_there",
    "parse_addresses",
    "trace_path",
]

CHECKPOINT_INTERVAL = 10_000
"""Ops between two checkpoints of a server, unless set otherwise."""


SCRUB_BYTES_PER_SECOND = 1 << 20
"""Of segments on the disk, read to see if they are right, unless set otherwise."""


class ServerError(Exception):
    """The server could not start or had to stop; the text says why and names the file or address."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    """How one process is run: one replica of each of ``groups``.

    ``addresses`` of all replicas by index; ``cluster`` and the replica count must match the data directory;
    ``trace`` None: no trace. ``run`` is the run id in the trace. A tick is ``tick_seconds``; the replica's own
    timeouts count ticks. ``until_stdin_closes``: end when stdin does, so that no replica outlives its parent.
    ``checkpoint_interval``: ops between two checkpoints, 0: none. ``supports``: features of this member, bit f-1 is
    feature f. ``pipeline_max``: entries prepared and not committed, and entries in one append to the journal.
    ``segment_bytes``: the size at which segments of messages roll, the same on every replica, for ever.
    ``scrub_bytes_per_second``: so much of them is read to see if it is right, 0: nothing.
    ``accept_loss``: start without messages that are lost, if there is no other replica.
    ``clients_max``: connections of clients, as many as the limit of open files leaves room for, and not above the
    default of impl/net/limits.py unless given. ``tls``: directory of the process's certificate (impl/net/tls.py);
    without it only addresses of this machine are served, unless ``without_tls``. ``metrics_port``: where this machine
    may read what the process measures (impl/net/metrics.py); None: nowhere.
    ``layout``: how a namespace is packed. ``values``: the settings that this was made of (impl/net/settings.py), to be
    kept beside the data; None: nothing is kept.
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
    until_stdin_closes: bool = False
    pipeline_max: int = 256
    synced: bool = True
    flush_each: bool = False
    groups: tuple[Group, ...] = (SINGLE,)
    supports: int = 0
    checkpoint_interval: int = CHECKPOINT_INTERVAL
    segment_bytes: int = SEGMENT_BYTES
    scrub_bytes_per_second: int = SCRUB_BYTES_PER_SECOND
    accept_loss: bool = False
    clients_max: int | None = None
    tls: Path | None = None
    without_tls: bool = False
    metrics_port: int | None = None
    layout: NamespaceLayout = NAMESPACES
    values: Mapping[tuple[str, str], Any] | None = None


HOST_SIZE_MAX = 253
LABEL_SIZE_MAX = 63


def _labels(host: str) -> list[str]:
    """The parts of a name; the dot of a full one ends it. An address of version 6 is a part of its own."""
    return [host.partition("%")[0]] if ":" in host else host.removesuffix(".").split(".")


def parse_addresses(text: str) -> tuple[Address, ...]:
    """``host:port,host:port,...`` as a tuple. Raises ServerError naming the part that is wrong."""
    addresses: list[Address] = []
    for part in text.split(","):
        host, _, port = part.strip().rpartition(":")
        host = host.strip("[]")
        if not host or not (port.isascii() and port.isdecimal()) or not 0 < int(port) < 1 << 16:
            raise ServerError(f"address {part.strip()!r} is not HOST:PORT")
        if not host.isascii():
            raise ServerError(f"address {part.strip()!r}: give the name in letters that DNS has (xn--…)")
        if len(host) > HOST_SIZE_MAX or not all(0 < len(label) <= LABEL_SIZE_MAX for label in _labels(host)):
            raise ServerError(f"address {part.strip()!r}: parts of a name are 1 to {LABEL_SIZE_MAX} letters long")
        if (host, int(port)) in addresses:
            raise ServerError(f"address {part.strip()!r} is there twice: each replica has its own")
        addresses.append((host, int(port)))
    return tuple(addresses)


def data_path(data: Path, group: Group) -> Path:
    """The data directory of a group: that of the process itself, if it runs one group alone, else one below it."""
    return data if group == SINGLE else data / group.name


_OF_GROUP = (SUPERBLOCK_NAME, JOURNAL_NAME)


def groups_there(data: Path, layout: NamespaceLayout = NAMESPACES) -> tuple[Group, ...]:
    """The groups that a process's data directory was formatted for, by number; also those of which a file is lost.

    Raises ConfigurationError.
    """
    below = {path.parent.name for name in _OF_GROUP for path in data.glob(f"{PARTITION_PREFIX}*/{name}")}
    single = [partition_group(name.removeprefix(PARTITION_PREFIX), layout) for name in sorted(below)]
    found = [group for group in GROUPS if any((data_path(data, group) / name).exists() for name in _OF_GROUP)]
    return tuple(sorted([*found, *single], key=lambda group: group.number))


def trace_path(trace: Path, group: Group) -> Path:
    """The trace file of a group: each group is a run of its own, ``DIR/RUN.GROUP/FILE`` beside ``DIR/RUN/FILE``."""
    if group == SINGLE:
        return trace
    directory = trace.absolute().parent
    return directory.with_name(group.run(directory.name)) / trace.name
