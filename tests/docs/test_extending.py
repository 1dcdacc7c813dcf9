"""docs/extending.md: its example is a part that holds, its mistake is found, and the files that it names are there."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "extending.md"
FILE = re.compile(r"```python\n# (\w+)\.py\n(.*?)```", re.DOTALL)


@pytest.fixture
def example(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The modules of the page, written as files that can be imported."""
    modules = FILE.findall(PAGE.read_text())
    for name, text in modules:
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield [name for name, _ in modules]
    for name, _ in modules:
        sys.modules.pop(name, None)


def test_the_example_holds_and_its_mistake_is_found(example: list[str]) -> None:
    assert example == ["held", "mistake"]
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.failed == 0
    assert found.attempted > 10


def test_the_files_that_it_names_are_there() -> None:
    names = re.findall(r"`((?:spec|impl|refinement|viewproof|tests|benchmarks)/[\w./*]+)`", PAGE.read_text())
    new = {"spec/vsr/parts/held.py", "spec/vsr/parts/NAME.py", "refinement/cli/NAME.py"}
    assert [name for name in names if name not in new and not list(ROOT.glob(name))] == []
    assert len(names) > 30
