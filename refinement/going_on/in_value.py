"""A run kept as one value: bytes, for a row of a table or a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import zstandard

from viewproof.refinement.adapter import adapter
from viewproof.refinement.going_on.directory import StateError
from viewproof.refinement.going_on.kept import Kept
from viewproof.refinement.going_on.subject import asked, differs
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions

_NODE, _SEQ = INDEX["node"], INDEX["seq"]
_encode = msgspec.msgpack.Encoder().encode

Event = tuple[bytes, str | None]
"""A packed row, and the columns of its event that the format does not have, as JSON."""


class Value(msgspec.Struct):
    """What is kept: of which specification, audit and options (`subject`), the state, the final events compressed in
    `frames`, the others, and the own columns of events that the verdict names (node, seq, JSON). A run with `problems`
    is malformed, and is not judged again.
    """

    subject: str
    kept: Kept | None = None
    frames: list[bytes] = []
    waiting: list[Event] = []
    named: list[tuple[int, int, str]] = []
    problems: list[str] = []
    options: dict[str, str] = {}


_decode = msgspec.msgpack.Decoder(Value).decode
_events = msgspec.msgpack.Decoder(list[Event]).decode


class InValue:
    """The place of one run; `own` are the own columns of events, by node and seq: those of the new ones, and of all
    that were looked at.
    """

    def __init__(self, run_id: str, value: bytes, subject: str, options: AuditOptions) -> None:
        self.own: dict[tuple[int, int], str] = {}
        self._row = row_decoder(adapter(options.adapter).system.table).decode
        self.value = Value(subject, options=asked(options))
        if value:
            try:
                self.value = _decode(zstandard.decompress(value))
            except (zstandard.ZstdError, msgspec.MsgspecError) as error:
                raise StateError(f"the state of run {run_id} is damaged: {error}") from None
            if self.value.subject != subject:
                other = differs(self.value.options, options)
                raise StateError(f"the state of run {run_id} is of {other}; begin a new one")
            self.own = {(node, seq): own for node, seq, own in self.value.named}

    def bytes(self) -> bytes:
        """What is kept now."""
        return zstandard.compress(_encode(self.value), 1)

    def load(self) -> tuple[Kept, Iterable[Row]] | None:
        """What the value says."""
        return None if self.value.kept is None else (self.value.kept, list(self._rows(self.value.waiting)))

    def _rows(self, events: Iterable[Event]) -> Iterator[Row]:
        for packed, own in events:
            row = self._row(packed)
            if own is not None:
                self.own[row[_NODE], row[_SEQ]] = own
            yield row

    def final(self) -> Iterator[Row]:
        """The frames, unpacked."""
        for frame in self.value.frames:
            yield from self._rows(_events(zstandard.decompress(frame)))

    def keep(self, kept: Kept, final: list[Row], waiting: list[Row], *, anew: bool) -> None:
        """Change the value."""
        value = self.value
        value.kept, value.waiting = kept, self._packed(waiting)
        value.frames = [] if anew else value.frames
        if final:
            value.frames = [*value.frames, zstandard.compress(_encode(self._packed(final)), 1)]
        wanted = {(v.node, v.seq) for v in kept.verdict.violations}
        value.named = [(*at, self.own[at]) for at in sorted(wanted) if at in self.own]

    def _packed(self, rows: Iterable[Any]) -> list[Event]:
        return [(_encode(row), self.own.get((row[_NODE], row[_SEQ]))) for row in rows]
