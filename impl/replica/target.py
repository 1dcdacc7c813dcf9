"""A log that is to be installed, and the snapshot below it that may have to be fetched first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from viewproof.impl.interface.messages import CHECKSUM_NONE, PrepareHeader
from viewproof.impl.machine.partition_log import SegmentRef
from viewproof.impl.machine.snapshot import Snapshot
from viewproof.impl.replica.restore import Restored


@dataclass(slots=True)
class WantedSnapshot:
    """A snapshot that comes in chunks: what is here so far, of `size` bytes.

    `snapshot` is all of it, verified, `segments` what it names; `restored` once those are on this disk.
    """

    op: int
    checksum: str
    size: int
    received: bytearray = field(default_factory=bytearray)
    snapshot: Snapshot | None = None
    segments: tuple[SegmentRef, ...] = ()
    restored: Restored | None = None
    durable: bool = False


@dataclass(slots=True)
class InstallTarget:
    """The log of a start_view, or the one the new primary chose (`as_primary`); then `on_installed` is called.

    `headers` is a window that ends at `op` and connects to the own log below it, or to `snapshot`, which then takes
    the place of all below. `source` is the replica whose log it is, `seq` the event of the start_view (0 for the
    primary's own choice). What it lacks is asked of `source` first, or of the replica `shift` places after it.
    """

    view: int
    op: int
    commit: int
    headers: tuple[PrepareHeader, ...]
    source: int
    seq: int
    on_installed: Callable[[InstallTarget], None]
    as_primary: bool = False
    snapshot: WantedSnapshot | None = None
    attempts: int = 0
    shift: int = 0
    asked_at: int = 0

    @property
    def base(self) -> int:
        """The op below the window: the own log up to it is kept."""
        return self.op - len(self.headers)


def checksums(headers: tuple[PrepareHeader, ...]) -> tuple[str, ...]:
    """The column m_log of a window."""
    return tuple(header.checksum for header in headers)


def window_error(headers: tuple[PrepareHeader, ...], op: int, view: int) -> str | None:
    """Why a window received is malformed, or None: ends at `op`, chained by parents, views rising to at most `view`."""
    if not headers:
        return None if op == 0 else "window is empty below a log head"
    if headers[-1].op != op or headers[0].op < 1:
        return "window does not end at op"
    if headers[0].op == 1 and headers[0].parent != CHECKSUM_NONE:
        return "op 1 has a parent"
    if headers[-1].view > view:
        return "entry of a view above the message's"
    for before, after in pairwise(headers):
        if after.op != before.op + 1 or after.parent != before.checksum or after.view < before.view:
            return "window is not a chain"
    return None
