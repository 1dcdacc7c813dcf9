"""docs/changing-the-protocol.md names actions and guards of the specification: they are in the files that it says."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from viewproof.spec.vsr.core import normal, view_change

ROOT = Path(__file__).parents[3]
TUTORIAL = (ROOT / "docs/changing-the-protocol.md").read_text()
GUARD = "    require(count(Replica, lambda q: offered_by(state, r, v, q, b)) >= state.cfg.quorum_view_change)\n"


def test_the_lines_to_delete_are_in_the_functions_named() -> None:
    assert GUARD in TUTORIAL
    assert "find `start_view`" in TUTORIAL
    assert GUARD in inspect.getsource(view_change.start_view.fn)
    assert "Delete the last `require` of `require_next`" in TUTORIAL
    assert "require(received.prepare[v, o].parent ==" in inspect.getsource(normal.require_next).splitlines()[-1]


@pytest.mark.parametrize(("action", "path"), re.findall(r"\d\. (\w+)\(.*\)  \[(\S+):…\]", TUTORIAL))
def test_a_step_names_its_action(action: str, path: str) -> None:
    assert re.search(rf"@action\ndef {action}\(", (ROOT / path).read_text())


def test_why_not_names_the_guards() -> None:
    named = re.findall(r"\): (.*?) is false\s[^\[]*?(?:\[\d.*?\].*?)*\[(spec/\S+):…\]", TUTORIAL, re.DOTALL)
    assert len(named) == 2
    for guard, path in named:
        assert f"    require({guard})\n" in (ROOT / path).read_text()
