"""A snapshot that comes from others, as far as it is here: what arrived, and what this replica had already.

Bytes are taken in order. Where the outline says that a segment begins which this replica has, its own bytes are taken
and nothing is fetched; if it has only how the segment begins, the rest is fetched. Each segment is verified when it
ends; the caller verifies the whole.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from viewproof.impl.machine.snapshot import SnapshotHash
from viewproof.impl.machine.snapshot_outline import Outline, Part, checksum_part

OUTLINE = -1
"""The offset that stands for the outline in a question for a snapshot, and in its answer."""

NO_OUTLINE = Outline(0, [])

Own = Callable[[int, int], bytes | None]
"""What this replica has of the segment of a namespace with a first offset, from its beginning; None: nothing."""


@dataclass(slots=True)
class Arrival:
    """`received`: the bytes from the first on. `outline`: None as long as it is not known.

    `verified`: so many parts of the outline are here and right. `lacking`: parts of which nothing was here; `refused`:
    those whose bytes, own or fetched, were wrong: they are fetched again. `reused`: bytes that were here already.
    """

    received: bytearray = field(default_factory=bytearray)
    outline: Outline | None = None
    verified: int = 0
    lacking: set[int] = field(default_factory=set)
    refused: set[int] = field(default_factory=set)
    reused: int = 0
    _hash: SnapshotHash = field(default_factory=SnapshotHash)
    _hashed: int = 0
    _digest: str = ""

    @classmethod
    def plain(cls) -> Arrival:
        """All of it is to be fetched."""
        return cls(outline=NO_OUTLINE)

    @property
    def wanted(self) -> tuple[int, int]:
        """What to ask for next: its offset, and where to stop (0: at the end of the chunk)."""
        if self.outline is None:
            return OUTLINE, 0
        offset = len(self.received)
        unused = self.lacking | self.refused
        ahead = (part.at for number, part in enumerate(self.outline.parts) if number not in unused)
        return offset, next((at for at in ahead if at > offset), 0)

    def take_outline(self, outline: Outline, own: Own) -> None:
        """The outline is here."""
        self.outline = outline
        self.lacking = {number for number, part in enumerate(outline.parts) if own(part.namespace, part.base) is None}
        self._take_own(own)

    def take(self, data: bytes, own: Own) -> bool:
        """The next bytes. False if a segment turned out to be wrong: it is to be fetched again, from another one."""
        self.received += data
        right = self._verify()
        if right:
            self._take_own(own)
        return right

    def digest(self) -> str:
        """The checksum of what is here, as of a snapshot."""
        if self._hashed > len(self.received):
            self._hash, self._hashed = SnapshotHash(), 0
        if self._hashed < len(self.received) or not self._digest:
            self._digest = self._hash.update(bytes(self.received[self._hashed :]))
            self._hashed = len(self.received)
        return self._digest

    def _take_own(self, own: Own) -> None:
        """Takes segments that are here already, as long as one begins where the bytes end."""
        while (part := self._part_here()) is not None:
            content = own(part.namespace, part.base)
            if content is None:
                return
            mine = content[: part.size]
            self.received += mine
            if not self._verify():
                continue
            self.reused += len(mine)
            if len(mine) < part.size:
                return

    def _part_here(self) -> Part | None:
        """The part that begins where the bytes end, unless it was refused."""
        if self.outline is None or self.verified >= len(self.outline.parts) or self.verified in self.refused:
            return None
        part = self.outline.parts[self.verified]
        return part if part.at == len(self.received) else None

    def _verify(self) -> bool:
        """Checks the segments that are complete; drops the first that is wrong, with all after it."""
        parts = [] if self.outline is None else self.outline.parts
        while self.verified < len(parts) and parts[self.verified].end <= len(self.received):
            part = parts[self.verified]
            if checksum_part(memoryview(self.received)[part.at : part.end]) != part.checksum:
                self._refuse(part)
                return False
            self.verified += 1
        return True

    def _refuse(self, part: Part) -> None:
        """A segment is wrong: it is fetched; if it was, the outline is not trusted any more."""
        if self.verified in self.refused:
            self.outline, self.verified, self.lacking, self.refused = NO_OUTLINE, 0, set(), set()
            del self.received[:]
        else:
            self.refused.add(self.verified)
            del self.received[part.at :]
        self._hash, self._hashed, self._digest = SnapshotHash(), 0, ""
