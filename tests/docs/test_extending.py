"""docs/extending.md: its example is a part that holds, its mistake is found, four files make it a part of the project,
and the files that it names are there.
"""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
FILE = re.compile(r"```python\n# held\.py\n(.*?)```", re.DOTALL)
RECORD = re.compile(r"```toml\n(.*?)```", re.DOTALL)
SMALL = ("--views", "1")


def only(found: list[str]) -> str:
    assert len(found) == 1
    return found[0]


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The part of the page, written as a file that can be imported."""
    (tmp_path / "held.py").write_text(only(FILE.findall(PAGE.read_text())))
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("held", None)


@pytest.mark.usefixtures("example")
def test_the_example_holds_and_its_mistake_is_found() -> None:
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 10


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the tree, as far as `vsr check` reads it."""
    unread = shutil.ignore_patterns("__pycache__", "docs", "traces")
    shutil.copytree(ROOT / "viewproof", tmp_path / "viewproof", symlinks=False, ignore=unread)
    return tmp_path


def replaced(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert text.count(old) == 1, (file, old)
    file.write_text(text.replace(old, new))


def put_into(tree: Path) -> None:
    """What the page says: the four files."""
    vsr, page = tree / "viewproof" / "spec" / "vsr", PAGE.read_text()
    (vsr / "parts" / "held.py").write_text(only(FILE.findall(page)))
    parts, config = vsr / "parts" / "__init__.py", vsr / "config.py"
    replaced(parts, "\nPARTS: tuple[Part, ...] = (\n", "\nPARTS: tuple[Part, ...] = (\n    HELD,\n")
    replaced(parts, "\n\nCORE = Part(", "\nfrom viewproof.spec.vsr.parts.held import HELD\n\nCORE = Part(")
    replaced(config, "\nclass Config(\n", "\nclass Config(\n    HeldOptions,\n")
    replaced(config, "\n__all__", "\nfrom viewproof.spec.vsr.parts.held import HeldOptions\n\n__all__")
    with (tree / "viewproof" / "faults.toml").open("a") as records:
        records.write("\n" + only(RECORD.findall(page)))


def files(tree: Path) -> dict[Path, bytes]:
    return {path.relative_to(tree): path.read_bytes() for path in tree.rglob("*.*") if path.is_file()}


def check(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-B", "-m", "viewproof", "check", "held", *arguments)
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, timeout=300, check=False)


def test_four_files_make_it_a_part_of_the_project(copy: Path) -> None:
    before = files(copy)
    assert "'held' is not" in check(copy).stderr
    put_into(copy)
    after = files(copy)
    assert sum(before.get(path) != after[path] for path in after) == 4
    holds, breaks = check(copy, *SMALL), check(copy, *SMALL, "--fault", "held.unwritten")
    assert holds.returncode == 0, holds.stdout + holds.stderr
    assert breaks.returncode == 1, breaks.stdout + breaks.stderr
    assert "H1" in breaks.stdout


def test_the_files_that_it_names_are_there() -> None:
    names = re.findall(r"`((?:spec|impl|refinement|viewproof|tests|benchmarks)/[\w./*]+)`", PAGE.read_text())
    new = {"spec/vsr/parts/held.py"}
    assert [name for name in names if not ("NAME" in name or name in new or list(ROOT.glob(name)))] == []
    assert len(names) > 30
