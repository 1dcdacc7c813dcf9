"""A search on disk: numbers and arrays, saved between two rounds, loaded only if every byte is what was written.

A generation of files is complete and on the disk before `search.json` names it, so a crash while saving leaves the one
before. `search.json` holds the length and the checksum of each file, and a checksum of itself.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.spec.lang.errors import SpecError

FORMAT = "viewproof.explicit.checkpoint/2"
NAME = "search.json"
BLOCK_BYTES = 1 << 24


class Checkpoint:
    """A directory that holds a search."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def try_writing(self) -> None:
        """Raises `SpecError` if nothing can be written here: better before hours of work than after."""
        probe = self.folder / "probe.tmp"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as problem:
            raise SpecError(f"cannot save a search to {self.folder}: {problem}") from problem

    def save(self, key: str, numbers: Mapping[str, Any], arrays: Mapping[str, Iterable[NDArray[Any]]]) -> None:
        """Write numbers (JSON values) and arrays (each in parts), for a model of that key. Raises `SpecError`."""
        try:
            self._save(key, numbers, arrays)
        except OSError as problem:
            raise SpecError(f"cannot save the search to {self.folder}: {problem}") from problem

    def _save(self, key: str, numbers: Mapping[str, Any], arrays: Mapping[str, Iterable[NDArray[Any]]]) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        generation = 1 + max((int(p.name.partition(".")[0]) for p in self.folder.glob("[0-9]*.*.bin")), default=0)
        files = {name: self._write(self._file(generation, name), parts) for name, parts in arrays.items()}
        meta = {"format": FORMAT, "generation": generation, "key": key, "files": files, "numbers": dict(numbers)}
        fresh = self.folder / f"{NAME}.tmp"
        with open(fresh, "w", encoding="utf-8") as out:
            json.dump({**meta, "checksum": checksum_of(meta)}, out)
            out.flush()
            os.fsync(out.fileno())
        os.replace(fresh, self.folder / NAME)
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for old in self.folder.glob("[0-9]*.*.bin"):
            if not old.name.startswith(f"{generation}."):
                old.unlink()

    def load(self, key: str) -> tuple[dict[str, Any], dict[str, NDArray[np.uint8]]]:
        """Numbers and arrays (as bytes); `SpecError` for another model's, and for a damaged one."""
        meta = self._read()
        if meta["key"] != key:
            raise SpecError(
                f"{self.folder} holds a search of another model, size, fault or choice of invariants "
                f"({meta['numbers'].get('model')}); give the options it was started with"
            )
        generation = int(meta["generation"])
        arrays = {name: self._load(self._file(generation, name), *facts) for name, facts in meta["files"].items()}
        return meta["numbers"], arrays

    def _file(self, generation: int, name: str) -> Path:
        return self.folder / f"{generation}.{name}.bin"

    def _read(self) -> dict[str, Any]:
        path = self.folder / NAME
        try:
            text = path.read_bytes()
        except OSError as problem:
            raise SpecError(f"{self.folder} holds no search to resume ({problem})") from problem
        try:
            meta = json.loads(text)
            found = meta.get("format")
        except (ValueError, AttributeError) as problem:
            raise SpecError(f"the search in {self.folder} is damaged: {NAME} is not what was saved") from problem
        if found != FORMAT:
            raise SpecError(f"{self.folder} holds a search of another version ({found})")
        if meta.pop("checksum", None) != checksum_of(meta):
            raise SpecError(f"the search in {self.folder} is damaged: {NAME} is not what was saved")
        return dict(meta)

    @staticmethod
    def _write(path: Path, parts: Iterable[NDArray[Any]]) -> tuple[int, str]:
        """Write an array's parts to the disk; length and checksum of the file."""
        digest, length = hashlib.blake2b(digest_size=16), 0
        with open(path, "wb") as out:
            for part in parts:
                data = np.ascontiguousarray(part).reshape(-1).view(np.uint8).data
                digest.update(data)
                length += out.write(data)
            out.flush()
            os.fsync(out.fileno())
        return length, digest.hexdigest()

    @staticmethod
    def _load(path: Path, length: int, checksum: str) -> NDArray[np.uint8]:
        try:
            found = path.stat().st_size
            if found != length:
                raise SpecError(f"the search is damaged: {path} has {found} bytes, {length} were saved")
            data = np.fromfile(path, np.uint8)
        except OSError as problem:
            raise SpecError(f"the search is damaged: {problem}") from problem
        digest = hashlib.blake2b(digest_size=16)
        for at in range(0, length, BLOCK_BYTES):
            digest.update(data[at : at + BLOCK_BYTES].data)
        if digest.hexdigest() != checksum:
            raise SpecError(f"the search is damaged: {path} is not what was saved (checksum)")
        return data


def checksum_of(meta: Mapping[str, Any]) -> str:
    """Of values that JSON has, in any order of their names."""
    return hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16).hexdigest()
