"""The client table: what is remembered of each client (docs/clients-and-control.md; seed 000, I8 and I9).

A function of the executed prefix of the log: the same bytes on every replica at the same commit_min.
"""

from __future__ import annotations

import hashlib
import struct

import msgspec

from viewproof.impl.interface.checks import InvariantError, check
from viewproof.impl.interface.durable import ClientTableConfig
from viewproof.impl.machine.state_machine import DIGEST_MODULUS

_HEADER = struct.Struct("<I??xxQ")  # slots, sessions, gaps, number of places
_SLOT = struct.Struct("<6QI")  # client, session, incarnation, request, op, view, size of the result
_FREE, _TAKEN = b"\0", b"\1"


class TableError(ValueError):
    """Bytes that are no client table of this configuration."""


class Slot(msgspec.Struct, frozen=True, gc=False):
    """What is known of a client: its session and incarnation (0 without sessions), and its latest executed request.

    `request` is 0 while that is its register; `op` and `view` are those of the request's prepare, `body` its result.
    """

    client: int
    session: int
    incarnation: int
    request: int
    op: int
    view: int
    body: bytes

    def to_bytes(self) -> bytes:
        """Canonical bytes."""
        numbers = (self.client, self.session, self.incarnation, self.request, self.op, self.view)
        return _SLOT.pack(*numbers, len(self.body)) + self.body


