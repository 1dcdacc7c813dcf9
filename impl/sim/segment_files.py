"""The segment files of a simulated replica: the real ones (`impl.storage.segments`), over files in memory."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random

from viewproof.impl.machine.partition_log import Key, SegmentLostError, SegmentRef
from viewproof.impl.storage.file import MemoryFileSystem
from viewproof.impl.storage.segments import Loaded, SegmentStore, segments_named

DAMAGES = ("snapshot", "cut", "missing", "flipped")
"""What befalls a snapshot, in turn: its own file is lost, or a segment that it names is cut, lost or altered."""


class SegmentFiles:
    """The messages in the snapshots of one replica.

    `taken`: files of closed segments that were struck, at any replica: of each one replica loses its copy, once.
    `struck`: those gone here; `rotten`: those altered here; with their sizes. `alone`: there is no other replica, so
    none is struck.
    """

    def __init__(self, segments: type[SegmentStore], replica: int, *, alone: bool) -> None:
        self.kind = segments
        self.files = MemoryFileSystem()
        self.store = segments(self.files, "disk")
        self.damages = replica + 1
        self.alone = alone
        self.taken: set[str] = set()
        self.struck: dict[str, int] = {}
        self.rotten: dict[str, int] = {}

    def crash(self) -> None:
        """The process dies, the power goes: what was not flushed is gone."""
        self.files.crash()
        self.store = self.kind(self.files, "disk")

    def read(self, ref: SegmentRef) -> bytes:
        """The bytes of a segment. Raises SegmentLostError."""
        return self.store.read(ref)

    def load(self, data: bytes) -> tuple[Loaded, int]:
        """A snapshot with what is here of its segments, and how many indexes were wrong. Raises SegmentFileError."""
        loaded = self.store.load(data)
        return loaded, len(self.store.rebuild_indexes())

    def explains(self, lost: Collection[SegmentRef]) -> bool:
        """True if all of these were struck."""
        return {self.store.path(ref.key) for ref in lost} <= self.wanted.keys()

    @property
    def wanted(self) -> dict[str, int]:
        """Path and size of what was struck here, and did not come back yet."""
        return self.struck | self.rotten

    def has(self, path: str, size: int) -> bool:
        """True if so much is in that file, and nothing struck it."""
        return (self.files.size_of(path) or 0) >= size and path not in self.wanted

    def rots(self, refs: Collection[SegmentRef]) -> bool:
        """True if one of these was altered, and still is."""
        suspects = [ref for ref in refs if self.rotten and self.store.path(ref.key) in self.rotten]
        return any(not self._is_right(ref) for ref in suspects)

    def _is_right(self, ref: SegmentRef) -> bool:
        try:
            return len(SegmentStore.read(self.store, ref)) == ref.size
        except SegmentLostError:
            return False

    def mend(self, ref: SegmentRef, content: bytes) -> None:
        """A segment comes from another replica."""
        self.store.write(ref, content)
        self.struck.pop(self.store.path(ref.key), None)
        self.rotten.pop(self.store.path(ref.key), None)

    def strike(self, random: Random, memory: Collection[Key], kinds: Sequence[str]) -> str:
        """Removes, cuts or alters a file of a running process, behind its back: one of `kinds`, each as often as it is
        there. `memory`: segments that the process still has.

        Returns what was done, "" without files, and for a segment that another replica has lost.
        """
        names = [name for name in self.files.names("disk") if self.files.size_of(f"disk/{name}")]
        if not names:
            return ""
        path = f"disk/{random.choice(names)}"
        kind = random.choice(kinds)
        closed = path.endswith(".log") and path not in {self.store.path(key) for key in memory}
        if closed and (self.alone or path in self.taken):
            return ""
        if closed:
            self.taken.add(path)
            (self.rotten if kind == "altered" else self.struck)[path] = self.files.open(path).size()
        elif kind == "altered":
            kind = "cut"
        file = self.files.open(path)
        if kind == "removed":
            self.files.remove(path)
            self.files.sync_directory("disk")
            return kind
        at = random.randrange(file.size())
        if kind == "altered":  # of the last message, so that what is wrong is a message
            at = file.size() - 1
            file.write_at(at, bytes([file.read_at(at, 1)[0] ^ 1]))
        else:
            file.truncate(at)
        file.sync()
        return kind

    def damage(self, data: bytes) -> str:
        """Damages a segment of a snapshot, or says that its own file is to be lost.

        Returns which of `DAMAGES` it is.
        """
        refs = segments_named(data) if data else []
        kind = DAMAGES[self.damages % len(DAMAGES)] if refs else DAMAGES[0]
        self.damages += 1
        if kind == DAMAGES[0]:
            return DAMAGES[0]
        ref = refs[-1]
        file = self.files.open(self.store.path(ref.key))
        if kind == "missing":
            self.files.remove(file.path)
            self.files.sync_directory("disk")
        elif kind == "cut":
            file.truncate(ref.size - 1)
        else:
            file.write_at(ref.size - 1, bytes([file.read_at(ref.size - 1, 1)[0] ^ 1]))
        file.sync()
        return kind
