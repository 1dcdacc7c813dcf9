"""Lines of Python per folder, of one checkout or of two side by side: `python -m benchmarks.lines BEFORE AFTER`.

A line counts as code if a token other than a comment or a docstring begins or goes on in it.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import tokenize
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from benchmarks.text import table

LEFT_OUT = ("build", "node_modules", "__pycache__")
_BLANK = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)


@dataclass(frozen=True, slots=True)
class Size:
    """Files, all their lines, and those of them that are code."""

    files: int = 0
    lines: int = 0
    code: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.code + other.code)


def size_of(text: str) -> Size:
    """The size of one file. Raises `SyntaxError` for what is no Python."""
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.body:
            first = node.body[0]
            if ast.get_docstring(node, clean=False) is not None:
                docstrings.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    code: set[int] = set()
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type not in _BLANK:
            code.update(range(token.start[0], token.end[0] + 1))
    return Size(1, len(text.splitlines()), len(code - docstrings))


def python_files(root: Path) -> Iterator[Path]:
    """Every Python file below, once: links are not followed, hidden folders and built ones left out."""
    for where, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in LEFT_OUT)
        for name in sorted(names):
            path = Path(where, name)
            if name.endswith(".py") and not path.is_symlink():
                yield path


def sizes(root: Path, depth: int = 1) -> dict[str, Size]:
    """Size per folder, by the first `depth` parts of its path; files beside them count to the folder they lie in."""
    found: dict[str, Size] = {}
    for path in python_files(root):
        folder = "/".join(path.relative_to(root).parent.parts[:depth]) or "."
        found[folder] = found.get(folder, Size()) + size_of(path.read_text())
    return found


def rows_of(checkouts: Sequence[dict[str, Size]]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: a folder each, then the sums; with two checkouts the change of code in per cent."""
    folders = sorted({folder for found in checkouts for folder in found})
    by_folder = [(folder, [found.get(folder, Size()) for found in checkouts]) for folder in folders]
    by_folder.append(("all", [sum(found.values(), Size()) for found in checkouts]))
    rows = [
        [folder, *(f"{n:,}" for size in row for n in (size.files, size.lines, size.code)), *_change(row)]
        for folder, row in by_folder
    ]
    return ["folder", *("files", "lines", "code") * len(checkouts), *["change"][: len(checkouts) - 1]], rows


def _change(row: Sequence[Size]) -> list[str]:
    if len(row) != 2:
        return []
    before, after = (size.code for size in row)
    return [f"{(after - before) / before:+.0%}" if before else "new" if after else ""]


def main(words: Iterable[str] | None = None) -> int:
    """Print the table; 2 where a directory is none, or holds no Python."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lines", description=__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, default=[Path()], help="One, or two: before and after.")
    parser.add_argument("--depth", type=int, default=1, help="Folders are told apart by so many parts of their paths.")
    given = parser.parse_args(None if words is None else list(words))
    if len(given.checkouts) > 2 or given.depth < 1:
        parser.error("one or two checkouts, and a depth of 1 or more")
    found = []
    for checkout in given.checkouts:
        if not checkout.is_dir():
            parser.error(f"{checkout} is no directory")
        found.append(sizes(checkout, given.depth))
        if not found[-1]:
            parser.error(f"{checkout} holds no Python")
    sys.stdout.write(table(*rows_of(found)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