class ClientTable:
    """Slots in an array, and an index client → place. With `slots` 0 the array grows, and nobody is evicted.

    `digest` is a set hash over slots and places.
    """

    __slots__ = ("_hashes", "config", "digest", "places", "slots")

    def __init__(self, config: ClientTableConfig) -> None:
        self.config = config
        self.slots: list[Slot | None] = [None] * config.slots
        self.places: dict[int, int] = {}
        self.digest = 0
        self._hashes = [0] * config.slots

    def get(self, client: int) -> Slot | None:
        """The client's slot, or None if it has none."""
        place = self.places.get(client)
        return None if place is None else self.slots[place]

    def register(self, client: int, session: int, incarnation: int, op: int, view: int, body: bytes) -> int | None:
        """Executes a register: the client's new session. Returns the client that was evicted for it."""
        return self._put(Slot(client, session, incarnation, 0, op, view, body))

    def record(self, client: int, session: int, request: int, op: int, view: int, body: bytes) -> int | None:
        """Records an executed request. Returns the client that was evicted for it (only without sessions).

        With sessions, a request whose session has lost its slot leaves the table alone.
        """
        slot = self.get(client)
        if slot is not None:
            if slot.session != session:
                return None
        elif not self.takes_unknown:
            return None
        incarnation = 0 if slot is None else slot.incarnation
        return self._put(Slot(client, session, incarnation, request, op, view, body))

    @property
    def takes_unknown(self) -> bool:
        """True if a client that has no slot begins with any request."""
        return not self.config.sessions

    def _put(self, slot: Slot) -> int | None:
        if slot.client < 1:
            raise InvariantError(f"client {slot.client} is below 1")
        evicted: int | None = None
        place = self.places.get(slot.client)
        before = None if place is None else self.slots[place]
        if before is not None:
            self.require_newer(before, slot)
        if place is None:
            place = self._free_place()
            if place is None:
                place, evicted = self._evict()
            self.places[slot.client] = place
        self._set(place, slot)
        return evicted

    def require_newer(self, before: Slot, slot: Slot) -> None:
        """A slot is replaced by a later one of its client only: the same log is executed once, in order (seed 000)."""
        if slot.client != before.client:
            raise InvariantError(f"client {slot.client}: its place is that of client {before.client}")
        if slot.op <= before.op:
            raise InvariantError(f"client {slot.client}: op {slot.op} executed after {before.op}")
        if slot.request:
            self._require_rise(slot.client, "request", slot.request, "executed", before.request)
            return
        self._require_rise(slot.client, "session", slot.session, "opened", before.session)
        self._require_rise(slot.client, "incarnation", slot.incarnation, "registered", before.incarnation)

    def _require_rise(self, client: int, what: str, number: int, how: str, before: int) -> None:
        if number <= before:
            raise InvariantError(f"client {client}: {what} {number} {how} after {before}")

    def _free_place(self) -> int | None:
        if self.config.slots == 0:
            self.slots.append(None)
            self._hashes.append(0)
            return len(self.slots) - 1
        if len(self.places) == self.config.slots:
            return None
        return self.slots.index(None)

    def _evict(self) -> tuple[int, int]:
        """The place of the slot with the lowest rank (ties: the lowest place), freed, and its client."""
        taken = [(place, slot) for place, slot in enumerate(self.slots) if slot is not None]
        check(len(taken) == len(self.slots), "a table that evicts is full")
        place, victim = min(taken, key=lambda each: self.eviction_rank(each[1]))
        del self.places[victim.client]
        return place, victim.client

    def eviction_rank(self, slot: Slot) -> int:
        """The slot of the lowest rank is evicted: that of the lowest op."""
        return slot.op

    def _set(self, place: int, slot: Slot) -> None:
        self.slots[place] = slot
        data = struct.pack("<Q", place) + slot.to_bytes()
        new = int.from_bytes(hashlib.blake2b(data, digest_size=16, person=b"table").digest(), "little")
        self.digest = (self.digest - self._hashes[place] + new) % DIGEST_MODULUS
        self._hashes[place] = new

    def to_bytes(self) -> bytes:
        """Canonical bytes: the configuration, then every place in order. Equal tables have equal bytes."""
        config = self.config
        parts = [_HEADER.pack(config.slots, config.sessions, config.gaps, len(self.slots))]
        parts += [_FREE if slot is None else _TAKEN + slot.to_bytes() for slot in self.slots]
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, data: bytes, config: ClientTableConfig) -> ClientTable:
        """The table in `data`. Raises `TableError` if the bytes are damaged or of another configuration."""
        table = cls(config)
        try:
            slots, sessions, gaps, count = _HEADER.unpack_from(data)
        except struct.error as error:
            raise TableError(f"client table: {error}") from error
        if data[: _HEADER.size] != _HEADER.pack(config.slots, config.sessions, config.gaps, count):
            found = f"slots {slots}, sessions {sessions}, gaps {gaps}"
            raise TableError(f"client table of another configuration: {found}; expected {config}")
        if slots and count != slots:
            raise TableError(f"client table: {count} places, expected {slots}")
        offset = _HEADER.size
        for place in range(count):
            slot, offset = _read_slot(data, offset, place)
            if place == len(table.slots):
                table.slots.append(None)
                table._hashes.append(0)
            if slot is None:
                continue
            if slot.client < 1 or slot.client in table.places:
                raise TableError(f"client table: place {place}: client {slot.client} is not allowed there")
            table.places[slot.client] = place
            table._set(place, slot)
        if offset != len(data):
            raise TableError(f"client table: {len(data) - offset} bytes after its end at {offset}")
        return table


def _read_slot(data: bytes, offset: int, place: int) -> tuple[Slot | None, int]:
    """The slot at `offset`, and the offset behind it."""
    mark = data[offset : offset + 1]
    if mark == _FREE:
        return None, offset + 1
    start = offset + 1 + _SLOT.size
    if mark != _TAKEN or start > len(data):
        raise TableError(f"client table: place {place} at byte {offset} is damaged")
    *numbers, size = _SLOT.unpack_from(data, offset + 1)
    body = data[start : start + size]
    if len(body) != size:
        raise TableError(f"client table: place {place} at byte {offset}: {len(body)} of {size} bytes of the result")
    client, session, incarnation, request, op, view = numbers
    return Slot(client, session, incarnation, request, op, view, body), start + size
