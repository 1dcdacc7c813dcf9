"""The tree itself: files and functions are small, and no module is loaded by way of itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = ("spec", "impl", "refinement", "viewproof/api", "benchmarks", "tools", "tests")
FILE_LINES_MAX = 500
FUNCTION_LINES_MAX = 60
PARAMETERS_MAX = 15
COMMANDS = "refinement/cli"
"""What is here has a parameter for each option of a command."""


@cache
def trees() -> dict[str, ast.Module]:
    """Place in the repository → the parsed file."""
    files = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))]
    return {path.relative_to(ROOT).as_posix(): ast.parse(path.read_text()) for path in files}


def functions() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for place, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{place}: {node.name}", node


def test_files_have_at_most_500_lines_and_functions_60() -> None:
    lines = {place: (ROOT / place).read_text().count("\n") for place in trees()}
    assert {place: n for place, n in lines.items() if n > FILE_LINES_MAX} == {}
    long = {name: (node.end_lineno or 0) - node.lineno + 1 for name, node in functions()}
    assert {name: n for name, n in long.items() if n > FUNCTION_LINES_MAX} == {}
    assert len(lines) > 500
    assert len(long) > 5000


def test_only_a_command_has_more_than_15_parameters() -> None:
    counted = {name: len(node.args.args) + len(node.args.kwonlyargs) for name, node in functions()}
    many = {name: n for name, n in counted.items() if n > PARAMETERS_MAX}
    assert {name: n for name, n in many.items() if not name.startswith(COMMANDS)} == {}


def test_text_files_are_utf_8_whatever_the_locale_says() -> None:
    folders = [name for name in FOLDERS if name != "tests"]
    command = [sys.executable, "-m", "ruff", "check", "--preview", "--select", "PLW1514", *folders]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def module_of(place: str) -> str:
    name = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return name if name.startswith(("viewproof", "tests", "benchmarks", "tools")) else f"viewproof.{name}"


def loaded(body: list[ast.stmt], modules: frozenset[str]) -> Iterator[str]:
    """The modules that these statements load at once: not in a function, and not for the type checker only."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.dump(node.test):
            yield from loaded([*node.body, *node.orelse], modules)
        elif isinstance(node, ast.Try | ast.With):
            yield from loaded(node.body, modules)


def circle(loads: dict[str, set[str]]) -> list[str]:
    """Modules each of which loads the next one, and the last one the first; empty if there are none."""
    done: set[str] = set()

    def walk(name: str, way: list[str]) -> list[str]:
        if name in way:
            return way[way.index(name) :]
        if name not in done:
            for other in sorted(loads.get(name, ())):
                if found := walk(other, [*way, name]):
                    return found
            done.add(name)
        return []

    return next((found for name in loads if (found := walk(name, []))), [])


def test_no_module_is_loaded_by_way_of_itself() -> None:
    modules = frozenset(map(module_of, trees()))
    loads = {module_of(place): set(loaded(tree.body, modules)) & modules for place, tree in trees().items()}
    assert sum(map(len, loads.values())) > 2000
    assert circle(loads) == []


def test_a_circle_is_found() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
