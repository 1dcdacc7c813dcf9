"""The lessons of the course: all cells run, the answers are right, and wrong ones are told why."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest

from tests.docs.wrong_answers import WRONG

COURSE = Path(__file__).parents[2] / "docs/course"
LESSONS = {int(path.name[0]): path for path in sorted(COURSE.glob("[0-9]-*.ipynb"))}


@pytest.fixture
def in_course(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A lesson runs in the directory of the course, where it finds `exercises`."""
    monkeypatch.chdir(COURSE)
    monkeypatch.syspath_prepend(str(COURSE))
    yield
    sys.modules.pop("exercises", None)


def run(text: str, name: str, names: dict[str, Any]) -> Any:
    """Run a cell; the value of its last line, if that is an expression."""
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    body = ast.parse(text, name)
    last = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, name, "exec"), names)
    return eval(compile(ast.Expression(last.value), name, "eval"), names) if last else None  # noqa: S307


def cells(lesson: int) -> list[tuple[str, str]]:
    """The code cells of a lesson: their ids and texts."""
    return [(cell.id, cell.source) for cell in nbformat.read(LESSONS[lesson], 4).cells if cell.cell_type == "code"]


def test_there_are_eight_lessons_with_an_exercise_an_answer_and_wrong_answers_each() -> None:
    assert sorted(LESSONS) == sorted(WRONG) == list(range(1, 9))
    assert sorted(path.name for path in (COURSE / "answers").iterdir()) == [f"lesson_{n}.py" for n in LESSONS]
    for lesson in LESSONS:
        kinds = [id.partition("-")[0] for id, _ in cells(lesson)]
        assert kinds.count("exercise") == kinds.count("check") == 1
        assert kinds.index("check") == kinds.index("exercise") + 1


@pytest.mark.parametrize("path", LESSONS.values(), ids=lambda path: path.stem)
def test_a_lesson_is_stored_without_outputs_as_jupyter_stores_it(path: Path) -> None:
    notebook = nbformat.read(path, 4)
    nbformat.validate(notebook)
    assert all(not cell.outputs and cell.execution_count is None for cell in notebook.cells if cell.cell_type == "code")
    assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


@pytest.mark.usefixtures("in_course")
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_and_its_check_tells_right_from_wrong(lesson: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lesson", lesson_module := ModuleType("lesson"))
    names = vars(lesson_module)
    before, after = [], []
    for id, text in cells(lesson):
        (after if before and before[-1][0].startswith("exercise") else before).append((id, text))
    [*setup, (_, unsolved)], [(_, check), *rest] = before, after
    for id, text in setup:
        run(text, f"lesson {lesson}, {id}", names)

    def judged(answer: str, name: str) -> Any:
        own = dict(names)
        run(answer, f"lesson {lesson}, {name}", own)
        return run(check, f"lesson {lesson}, check", own)

    assert not judged(unsolved, "as it is given").right
    for number, (answer, said) in enumerate(WRONG[lesson]):
        wrong = judged(answer, f"wrong {number}")
        assert not wrong.right, answer
        assert said in wrong.says
    right = judged((COURSE / f"answers/lesson_{lesson}.py").read_text(), "answer")
    assert right.right, right.says
    for id, text in rest:
        run(text, f"lesson {lesson}, {id}", names)


@pytest.mark.long
@pytest.mark.parametrize("path", LESSONS.values(), ids=lambda path: path.stem)
def test_a_lesson_runs_in_jupyter(path: Path) -> None:
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": os.fspath(COURSE)}}).execute()
    [check] = [cell for cell in notebook.cells if cell.id.startswith("check")]
    assert check.outputs[-1].data["text/plain"].startswith("NOT YET: ")
