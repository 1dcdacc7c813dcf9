"""benchmarks.systems: which files count as what, and that the tree's adapters and profiles are all counted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lines import Size
from benchmarks.systems import FOLDERS, main, systems

ROOT = Path(__file__).parents[2]


def write(root: Path, name: str, text: str = "x = 1\n") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_tables_count_as_code_and_what_checks_a_profile_stands_apart(tmp_path: Path) -> None:
    write(tmp_path, "refinement/tigerbeetle/source.py")
    write(tmp_path, "refinement/tigerbeetle/lines_2022.txt", "# how to read this\n\nstep a\nstep b\n")
    write(tmp_path, "spec/vsr/tigerbeetle/view_2022.py")
    write(tmp_path, "spec/vsr/tigerbeetle/models_2022.py")
    write(tmp_path, "spec/oxia/fault_models.py")
    assert systems(tmp_path) == {
        "TigerBeetle: adapter": Size(2, 5, 3),
        "TigerBeetle: profile": Size(1, 1, 1),
        "TigerBeetle: models, mistakes, invariants": Size(1, 1, 1),
        "Oxia: models, mistakes, invariants": Size(1, 1, 1),
    }


def test_every_folder_is_in_the_tree() -> None:
    assert all((ROOT / folder / "__init__.py").is_file() for folder in FOLDERS)
    found = systems(ROOT)
    assert {name.partition(":")[0] for name in found} == {"TigerBeetle", "Iggy", "Oxia", "all adapters"}


def test_two_checkouts_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "before/spec/oxia/state.py", "x = 1\ny = 2\n")
    write(tmp_path, "after/spec/oxia/state.py")
    assert main([str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    rows = [line.strip("| ").replace("|", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert rows[2] == ["Oxia:", "profile", "1", "2", "2", "1", "1", "1", "-50%"]


def test_a_checkout_without_adapters_is_a_usage_error(tmp_path: Path) -> None:
    for words in ([str(tmp_path)], [".", ".", "."]):
        with pytest.raises(SystemExit) as refused:
            main(words)
        assert refused.value.code == 2
