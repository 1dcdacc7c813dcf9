"""`vsr check --import`: a behaviour in ITF is taken step by step, or refused with the place at which it is none."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from viewproof.refinement.cli import cli

FAULT = ("core", "--fault", "state.getstate_truncates")


def run(*words: str) -> Result:
    return CliRunner().invoke(cli, list(words))


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The shortest counterexample of a fault, as it is exported."""
    file = tmp_path_factory.mktemp("itf") / "found.itf.json"
    assert run("check", *FAULT, "--itf", str(file)).exit_code == 1
    document: dict[str, Any] = json.loads(file.read_text())
    return document


def written(document: dict[str, Any], folder: Path) -> str:
    (folder / "t.itf.json").write_text(json.dumps(document))
    return str(folder / "t.itf.json")


def test_what_was_exported_is_read_back_and_breaks_the_same_invariant(trace: dict[str, Any], tmp_path: Path) -> None:
    file = written(trace, tmp_path)
    result = run("check", *FAULT, "--import", file, "--why-not", "commit@2", "--json", str(tmp_path / "a.json"))
    assert result.exit_code == 1
    assert "violated: I3" in result.stdout
    assert "why not commit after step 2:" in result.stdout
    told = json.loads((tmp_path / "a.json").read_text())
    metas = [state["#meta"] for state in trace["states"][1:]]
    assert [(s["action"], s["args"]) for s in told["behaviour"]] == [(m["action"], m["args"]) for m in metas]


def test_a_part_of_it_breaks_nothing_and_repeated_states_are_no_steps(trace: dict[str, Any], tmp_path: Path) -> None:
    states = trace["states"][:4]
    part = {**trace, "states": [states[0], states[0], *states[1:], states[-1]]}
    result = run("check", *FAULT, "--import", written(part, tmp_path))
    assert result.exit_code == 0
    assert "a behaviour of core, 3 steps: I1" in result.stdout


def test_functions_may_be_nested_or_lists_and_values_labels(trace: dict[str, Any], tmp_path: Path) -> None:
    changed = copy.deepcopy(trace)
    for state in changed["states"]:
        state["status"] = [["normal", "view_change"][int(value["#bigint"])] for _, value in state["status"]["#map"]]
        rows: dict[str, list[Any]] = {}
        for key, value in state["entry"]["#map"]:
            replica, op = (part["#bigint"] for part in key["#tup"])
            rows.setdefault(replica, []).append([int(op), value])
        state["entry"] = {"#map": [[{"#bigint": replica}, {"#map": row}] for replica, row in rows.items()]}
    assert "violated: I3" in run("check", *FAULT, "--import", written(changed, tmp_path)).stdout


def _no_view(document: dict[str, Any]) -> None:
    del document["states"][2]["view"]


def _too_large(document: dict[str, Any]) -> None:
    document["states"][1]["op"]["#map"][0][1] = {"#bigint": "9"}


def _not_a_number(document: dict[str, Any]) -> None:
    document["states"][1]["op"]["#map"][0][1] = "many"


def _leap(document: dict[str, Any]) -> None:
    del document["states"][2:4]


def _begins_later(document: dict[str, Any]) -> None:
    del document["states"][0]


def _no_states(document: dict[str, Any]) -> None:
    document["states"] = []


@pytest.mark.parametrize(
    ("damage", "refused"),
    [
        (_no_view, "state 2, view: the state does not give this variable of core"),
        (_too_large, "state 1, op[0]: 9 is outside 0 .. 1"),
        (_not_a_number, "state 1, op: 'many' is not a number"),
        (_leap, "no action of core leads from state 1 to state 2;"),
        (_begins_later, "state 0 is not the initial state of core: op[0] = 1"),
        (_no_states, "this is no ITF trace"),
    ],
)
def test_what_is_no_behaviour_of_the_model_is_refused_with_its_place(
    damage: Callable[[dict[str, Any]], None], refused: str, trace: dict[str, Any], tmp_path: Path
) -> None:
    changed = copy.deepcopy(trace)
    damage(changed)
    result = run("check", *FAULT, "--import", written(changed, tmp_path))
    assert result.exit_code == 2
    assert refused in " ".join(result.output.split())


def test_without_the_fault_it_is_no_behaviour(trace: dict[str, Any], tmp_path: Path) -> None:
    sizes = ("--views", "3", "--ops", "1", "--requests", "1")
    result = run("check", "core", *sizes, "--import", written(trace, tmp_path))
    assert result.exit_code == 2
    assert "leads from state 7 to state 8" in " ".join(result.output.split())
