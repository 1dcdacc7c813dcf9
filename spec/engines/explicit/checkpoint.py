"""A search on disk: saved between two rounds, loaded into a search of the very same model.

A generation of files is complete before `search.json` names it, so a crash while saving leaves the one before.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from viewproof.spec.lang.errors import SpecError

if TYPE_CHECKING:
    from viewproof.spec.engines.explicit.memory import Frontier
    from viewproof.spec.engines.explicit.search import Search

FORMAT = "viewproof.explicit.checkpoint/1"
NUMBERS = ("level", "at", "first", "first_of_level", "distinct", "depth", "deadlocks", "deadlock")


def _key(search: Search) -> str:
    """What a saved search must agree on."""
    return "+".join((search.program.key, *search.options.symmetry))


class Checkpoint:
    """A directory that holds a search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, search: Search) -> None:
        """Write all that the search needs to go on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        generation = int(self._read().get("generation", 0)) + 1 if (self.folder / "search.json").exists() else 1
        slots = search.table.slots
        self._write(generation, "table", [slots[slots != 0]])
        self._write(generation, "parents", (p[: self._used(search, n)] for n, (p, _) in enumerate(search.log.parts)))
        self._write(generation, "insts", (i[: self._used(search, n)] for n, (_, i) in enumerate(search.log.parts)))
        sizes = {name: self._rows(generation, name, getattr(search, name)) for name in ("now", "following")}
        meta: dict[str, Any] = {
            "format": FORMAT, "generation": generation, "model": search.program.spec.name, "key": _key(search),
            "seconds": search.seconds, "levels": search.result.levels, "rows": sizes,
            "counts": search.counts.tolist(), "blocked": search.blocked.tolist(),
            "witnessed": search.witnessed.tolist(), **{name: getattr(search, name) for name in NUMBERS},
        }  # fmt: skip
        fresh = self.folder / "search.json.tmp"
        fresh.write_text(json.dumps(meta))
        os.replace(fresh, self.folder / "search.json")
        for old in self.folder.glob("*.bin"):
            if not old.name.startswith(f"{generation}."):
                old.unlink()

    def load(self, search: Search) -> None:
        """Put a search that has not begun where the saved one stopped; `SpecError` if the model is another."""
        meta = self._read()
        if meta["key"] != _key(search):
            raise SpecError(
                f"{self.folder} holds a search of another model, size, fault or choice of invariants "
                f"({meta['model']}); give the options it was started with"
            )
        generation = meta["generation"]
        search.table.fill(self._load(generation, "table", np.int64))
        parents, insts, first = search.log.room(int(meta["distinct"]))
        assert first == 0
        parents[: meta["distinct"]] = self._load(generation, "parents", np.uint32)
        insts[: meta["distinct"]] = self._load(generation, "insts", np.uint16)
        for name in ("now", "following"):
            frontier: Frontier = getattr(search, name)
            rows = self._load(generation, name, np.int64).reshape(-1, frontier.words)
            at = 0
            for count in meta["rows"][name]:
                space, start = frontier.room(count)
                space[start : start + count] = rows[at : at + count]
                at += count
        for name in NUMBERS:
            setattr(search, name, meta[name])
        search.counts[:] = meta["counts"]
        search.blocked[:] = meta["blocked"]
        search.witnessed[:] = meta["witnessed"]
        search.result.levels = list(meta["levels"])
        search.before = float(meta["seconds"])

    def _read(self) -> dict[str, Any]:
        try:
            meta: dict[str, Any] = json.loads((self.folder / "search.json").read_text())
        except (OSError, ValueError) as problem:
            raise SpecError(f"{self.folder} holds no search to resume ({problem})") from problem
        if meta.get("format") != FORMAT:
            raise SpecError(f"{self.folder} holds a search of another version ({meta.get('format')})")
        return meta

    @staticmethod
    def _used(search: Search, part: int) -> int:
        ends = [*search.log.starts[1:], search.log.filled]
        return ends[part] - search.log.starts[part]

    def _rows(self, generation: int, name: str, frontier: Frontier) -> list[int]:
        """Write a frontier, one segment in memory at a time; the numbers of rows in its segments."""
        with open(self.folder / f"{generation}.{name}.bin", "wb") as out:
            for segment in frontier.segments:
                if segment.rows is not None:
                    out.write(segment.rows[: segment.count].tobytes())
                elif segment.path is not None:
                    out.write(segment.path.read_bytes())
        return [segment.count for segment in frontier.segments]

    def _write(self, generation: int, name: str, arrays: Any) -> None:
        with open(self.folder / f"{generation}.{name}.bin", "wb") as out:
            for array in arrays:
                out.write(np.ascontiguousarray(array).tobytes())

    def _load(self, generation: int, name: str, kind: Any) -> Any:
        return np.fromfile(self.folder / f"{generation}.{name}.bin", kind)
