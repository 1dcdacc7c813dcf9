"""The client table: the latest executed request of each client and its reply (rule 9; protocol.md, I8 and I9)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from impl.checks import check
from impl.state_machine import DIGEST_MODULUS


@dataclass(frozen=True, slots=True)
class TableEntry:
    """The latest executed request of a client: its number, op, the view that prepared it, and the reply's body."""

    request: int
    op: int
    view: int
    body: bytes


def _entry_hash(client: int, entry: TableEntry) -> int:
    numbers = b"".join(number.to_bytes(8, "little") for number in (client, entry.request, entry.op, entry.view))
    return int.from_bytes(hashlib.blake2b(numbers + entry.body, digest_size=16, person=b"table").digest(), "little")


class ClientTable:
    """One entry per client; a function of the executed prefix of the log.

    `digest` is a set hash over the entries, like that of the state machine.
    """

    __slots__ = ("_hashes", "digest", "entries")

    def __init__(self) -> None:
        self.entries: dict[int, TableEntry] = {}
        self._hashes: dict[int, int] = {}
        self.digest = 0

    def get(self, client: int) -> TableEntry | None:
        """The client's entry, or None if none of its requests was executed."""
        return self.entries.get(client)

    def request_max(self, client: int) -> int:
        """The number of the client's latest executed request; 0 if there is none."""
        entry = self.entries.get(client)
        return 0 if entry is None else entry.request

    def record(self, client: int, request: int, op: int, view: int, body: bytes) -> None:
        """Records an executed request, which replaces the client's entry."""
        check(client >= 1, f"client {client} is below 1")
        entry = TableEntry(request, op, view, body)
        entry_hash = _entry_hash(client, entry)
        self.digest = (self.digest - self._hashes.get(client, 0) + entry_hash) % DIGEST_MODULUS
        self._hashes[client] = entry_hash
        self.entries[client] = entry
