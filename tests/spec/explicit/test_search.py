"""Verdicts of the explicit engine: faults found and replayed, bounds respected, range errors named, results written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from viewproof.refinement.cli.check import check
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.itf import to_itf
from viewproof.spec.lang import (
    Instance,
    Schema,
    Sort,
    Spec,
    SpecError,
    Values,
    action,
    forall,
    invariant,
    require,
    witness,
)
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import FAULTS, model
from viewproof.spec.vsr.fault_models import FAULT_MODELS

Cell = Sort("Cell")
BROKEN = sorted(fault for fault, sizes in FAULT_MODELS.items() if not sizes.stops_progress)


def counter(top: int = 3, cells: int = 2, limit: int = 3, wild: bool = False) -> Spec:
    """Cells that count up to `limit`; declared 0..top. With `wild` an action reads a cell that is not there."""
    schema = Schema()
    schema.state("x", (Cell,), Values(0, top), doc="a counter")

    @action
    def up(s: Any, c: Cell) -> None:
        """Count."""
        require(s.x[c] < limit)
        s.x[c] = s.x[c] + 1

    @action
    def peek(s: Any, c: Cell) -> None:
        """Read past the end once the cell is 2."""
        require(s.x[c] == 2)
        require(s.x[c + s.x[c]] == 0)
        s.x[c] = 0

    @invariant("I1", "never all three")
    def all_three(s: Any) -> Any:
        """Some cell is not 3."""
        return forall(Cell, lambda c: s.x[c] < 3)

    @invariant("I2", "cells count by one")
    def by_one(s: Any) -> Any:
        """A step raises a cell by at most one."""
        return forall(Cell, lambda c: s.after.x[c] <= s.x[c] + 1)

    @witness("I1", "a cell is 9")
    def nine(s: Any) -> Any:
        """Not reachable."""
        return forall(Cell, lambda c: s.x[c] >= 9)

    actions = (up, peek) if wild else (up,)
    return Spec("counter", schema, None, actions, (all_three, by_one), (nine,), Instance({"Cell": cells - 1}))


@pytest.mark.parametrize("fault", BROKEN)
def test_fault_gives_a_counterexample_that_replays_in_interp(fault: str) -> None:
    spec = FAULT_MODELS[fault].spec(fault)
    found = explicit.explore(spec)
    assert (found.verdict, found.broken) == ("violated", FAULT_MODELS[fault].breaks)
    assert len(found.behaviour) <= 25
    state, before = State.initial(), State.initial()
    for step in found.behaviour:
        before, after = state, interp.step(spec, state, spec.action(step.action), step.args)
        assert isinstance(after, State)
        assert after == step.state
        state = after
    broken = next(p for p in spec.invariants if p.id == found.broken)
    is_step = next(p for p in spec.invariant_irs if p.name == found.broken).is_transition
    assert not (interp.holds(spec, broken, before, state) if is_step else interp.holds(spec, broken, state))


def test_every_fault_has_a_model() -> None:
    assert FAULT_MODELS.keys() == FAULTS.keys()


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_the_same_model_without_the_fault_holds_where_the_fault_is_met(fault: str) -> None:
    found = explicit.explore(FAULT_MODELS[fault].spec(), max_states=10_000)
    assert found.verdict in ("holds", "inconclusive")
    assert found.broken is None


def test_shortest_behaviour_is_shown_with_changed_cells_only() -> None:
    found = explicit.explore(counter())
    assert found.verdict == "violated"
    assert [(s.action, s.args) for s in found.behaviour] == [("up", {"c": 0})] * 3
    assert found.behaviour[2].to_json()["changes"] == [{"var": "x", "index": [0], "before": 2, "after": 3}]
    assert found.behaviour[0].source.file.endswith("test_search.py")


def test_only_the_named_invariants_are_checked_and_unknown_ones_refused() -> None:
    found = explicit.explore(counter(), invariants=["I2"])
    assert (found.verdict, found.invariants, found.distinct) == ("holds", ["I2"], 16)
    assert found.unwitnessed == {"I1": "a cell is 9"}
    assert found.deadlocks == 1
    with pytest.raises(SpecError, match="no invariant I9; there are: I1, I2"):
        explicit.explore(counter(), invariants=["I9"])


def test_coverage_counts_steps_new_states_and_guards() -> None:
    found = explicit.explore(counter(), invariants=["I2"])
    (up,) = found.coverage
    assert (up.generated, up.distinct, up.guards) == (24, 15, [("require(s.x[c] < limit)", 8)])
    assert found.levels == [1, 2, 3, 4, 3, 2, 1]


def test_value_out_of_range_is_an_error_with_action_line_and_value() -> None:
    message = r"action up\(c=0\).*test_search.py:\d+.*x\[0\] = 3 is outside 0..2"
    with pytest.raises(explicit.OutOfRangeError, match=message):
        explicit.explore(counter(top=2), invariants=["I2"])


def test_read_outside_its_index_is_an_error_and_leads_there() -> None:
    with pytest.raises(explicit.OutOfRangeError, match="index 2 of x is outside sort Cell") as caught:
        explicit.explore(counter(wild=True), invariants=["I2"])
    assert len(caught.value.behaviour) == 2


def test_bound_of_states_is_inconclusive_and_says_what_was_covered() -> None:
    found = explicit.explore(counter(), invariants=["I2"], max_states=9)
    assert (found.verdict, found.distinct) == ("inconclusive", 9)
    assert "bound of 9 states reached: 2 levels" in found.reason
    assert explicit.explore(counter(), invariants=["I2"], max_states=16).verdict == "holds"


def test_memory_bound_is_inconclusive_and_kept() -> None:
    spec = model("core", replicas=3, views=3, ops=1, requests=1, restarts=0)
    found = explicit.explore(spec, max_memory_bytes=1_000_000)
    assert found.verdict == "inconclusive"
    assert "memory bound" in found.reason
    assert found.distinct > 1_000
    assert found.memory_bytes <= 1_000_000


def test_interrupt_gives_what_was_covered() -> None:
    def stop(now: explicit.Progress) -> None:
        if now.level == 3:
            raise KeyboardInterrupt

    found = explicit.explore(counter(), invariants=["I2"], progress=stop)
    assert found.verdict == "inconclusive"
    assert found.reason.startswith("interrupted")


def test_unbounded_sort_and_wide_values_are_refused_by_name() -> None:
    schema = Schema()
    schema.state("wide", (), Values(0, 300), doc="too wide")
    with pytest.raises(SpecError, match="wide has 301 values"):
        explicit.explore(Spec("wide", schema, None, (), ()))
    schema = Schema()
    schema.state("x", (Cell,), Values(0, 1), doc="a cell")
    with pytest.raises(SpecError, match="sort Cell is unbounded"):
        explicit.explore(Spec("open", schema, None, (), ()))


def test_itf_has_bigints_maps_and_the_action_of_each_state() -> None:
    spec = counter()
    document = to_itf(spec, explicit.explore(spec))
    assert document["vars"] == ["x"]
    assert len(document["states"]) == 4
    first, last = document["states"][0], document["states"][-1]
    assert first["x"] == {"#map": [[{"#bigint": "0"}, {"#bigint": "0"}], [{"#bigint": "1"}, {"#bigint": "0"}]]}
    assert last["#meta"]["action"] == "up"


def test_command_exits_with_the_contracts_codes(tmp_path: Path) -> None:
    def run(*args: str) -> tuple[int, str]:
        answer = CliRunner().invoke(check, ["core", *args], standalone_mode=False)
        return int(answer.return_value), answer.output

    small = ("--replicas", "2", "--views", "2", "--ops", "1", "--requests", "1", "--restarts", "0")
    out = tmp_path / "result.json"
    code, text = run(*small, "--json", str(out))
    assert code == 0
    assert "new states" in text
    assert "vacuous" in text
    assert json.loads(out.read_text())["verdict"] == "holds"
    assert run(*small, "--max-states", "50")[0] == 4
    itf = tmp_path / "x.itf.json"
    code, text = run("--fault", "boot.view_from_last_prepare", "--itf", str(itf))
    assert code == 1
    assert "status[0]: normal → view_change" in text
    assert json.loads(itf.read_text())["states"][0]["#meta"] == {"index": 0}
    interpreted = run("--fault", "boot.view_from_last_prepare", "--engine", "interp")
    assert interpreted[0] == 1
    shown = [[line for line in answer.splitlines() if "→" in line] for answer in (text, interpreted[1])]
    assert shown[0] == shown[1] != []
