"""What is compared: a version of this program (a directory, or a revision of the git repository at hand) and what it
records; or a model of one's own, in a file or in a revision's.

The code of a version, or of a file, is run, with the rights of the command.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Any

from viewproof.spec.engines.compare import dump
from viewproof.spec.lang import Spec, SpecError

Shape = tuple[str, int, dict[str, int]]
"""Model, replicas, bounds."""


@dataclass(frozen=True)
class OwnModel:
    """A model of one's own: how it was given, the name under which it is compared, and what is recorded of it."""

    name: str
    model: str
    plain: dict[str, Any]

    def recorded(self, models: Sequence[str] | None = None, shapes: Sequence[Shape] = ()) -> dict[str, Any]:
        """The one model; for each shape that is asked, in the one size that it has."""
        return {"models": {self.model: self.plain}, "shapes": [{"spec": self.plain, "reason": ""} for _ in shapes]}


def own_model_of(name: str, model: str, spec: Spec) -> OwnModel:
    """A specification of one's own, to be compared as `model`. Raises `SpecError` if it cannot be recorded."""
    return OwnModel(name, model, {**dump.plain(spec), "lemmas": []})


@dataclass(frozen=True)
class Version:
    """`name` as it was given, and the directory in which it lies."""

    name: str
    folder: Path

    @property
    def package(self) -> str:
        """Where the specification is imported from."""
        return "viewproof.spec" if (self.folder / "viewproof").exists() else "spec"

    def recorded(self, models: Sequence[str] | None = None, shapes: Sequence[Shape] = ()) -> dict[str, Any]:
        """What is recorded of the models (None: of all) in their own sizes, and of the shapes. Raises `SpecError`."""
        request = json.dumps({"models": models, "shapes": shapes})
        command = [sys.executable, str(Path(dump.__file__).resolve()), self.package]
        done = subprocess.run(command, cwd=self.folder, input=request, capture_output=True, text=True, check=False)
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise SpecError(f"{self.name}: the specification cannot be recorded: {last}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer


Side = Version | OwnModel
"""What is compared with another one."""


@contextmanager
def versions(names: Sequence[str], repository: Path) -> Iterator[list[Version]]:
    """The versions of these names: directories as they are; revisions are unpacked, for the time of the `with`.

    Raises `SpecError` for a name that is neither, or that has no specification.
    """
    with ExitStack() as stack:
        yield [_version(name, repository, stack) for name in names]


def _version(name: str, repository: Path, stack: ExitStack) -> Version:
    folder = Path(name)
    if not folder.is_dir():
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vsr-diff-")))
        _unpack(name, repository, folder)
    if not (folder / "spec" / "vsr").is_dir():
        raise SpecError(f"{name} has no specification: there is no spec/vsr in it")
    return Version(name, folder)


_FILTER: dict[str, Any] = {"filter": "tar"} if hasattr(tarfile, "tar_filter") else {}
"""Python before 3.11.4 has no filters; the archive is of git, and of this repository."""


def _unpack(name: str, repository: Path, folder: Path) -> None:
    commit = _commit(name, repository)
    if not commit:
        file = ": it is a file; expected a directory with a specification" if Path(name).is_file() else ""
        raise SpecError(f"{name} is no directory, and no revision of {repository}{file}")
    with tarfile.open(fileobj=BytesIO(_git(repository, "archive", "--format=tar", commit))) as archive:
        archive.extractall(folder, **_FILTER)


def file_of(revision: str, path: str, repository: Path, folder: Path) -> Path:
    """A file as it is in a revision, written into a new `folder` under its name. Raises `SpecError`: there is none."""
    commit = _commit(revision, repository)
    if not commit:
        raise SpecError(f"{revision} is no revision of {repository}")
    path = PurePosixPath(path).as_posix()
    if not _git(repository, "ls-tree", "--name-only", commit, "--", path).strip():
        raise SpecError(f"{revision} has no file {path} (in {repository})")
    folder.mkdir()
    file = folder / Path(path).name
    file.write_bytes(_git(repository, "cat-file", "blob", f"{commit}:./{path}"))
    return file


def _commit(name: str, repository: Path) -> str:
    """The commit of a revision; empty if there is none."""
    found = _git(repository, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return found.decode().strip()


def _git(repository: Path, *words: str) -> bytes:
    """What a command of git's writes; nothing if it fails."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *words], capture_output=True, check=False)
    except OSError as problem:
        raise SpecError(f"git cannot be run: {problem}") from problem
    return b"" if done.returncode else done.stdout
