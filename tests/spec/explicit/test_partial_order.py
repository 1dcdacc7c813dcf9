"""Partial-order reduction changes counts only: verdicts, dead ends and what invariants can see stay the same."""

from __future__ import annotations

from typing import Any

import pytest

from tests.spec.core_faults import CORE_FAULTS
from viewproof.spec.engines import explicit
from viewproof.spec.engines.explicit.emit import emit
from viewproof.spec.lang import Instance, Schema, Sort, Spec, Values, action, forall, invariant, not_, require, witness
from viewproof.spec.vsr.fault_models import FAULT_MODELS

Cell = Sort("Cell")
TOP = 3


def parts(cells: int, limit: int, *, logs: bool = True, reset: bool = False, watched: bool = False) -> Spec:
    """Counters that invariants read, beside notes that nobody reads and each written once.

    `limit` 3 breaks the invariant; `reset` erases notes again; `watched` lets an invariant read them.
    """
    schema = Schema()
    schema.state("x", (Cell,), Values(0, TOP), doc="a counter")
    schema.state("noted", (Cell,), doc="a note was written")
    schema.state("again", (Cell,), doc="a second note was written")

    @action
    def up(s: Any, c: Cell) -> None:
        """Count."""
        require(s.x[c] < limit)
        s.x[c] = s.x[c] + 1

    @action
    def note(s: Any, c: Cell) -> None:
        """Write a note."""
        require(not_(s.noted[c]))
        s.noted[c] = True

    @action
    def note_again(s: Any, c: Cell) -> None:
        """Write the second note."""
        require(s.noted[c])
        require(not_(s.again[c]))
        s.again[c] = True

    @action
    def erase(s: Any, c: Cell) -> None:
        """Erase a note."""
        require(s.noted[c])
        s.noted[c] = False

    @invariant("I1", "never all three")
    def all_three(s: Any) -> Any:
        """Some counter is below 3."""
        return not_(forall(Cell, lambda c: s.x[c] == TOP))

    actions = (up, *((note, note_again) if logs else ()), *((erase,) if reset else ()))
    witnesses = tuple(_at(value) for value in range(TOP + 1))
    noted = (_noted(),) if watched else ()
    return Spec("parts", schema, None, actions, (all_three,), (*witnesses, *noted), Instance({"Cell": cells - 1}))


def _at(value: int) -> Any:
    """All counters at a value: together these say which values invariants can see."""

    @witness(f"W{value}", f"all at {value}")
    def at(s: Any) -> Any:
        """All counters have the value."""
        return forall(Cell, lambda c: s.x[c] == value)

    return at


def _noted() -> Any:
    @witness("N", "all noted")
    def noted(s: Any) -> Any:
        """Every note was written."""
        return forall(Cell, lambda c: s.noted[c])

    return noted


REDUCED = [parts(1, 2), parts(2, 2), parts(3, 2), parts(1, 3), parts(2, 3), parts(3, 3)]
"""Three that hold and three that break the invariant."""
WHOLE = [parts(2, 2, reset=True), parts(2, 2, watched=True), parts(2, 2, logs=False), parts(2, 3, reset=True)]
"""Nothing commutes and ends by itself, or it is seen."""


@pytest.mark.parametrize("spec", REDUCED, ids=lambda s: f"{s.instance.bounds['Cell'] + 1}")
def test_reduced_models_have_the_same_verdict_and_visible_states_and_fewer_states(spec: Spec) -> None:
    full, small = explicit.explore(spec), explicit.explore(spec, reduce=True)
    assert small.free == [["note", "note_again"]]
    assert (full.verdict, full.broken) == (small.verdict, small.broken)
    assert full.witnessed.keys() == small.witnessed.keys()
    if full.verdict == "holds":
        assert small.distinct < full.distinct
        assert full.deadlocks == small.deadlocks == 1


@pytest.mark.parametrize("spec", WHOLE, ids=["reset", "watched", "one group", "reset, broken"])
def test_models_without_a_free_group_are_not_reduced(spec: Spec) -> None:
    full, same = explicit.explore(spec), explicit.explore(spec, reduce=True)
    assert same.free == []
    assert (full.verdict, full.distinct, full.generated) == (same.verdict, same.distinct, same.generated)


@pytest.mark.parametrize("fault", [None, *CORE_FAULTS])
def test_the_core_is_one_group_so_nothing_changes(fault: str | None) -> None:
    spec = FAULT_MODELS[fault].spec(fault) if fault else FAULT_MODELS["commit.apply_at_replicate"].spec()
    full, same = explicit.explore(spec), explicit.explore(spec, reduce=True)
    assert emit(spec, ["I5"], reduce=True).free == []
    assert (full.verdict, full.broken, full.distinct) == (same.verdict, same.broken, same.distinct)
