"""The log in memory: the entries above a base; what lies at or below the base is in a snapshot and drained.

Entries are addressed by op. The header of the entry at the base stays: later logs are compared with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from viewproof.impl.interface.checks import InvariantError, check
from viewproof.impl.interface.messages import CHECKSUM_NONE, Prepare, PrepareHeader


class Log:
    """Ops base+1..op, chained by parents. `base_header` is the entry at `base`, None where `base` is 0."""

    __slots__ = ("_entries", "base", "base_header", "head", "op")

    def __init__(self, entries: Iterable[Prepare] = (), base_header: PrepareHeader | None = None) -> None:
        """`entries` are those that follow the base, in op order."""
        self.base_header = base_header
        self.base = 0 if base_header is None else base_header.op
        self._entries = list(entries)
        self.op = self.base + len(self._entries)
        self.head = self._entries[-1].header.checksum if self._entries else self.base_checksum
        if self._entries:
            check(self._entries[-1].header.op == self.op, f"log of ops {self.base + 1}..{self.op} ends elsewhere")

    @property
    def base_checksum(self) -> str:
        """Checksum of the entry at `base`."""
        return CHECKSUM_NONE if self.base_header is None else self.base_header.checksum

    def __iter__(self) -> Iterator[Prepare]:
        return iter(self._entries)

    def __len__(self) -> int:
        """Number of entries above the base."""
        return len(self._entries)

    def __getitem__(self, op: int) -> Prepare:
        """The entry at `op`, base < op ≤ self.op. Raises `InvariantError` outside."""
        if not self.base < op <= self.op:
            raise InvariantError(f"op {op} is not in the log of ops {self.base + 1}..{self.op}")
        return self._entries[op - self.base - 1]

    def get(self, op: int) -> Prepare | None:
        """The entry at `op`, or None if it is not in memory."""
        return self._entries[op - self.base - 1] if self.base < op <= self.op else None

    def checksum(self, op: int) -> str | None:
        """Checksum of the entry at `op`, the base included; None outside base..op."""
        if self.base < op <= self.op:
            return self._entries[op - self.base - 1].header.checksum
        return self.base_checksum if op == self.base else None

    def slice(self, first: int, last: int) -> list[Prepare]:
        """Entries first..last, as far as they are in memory."""
        return self._entries[max(0, first - self.base - 1) : max(0, last - self.base)]

    def headers(self, from_op: int) -> tuple[PrepareHeader, ...]:
        """Headers of ops from_op..op above the base; at least that of the head, if there is one."""
        first = max(self.base + 1, min(from_op, self.op))
        if first > self.op:
            return () if self.base_header is None else (self.base_header,)
        return tuple(prepare.header for prepare in self._entries[first - self.base - 1 :])

    def connects(self, headers: tuple[PrepareHeader, ...]) -> bool:
        """True if the log holds the entry below the window, or its base is one of the window's entries."""
        if not headers:
            return True
        base = self.base
        if headers[0].op <= base:
            return base <= headers[-1].op and headers[base - headers[0].op].checksum == self.base_checksum
        return self.checksum(headers[0].op - 1) == headers[0].parent

    def differs(self, headers: tuple[PrepareHeader, ...], last: int) -> tuple[int, str] | None:
        """The lowest op up to `last` at which a window has another entry, and that entry's checksum; None: nowhere."""
        if not headers:
            return None
        first = headers[0]
        shown = [(first.op - 1, first.parent)]
        shown += [(header.op, header.checksum) for header in headers[: max(0, last - first.op + 1)]]
        for op, checksum in shown:
            own = self.checksum(op) if op <= last else None
            if own is not None and own != checksum:
                return op, checksum
        return None

    def append(self, prepare: Prepare) -> None:
        """The entry at op + 1."""
        header = prepare.header
        if header.op != self.op + 1:
            raise InvariantError(f"op {header.op} appended after op {self.op}")
        self._entries.append(prepare)
        self.op = header.op
        self.head = header.checksum

    def restamp(self, prepare: Prepare) -> None:
        """The entry at `op` with another sender's clock and event; the same entry."""
        check(prepare.header.checksum == self.head, "only the sending of the head changes")
        self._entries[-1] = prepare

    def truncate(self, op: int) -> None:
        """Drops the entries above `op`, base ≤ op."""
        check(self.base <= op <= self.op, f"op {op} is not in {self.base}..{self.op}")
        del self._entries[op - self.base :]
        self.op = op
        self.head = self._entries[-1].header.checksum if self._entries else self.base_checksum

    def drain(self, op: int) -> None:
        """Drops the entries at and below `op`, base < op ≤ self.op: `op` is the base now."""
        if op == self.base:
            return
        header = self[op].header
        del self._entries[: op - self.base]
        self.base = op
        self.base_header = header
