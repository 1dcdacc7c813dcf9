"""A run kept in files of the directory of a state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

import msgspec

from viewproof.refinement.adapter import adapter
from viewproof.refinement.going_on import frames
from viewproof.refinement.going_on.directory import Directory, Entry, StateError
from viewproof.refinement.going_on.frames import DamagedError
from viewproof.refinement.going_on.kept import Kept
from viewproof.refinement.packing import row_decoder
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AuditOptions

ROWS_A_FRAME = 512
_decode = msgspec.msgpack.Decoder(Kept).decode


class InFiles:
    """The place of one run: a file of its final events, and one of its state and the others."""

    def __init__(self, run_id: str, directory: Directory, options: AuditOptions) -> None:
        self.run_id, self.directory = run_id, directory
        self.entry = directory.index.runs.get(run_id)
        self._row = row_decoder(adapter(options.adapter).system.table).decode

    def load(self) -> tuple[Kept, Iterable[Row]] | None:
        """What the file of the state says."""
        if self.entry is None:
            return None
        file = self.directory.state(self.entry)
        try:
            pieces = frames.read(file, self.entry.size)
            return _decode(next(pieces)), list(self._rows(pieces))
        except (StopIteration, msgspec.MsgspecError, DamagedError) as error:
            raise StateError(f"{file}: the state is damaged: {error}") from None

    def _rows(self, pieces: Iterable[bytes]) -> Iterator[Row]:
        for piece in pieces:
            yield from map(self._row, msgspec.msgpack.decode(piece, type=list[msgspec.Raw]))

    def final(self) -> Iterator[Row]:
        """What the file of final events says."""
        if self.entry is None:
            return
        file = self.directory.log(self.entry)
        try:
            yield from self._rows(frames.read(file, self.entry.log))
        except (msgspec.MsgspecError, DamagedError) as error:
            raise StateError(f"{file}: the state is damaged: {error}") from None

    def keep(self, kept: Kept, final: list[Row], waiting: list[Row], *, anew: bool) -> None:
        """Write the state, and the final events behind the others or as a file of their own; note both as changed."""
        directory, generation, old = self.directory, self.directory.generation, self.entry
        length = 0 if old is None or anew else old.log
        log_generation = old.log_generation if old is not None and length else generation
        entry = Entry(directory.new_number(self.run_id), length, 0, generation, log_generation)
        if final or not length:
            length = frames.write(directory.log(entry), _batches(final), at=length)
        size = frames.write(directory.state(entry), chain([kept], _batches(waiting)))
        directory.changed[self.run_id] = msgspec.structs.replace(entry, log=length, size=size)


def _batches(rows: list[Row]) -> Iterator[list[Row]]:
    return (rows[at : at + ROWS_A_FRAME] for at in range(0, len(rows), ROWS_A_FRAME))
