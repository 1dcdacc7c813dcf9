"""docs/changing-the-protocol.md names lines of the specification: they are where it says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from viewproof.spec.vsr import normal, view_change

ROOT = Path(__file__).parents[3]
TUTORIAL = (ROOT / "docs/changing-the-protocol.md").read_text()
GUARD = "    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)\n"


def lines_of(path: str, *, without: str = "") -> list[str]:
    return (ROOT / path).read_text().replace(without, "", 1).splitlines()


def test_the_lines_to_delete_are_in_the_functions_named() -> None:
    assert GUARD in TUTORIAL
    assert "in `lead`, the function that it calls" in TUTORIAL
    assert GUARD in inspect.getsource(view_change.lead)
    assert "Delete the last `require` of `require_next`" in TUTORIAL
    assert "require(received.prepare_parent[" in inspect.getsource(normal.require_next).splitlines()[-1]


@pytest.mark.parametrize(("action", "path", "line"), re.findall(r"\d\. (\w+)\(.*\)  \[(\S+):(\d+)\]", TUTORIAL))
def test_a_step_names_its_action_in_the_text_without_the_guard(action: str, path: str, line: str) -> None:
    text = lines_of(path, without=GUARD if path.endswith("view_change.py") else "")
    assert text[int(line) - 1].startswith("@action(")
    assert text[int(line)].startswith(f"def {action}(")


def test_why_not_names_the_guards() -> None:
    named = re.findall(r"\): (.*?) is false\s[^\[]*?(?:\[\d.*?\].*?)*\[(spec/\S+):(\d+)\]", TUTORIAL, re.DOTALL)
    assert len(named) == 2
    for guard, path, line in named:
        assert lines_of(path)[int(line) - 1] == f"    require({guard})"
