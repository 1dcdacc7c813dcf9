"""The journal as two rings: headers and prepares, in fixed slots of an allocated file (seed 002, "Journal").

Layout. Two copies of the file header, one sector each; the header ring, one sector per cell; the prepare ring, cells of
`slot_size` bytes. An op has the slot `op % slots`, and a slot has two cells in each ring: while a log is being
installed, the old one and the new one may have different prepares at the same op, or at ops that share a slot, and the
old log must survive until the superblock names the new one (docs/core-protocol.md, rule 6). All is checksummed with its
own offset, so that a misdirected write is no valid record.

Append. The prepares, a sync, their headers, a sync: then they may be acknowledged. Before a cell is used whose
clean prepare has the same op, its header is erased. Before one above the last is written, the header of the last is,
if it was broken. A cluster of one appends one prepare at a time.

Recovery. Each cell is decided by `impl.storage.ring_table`. The log is the chain of `impl.interface.durable` through
the clean cells. It may need a prepare that is not clean: then, or if a slot that may hold what followed the head is
faulty, the log is damaged (`impl.interface.durable.DamagedLog`) and the replica repairs it from the cluster.

A prepare of a log to install that is written to a faulty cell hides that something was lost there. Its record says so
(`unsure`), and it counts as faulty for what follows the head until the superblock names another log_view.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from viewproof.impl.interface.durable import DamagedLog, SuperblockState, walk_chain
from viewproof.impl.interface.messages import Prepare, PrepareHeader
from viewproof.impl.storage.file import File, FileSystem
from viewproof.impl.storage.journal import Journal, JournalRefusedError
from viewproof.impl.storage.records import (
    RECORD_HEADER_SIZE,
    JournalError,
    padded,
)
from viewproof.impl.storage.ring_cells import (
    NO_HEADER,
    AppendError,
    Cell,
    RingCells,
    RingRecovery,
    may_have_held,
    uncertain,
)
from viewproof.impl.storage.ring_file import SECTOR, Geometry, encode_ring_header, is_ring, read_ring_header
from viewproof.impl.storage.ring_table import Bounds, Decision, decide, is_beyond
from viewproof.impl.storage.vanished import require_size, with_name


class RingJournal(RingCells):
    """The journal of one replica over an open file. Not thread-safe: one append at a time."""

    def __init__(self, file: File, geometry: Geometry, superblock: SuperblockState) -> None:
        super().__init__(file, geometry, superblock)
        self._drained = superblock.checkpoint
        self._live: set[str] = set()
        self._damaged = False
        self._writes = 0
        self._failed: str | None = None
        self.recovery = RingRecovery(0)

    @classmethod
    def format(cls, file: File, cluster: int, replica: int, slots: int, slot_size: int) -> None:
        """Write the file header to an empty file, and give the file its size. Raises JournalError."""
        geometry = Geometry(slots, slot_size)
        if file.size():
            raise JournalError(f"{file.path}: not empty ({file.size()} bytes); refusing to overwrite it")
        try:
            file.write_at(geometry.size - 1, b"\0")
            file.write_at(0, encode_ring_header(cluster, replica, geometry) * 2)
            file.sync()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot write the journal's header: {error.strerror}") from error

    @classmethod
    def open(cls, file: File, superblock: SuperblockState) -> RingJournal:
        """Decide every cell, rewrite the headers that need it, find the log. Raises JournalError (see `log`)."""
        geometry = read_ring_header(file, superblock.cluster, superblock.replica)
        journal = cls(file, geometry, superblock)
        try:
            journal._recover()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot write or sync the journal: {error.strerror or error}") from error
        journal.on_superblock(superblock)
        try:
            journal._name(journal._live)
            journal._damaged = journal.is_damaged(superblock)
            journal._scrub()
        except OSError as error:
            raise JournalError(f"{file.path}: cannot write or sync the journal: {error.strerror or error}") from error
        return journal

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self.geometry.size

    # Recovery

    def _recover(self) -> None:
        cells = range(self.geometry.cells)
        headers = [self._read_header(cell) for cell in cells]
        prepares = [self._read_prepare(cell) for cell in cells]
        ops = [found.header.op for found, *_ in (*headers, *prepares) if found.header is not None]
        checkpoint = self._superblock.checkpoint
        bounds = Bounds(checkpoint, checkpoint + self.geometry.slots, max((checkpoint, *ops)))
        rows: Counter[str] = Counter()
        decisions: Counter[str] = Counter()
        cut: list[int] = []
        for cell in cells:
            (header, repair, unsure), (prepare, p_repair, p_unsure) = headers[cell], prepares[cell]
            row, decision = decide(header, prepare, bounds)
            unsure = unsure and header.header is not None and header.header.op > checkpoint
            rows[row] += 1
            decisions[decision.value] += 1
            if decision in (Decision.EQL, Decision.FIX):
                hides = unsure or p_unsure if decision is Decision.EQL else p_unsure
                self._cells[cell] = Cell(prepare.header, (), p_repair, clean=True, unnamed=header.broken, unsure=hides)
                if decision is Decision.FIX and prepare.header is not None and not header.broken:
                    self._write_header(cell, prepare.header, p_repair, p_unsure)
            elif decision is Decision.CUT and (unsure or p_unsure) and is_beyond(header, prepare, bounds):
                self._cells[cell] = uncertain(header, prepare, bounds)
            elif decision is Decision.CUT:
                cut.append(cell)
            elif decision is Decision.VSR:
                known = tuple(found.header for found in (header, prepare) if found.header is not None)
                last = max(known, key=lambda each: (each.op, each.view), default=None)
                others = tuple(each for each in known if each is not last)
                flags = (repair, unsure) if last is header.header else (p_repair, p_unsure)
                self._cells[cell] = Cell(last, others, flags[0], faulty=True, unnamed=header.broken, unsure=flags[1])
        self._erase(cut)
        clean = sum(cell.clean for cell in self._cells)
        self.recovery = RingRecovery(clean, rows=rows, decisions=decisions)

    def _name(self, log: Collection[str] | None = None) -> None:
        """Writes the broken headers of clean prepares again: of those of the log, or all.

        The cell of another one may have held a later prepare, which the header named and whose write was lost.
        """
        named = False
        for cell, found in enumerate(self._cells):
            header = found.header
            if found.clean and found.unnamed and header is not None and (log is None or header.checksum in log):
                self._write_header(cell, header, found.repair, found.unsure)
                found.unnamed, named = False, True
        if named:
            self._sync()

    def _name_below(self, op: int) -> None:
        """Before a prepare of this op is written: the last one is known by itself, its header broken, only as long as
        none is above it. Its header is written again, and says that it may hide a later one (`_name`).
        """
        named = False
        for cell, found in enumerate(self._cells):
            if found.clean and found.unnamed and found.header is not None and found.header.op < op:
                self._write_header(cell, found.header, found.repair, unsure=True)
                found.unnamed, found.unsure, named = False, True, True
        if named:
            self._sync()

    def _scrub(self) -> None:
        """If the log is whole, what it does not need is made whole or erased, lest its end be uncertain one day."""
        if not self._damaged:
            self._name()
            self._erase_unneeded()

    def _erase_unneeded(self) -> None:
        """Erases faulty cells, but for those by which the end of the log is found.

        They say, or may have said, what was appended there. A prepare that was fetched, and written beside such a cell,
        does not say that it is of this log.
        """
        faulty = [cell for cell, found in enumerate(self._cells) if found.faulty]
        superblock = self._superblock
        own = [found.header for found in self._cells if found.header and found.clean and not found.repair]
        appended = {header.op for header in own if header.view == superblock.log_view}
        beyond = range(superblock.head_op + 1, self._end(superblock)[0] + 1)
        needed = {cell for op in beyond if op not in appended for cell in self.geometry.cells_of(op)}
        if unneeded := [cell for cell in faulty if cell not in needed]:
            self._erase(unneeded)

    # The log

    @property
    def damaged(self) -> tuple[str, ...]:
        """Which slots are faulty, in words."""
        faulty = [cell for cell, found in enumerate(self._cells) if found.faulty]
        return (f"{self._file.path}: {len(faulty)} faulty cells: {faulty[:10]}",) if faulty else ()

    def damage(self, superblock: SuperblockState) -> DamagedLog | None:
        """What is left of the log that `superblock` names, if the journal lost some of it, or does not know its end.

        Raises JournalError if nobody else has it: a cluster of one stops.
        """
        damage = self._damage(superblock)
        if damage is not None and superblock.replica_count == 1:
            lost = "the end of the log is uncertain" if damage.op_max > damage.head_op else "prepares are broken"
            raise JournalError(
                f"{self._file.path}: {lost} between op {superblock.checkpoint + 1} and op {damage.op_max}, and a "
                "cluster of one has nobody to repair from. Restore the file from a copy of this very replica"
            )
        return damage

    def _damage(self, superblock: SuperblockState) -> DamagedLog | None:
        if not self.is_damaged(superblock):
            return None
        base = superblock.checkpoint
        head_op, head = self._end(superblock)
        op_max = head_op
        while self._may_hold(op_max + 1, superblock):
            op_max += 1
        clean = [cell for cell, found in enumerate(self._cells) if found.clean and self._op(cell) > base]
        known = [
            header for found in self._cells if not found.clean for header in (found.header, *found.others) if header
        ]
        held = [prepare for cell in clean if (prepare := self._load(cell)) is not None]
        return DamagedLog(tuple(held), tuple(known), head_op, head, op_max)

    def is_damaged(self, superblock: SuperblockState) -> bool:
        head_op, head = self._end(superblock)
        return self._may_hold(head_op + 1, superblock) or bool(self._walk(head_op, head, superblock.checkpoint)[1])

    def _end(self, superblock: SuperblockState) -> tuple[int, str]:
        """The superblock's log head, extended by what was appended to it in its log_view, clean or only known.

        It leads over faulty slots to what was appended above them: that log has one prepare per op.
        """
        op, head = superblock.head_op, superblock.head_checksum
        appended = {
            header.op: header
            for cell in self._cells
            for header in (cell.header, *cell.others)
            if header is not None and not cell.repair and header.view == superblock.log_view
        }
        while True:
            above = op + 1
            while above not in appended and self._may_hold(above, superblock):
                above += 1
            after = appended.get(above)
            if after is None or (above == op + 1 and after.parent != head):
                return op, head
            op, head = above, after.checksum

    def _may_hold(self, op: int, superblock: SuperblockState) -> bool:
        """True if a cell of the slot of `op`, which is above the known log, may have held what followed there."""
        if op > superblock.checkpoint + self.geometry.slots:
            return False
        for cell in self.geometry.cells_of(op):
            found = self._cells[cell]
            fits = (found.faulty or found.unnamed) and may_have_held(found, op, superblock.log_view)
            if fits or self._is_unsure_of(cell, superblock):
                return True
        return False

    def _is_unsure_of(self, cell: int, superblock: SuperblockState) -> bool:
        """True if what was lost in the cell may be above the checkpoint."""
        return self._cells[cell].unsure and self._op(cell) > superblock.checkpoint

    def _walk(self, op: int, checksum: str, base: int) -> tuple[list[int], list[tuple[int, str]]]:
        """The clean cells of the chain from (op, checksum) down to `base`, and what is missing of it (the walk ends at
        a prepare whose header is not known).
        """
        clean: dict[str, int] = {}
        known: dict[str, PrepareHeader] = {}
        for at, found in enumerate(self._cells):
            for header in (found.header, *found.others):
                if header is None:
                    continue
                if found.clean:
                    clean[header.checksum] = at
                known[header.checksum] = header
        return walk_chain(op, checksum, base, clean, known.get)

    def log(self, superblock: SuperblockState, base_checksum: str | None = None) -> tuple[Prepare, ...]:
        """The log that `superblock` names, above its checkpoint. Raises JournalError if it is damaged."""
        head_op, head = self._end(superblock)
        chain, missing = self._walk(head_op, head, superblock.checkpoint)
        log = [prepare for cell in chain if (prepare := self._load(cell)) is not None]
        if missing or len(log) != head_op - superblock.checkpoint:
            raise JournalError(f"{self._file.path}: the log up to op {head_op} is damaged")
        parent = log[0].header.parent if log else head
        if base_checksum is not None and parent != base_checksum:
            raise JournalError(
                f"{self._file.path}: op {superblock.checkpoint + 1} of the log has the parent {parent or 'none'}; "
                f"expected {base_checksum or 'none'}, the entry at the checkpoint {superblock.checkpoint}"
            )
        return tuple(log)

    def log_names(self, superblock: SuperblockState, end: int | None = None) -> set[str]:
        """The checksums of the log that ``superblock`` names, up to ``end``, as far as they are clean."""
        chain, _ = self._walk(*self._end(superblock), superblock.checkpoint)
        headers = [header for cell in chain if (header := self._cells[cell].header) is not None]
        return {header.checksum for header in headers if end is None or header.op <= end}

    def on_superblock(self, superblock: SuperblockState) -> None:
        """The superblock is durable: what it names must not be overwritten. What is faulty is of no later log_view."""
        before, self._superblock = self._superblock, superblock
        if superblock.log_view != before.log_view:
            self._damaged = False
            for cell in self._cells:
                cell.unsure = False
        self._live = self.log_names(superblock)
        if superblock != before and not self._damaged:
            with suppress(OSError):  # it is tried again with the next one
                self._erase_unneeded()

    # Writing

    def append(self, prepares: Sequence[Prepare], repair: bool = False) -> None:
        """Append in order; durable when this returns.

        Raises JournalRefusedError if the disk refuses and nothing of it counts, JournalError if the journal cannot go
        on, or a prepare has no room.
        """
        if self._failed is not None:
            raise JournalError(f"{self._file.path}: an earlier write failed ({self._failed}); open the journal again")
        for prepare in prepares:
            self._check_fits(prepare, repair)
        step = 1 if self._superblock.replica_count == 1 else len(prepares)
        cells: list[int] = []
        try:
            for start in range(0, len(prepares), step or 1):
                cells += self._append(prepares[start : start + step], repair)
        except AppendError as error:
            self._take_back([*cells, *error.cells], str(error))
            raise JournalRefusedError(
                f"{self._file.path}: append of {len(prepares)} prepares failed: {error}; nothing of it was kept"
            ) from error
        if not repair:
            self._live |= {prepare.header.checksum for prepare in prepares}

    def _check_fits(self, prepare: Prepare, repair: bool) -> None:
        header, geometry = prepare.header, self.geometry
        if padded(RECORD_HEADER_SIZE + len(prepare.body)) > geometry.slot_size:
            raise JournalError(
                f"{self._file.path}: op {header.op}: body of {len(prepare.body)} bytes; a slot has {geometry.slot_size}"
            )
        if not repair and not self._drained < header.op <= self._drained + geometry.slots:
            raise JournalError(
                f"{self._file.path}: op {header.op} takes one of {geometry.slots} slots, and all up to op "
                f"{self._drained} are drained"
            )

    def _append(self, prepares: Sequence[Prepare], repair: bool) -> list[int]:
        cells: list[int] = []
        for prepare in prepares:
            cells.append(self._choose(prepare.header, cells))
        try:
            self._name_below(max(each.header.op for each in prepares))
            stale = [
                (cell, each)
                for cell, each in zip(cells, prepares, strict=True)
                if self._cells[cell].clean and self._op(cell) == each.header.op
            ]
            for cell, each in stale:
                self._write_stale_header(cell, each.header)
            if stale:
                self._sync()
            unsure = [repair and self._hides(cell) for cell in cells]
            for cell, prepare, hides in zip(cells, prepares, unsure, strict=True):
                self._write_prepare(cell, prepare, repair, hides)
            self._sync()
            for cell, prepare, hides in zip(cells, prepares, unsure, strict=True):
                self._write_header(cell, prepare.header, repair, hides)
            self._sync()
        except OSError as error:
            hiding = {cell for cell in cells if self._hides(cell)}
            for cell in hiding:  # what was there says that something is lost: it stays, as after a power loss
                self._cells[cell] = replace(self._cells[cell], clean=False, faulty=True)
            raise AppendError(error.strerror or str(error), [cell for cell in cells if cell not in hiding]) from error
        for cell, prepare, hides in zip(cells, prepares, unsure, strict=True):
            self._writes += 1
            self._cells[cell] = Cell(prepare.header, (), repair, True, unsure=hides, written=self._writes)
        return cells

    def _write_stale_header(self, cell: int, header: PrepareHeader) -> None:
        """Before a prepare is written over a clean one of the same op, whose header is not to be taken for its own.

        What hides a loss does so until another record says it; the same prepare stays known meanwhile.
        """
        found = self._cells[cell]
        if not self._hides(cell):
            self._file.write_at(self.geometry.header_at(cell), bytes(SECTOR))
        elif found.header == header:
            self._write_header(cell, header, found.repair, unsure=True)
        else:
            self._file.write_at(self.geometry.header_at(cell), NO_HEADER)

    def _hides(self, cell: int) -> bool:
        found = self._cells[cell]
        return found.faulty or found.unnamed or self._is_unsure_of(cell, self._superblock)

    def _choose(self, header: PrepareHeader, taken: Collection[int]) -> int:
        """The cell for a prepare: one that holds nothing of the log, rather free than faulty, rather old than new; of
        two that hold the same of it, that which was fetched.
        """

        def order(cell: int) -> tuple[bool, bool, bool, bool, bool, int]:
            found = self._cells[cell]
            name = "" if found.header is None else found.header.checksum
            used = cell in taken or name in self._live
            drained = found.clean and self._op(cell) <= self._drained
            other = self._damaged and found.clean and not drained
            appended = used and not found.repair
            return used, appended, name != header.checksum, other, found.faulty, found.written

        return min(self.geometry.cells_of(header.op), key=order)

    def _sync(self) -> None:
        try:
            self._file.sync()
        except OSError as error:
            self._fail("sync", error)

    def _fail(self, what: str, error: OSError) -> None:
        self._failed = error.strerror or str(error)
        raise JournalError(
            f"{self._file.path}: {what} failed: {self._failed}; what the disk holds is unknown, so the journal must be "
            "opened again"
        ) from error

    def _take_back(self, cells: Iterable[int], reason: str) -> None:
        """Erases what a failed append may have written. If that fails too, the journal refuses further appends."""
        try:
            self._erase(cells)
        except OSError as error:
            self._fail(f"erasing what a failed append ({reason}) wrote", error)

    def _erase(self, cells: Iterable[int]) -> None:
        for cell in cells:
            self._file.write_at(self.geometry.header_at(cell), bytes(SECTOR))
            self._file.write_at(self.geometry.prepare_at(cell), bytes(SECTOR))
            self._cells[cell] = Cell()
        self._sync()

    def drain(self, files: FileSystem, op: int, log: Collection[str] | None = None) -> None:
        """Slots up to `op` are free from now on; with `log`, all that it does not name is erased, durably.

        Raises JournalRefusedError if that failed and may be tried again, JournalError if the journal cannot go on.
        """
        if self._failed is not None:
            raise JournalError(f"{self._file.path}: an earlier write failed ({self._failed}); open the journal again")
        self._drained = max(self._drained, op)
        if log is None:
            return
        kept = {cell for cell, found in enumerate(self._cells) if found.header is not None and found.clean}
        kept = {cell for cell in kept if (header := self._cells[cell].header) is not None and header.checksum in log}
        used = (cell for cell, found in enumerate(self._cells) if found.faulty or self._op(cell) > op)
        try:
            self._erase([cell for cell in used if cell not in kept])
        except OSError as error:
            raise JournalRefusedError(f"{self._file.path}: cannot erase: {error.strerror or error}") from error
        self._damaged = False

    def relics(self, op: int) -> int:
        """None: the slots of drained ops are free."""
        return 0

    def read(self, checksum: str) -> Prepare | None:
        """The clean prepare of this checksum, or None."""
        for cell, found in enumerate(self._cells):
            if found.clean and found.header is not None and found.header.checksum == checksum:
                return self._load(cell)
        return None

    def records(self) -> list[tuple[int, int, bool, PrepareHeader]]:
        """(offset, size, repair, header) of every clean prepare, by offset."""
        return [
            (self.geometry.prepare_at(cell), padded(RECORD_HEADER_SIZE + found.header.size), found.repair, found.header)
            for cell, found in enumerate(self._cells)
            if found.clean and found.header is not None
        ]

    def __contains__(self, checksum: str) -> bool:
        return any(
            found.clean and found.header is not None and found.header.checksum == checksum for found in self._cells
        )

    def require_whole(self) -> None:
        """Raises FileVanishedError if the file is shorter than what is durable in it."""
        require_size(self._file, self.geometry.size)

    def keep(self, files: FileSystem) -> str:
        """A file that lost its name gets a durable copy under it; returns what was done. Raises FileVanishedError,
        OSError.
        """
        self._file, done = with_name(files, self._file)
        return done

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def open_journal(file: File, superblock: SuperblockState) -> Journal | RingJournal:
    """The journal of the replica, of the kind that the file holds. Raises JournalError."""
    if is_ring(file):
        return RingJournal.open(file, superblock)
    return Journal.open(file, superblock.cluster, superblock.replica)
