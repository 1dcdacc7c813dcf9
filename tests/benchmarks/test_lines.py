"""benchmarks.lines: what counts as code, which files are counted, and the table of two checkouts."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.lines import Size, main, size_of, sizes

TEXT = '''"""A module.

Of two functions.
"""

# a comment
X = """text
that is code"""


def f() -> int:
    """Doc."""
    return 1  # one


def g() -> None:
    """Only this."""
'''


def test_docstrings_comments_and_blank_lines_are_not_code() -> None:
    assert size_of(TEXT) == Size(files=1, lines=17, code=5)


def write(root: Path, name: str, text: str = "x = 1\n") -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text)


def test_links_hidden_and_built_folders_are_not_counted(tmp_path: Path) -> None:
    for name in ("a/b/c.py", "a/d.py", "top.py", ".venv/x.py", "build/y.py", "a/__pycache__/z.py", "a/data.txt"):
        write(tmp_path, name)
    (tmp_path / "link").symlink_to("a")
    assert sizes(tmp_path) == {"a": Size(2, 2, 2), ".": Size(1, 1, 1)}
    assert sizes(tmp_path, 2) == {"a/b": Size(1, 1, 1), "a": Size(1, 1, 1), ".": Size(1, 1, 1)}


def test_two_checkouts_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "before/a/x.py", "x = 1\ny = 2\n")
    write(tmp_path, "after/a/x.py", "x = 1\n")
    write(tmp_path, "after/b/x.py", "x = 1\n")
    assert main([str(tmp_path / "before"), str(tmp_path / "after")]) == 0
    rows = [line.strip("| ").replace("|", " ").split() for line in capsys.readouterr().out.splitlines()]
    assert rows[2:] == [
        ["a", "1", "2", "2", "1", "1", "1", "-50%"],
        ["b", "0", "0", "0", "1", "1", "1", "new"],
        ["all", "1", "2", "2", "2", "2", "2", "+0%"],
    ]


def test_what_is_no_checkout_is_a_usage_error(tmp_path: Path) -> None:
    for words in ([str(tmp_path / "none")], [str(tmp_path)], [".", ".", "."]):
        with pytest.raises(SystemExit) as refused:
            main(words)
        assert refused.value.code == 2
