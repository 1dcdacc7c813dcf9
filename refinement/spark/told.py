"""What the tasks of a stage have judged so far: for progress, and for an audit that is interrupted.

Tasks on this machine write each result into a directory as well; of tasks elsewhere nothing is known before their stage
ends.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from viewproof.refinement.local import Progress
from viewproof.refinement.verdict import UnitResult

_LOOK_SECONDS = 0.5


class Told:
    """The directory; without one nothing is told."""

    def __init__(self, folder: str = "") -> None:
        self.folder = folder

    def passed(self, task: int, result: UnitResult) -> UnitResult:
        """Note a result of a task, and pass it on."""
        if self.folder and os.path.isdir(self.folder):
            with (Path(self.folder) / f"{task}.ndjson").open("ab") as file:
                file.write(msgspec.json.encode(result) + b"\n")
        return result

    @contextmanager
    def kept(self, results: list[UnitResult]) -> Iterator[None]:
        """Add what was told to the results, if the `with` is interrupted."""
        try:
            yield
        except KeyboardInterrupt:
            there = {result.unit for result in results}
            results += (result for result in self.so_far() if result.unit not in there)
            raise

    def _lines(self) -> Iterator[bytes]:
        for file in Path(self.folder).glob("*.ndjson") if self.folder else ():
            yield from file.read_bytes().rpartition(b"\n")[0].splitlines()

    def so_far(self) -> list[UnitResult]:
        """All results that were noted whole, each unit once."""
        found = (msgspec.json.decode(line, type=UnitResult) for line in self._lines())
        return list({result.unit: result for result in found}.values())

    def count(self) -> int:
        """How many there are."""
        return sum(1 for _ in self._lines())


@contextmanager
def telling(here: bool, total: int, progress: Progress | None) -> Iterator[Told]:
    """A place to tell results for the time of a `with`, if tasks run `here`; `progress` hears how many there are."""
    if not here:
        yield Told()
        return
    with tempfile.TemporaryDirectory(prefix="viewproof-told-") as folder:
        told, ended = Told(folder), threading.Event()

        def look() -> None:
            while not ended.wait(_LOOK_SECONDS):
                if progress is not None and (count := told.count()):
                    progress(min(count, total), total, f"{count} directories judged")

        watcher = threading.Thread(target=look, daemon=True)
        watcher.start()
        try:
            yield told
        finally:
            ended.set()
            watcher.join()
