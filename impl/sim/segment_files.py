"""The segment files of a simulated replica: the real ones (`impl.storage.segments`), over files in memory."""

from __future__ import annotations

from random import Random

from viewproof.impl.storage.file import MemoryFileSystem
from viewproof.impl.storage.segments import SegmentFileError, SegmentStore, decode_manifest

DAMAGES = ("snapshot", "cut", "missing", "flipped")
"""What befalls a snapshot, in turn: its own file is lost, or a segment that it names is cut, lost or altered."""


class SegmentFiles:
    """The messages in the snapshots of one replica."""

    def __init__(self, segments: type[SegmentStore], replica: int) -> None:
        self.kind = segments
        self.files = MemoryFileSystem()
        self.store = segments(self.files, "disk")
        self.damages = replica + 1

    def crash(self) -> None:
        """The process dies, the power goes: what was not flushed is gone."""
        self.files.crash()
        self.store = self.kind(self.files, "disk")

    def load(self, content: bytes) -> tuple[bytes | None, int]:
        """The snapshot in `content`, None if its segments are damaged, and how many indexes were wrong."""
        try:
            data = self.store.load(content)
        except SegmentFileError:
            return None, 0
        return data, len(self.store.rebuild_indexes())

    def strike(self, random: Random) -> str:
        """Removes or cuts a file of a running process, behind its back. Returns what was done, "" without files."""
        names = [name for name in self.files.names("disk") if self.files.size_of(f"disk/{name}")]
        if not names:
            return ""
        file = self.files.open(f"disk/{random.choice(names)}")
        if random.random() < 0.5:
            self.files.remove(file.path)
            self.files.sync_directory("disk")
            return "removed"
        file.truncate(random.randrange(file.size()))
        file.sync()
        return "cut"

    def damage(self, content: bytes) -> str:
        """Damages a segment of the snapshot whose file holds `content`, or says that the file itself is to be lost.

        Returns which of `DAMAGES` it is.
        """
        manifest = decode_manifest(content)
        kind = DAMAGES[self.damages % len(DAMAGES)] if manifest is not None else DAMAGES[0]
        self.damages += 1
        if manifest is None or kind == DAMAGES[0]:
            return DAMAGES[0]
        ref = manifest.segments[-1]
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
