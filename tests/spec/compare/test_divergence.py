"""The shortest behaviour of one specification that another has not; specifications as plain data."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.compare import UnlikeError, diverging, load
from viewproof.spec.engines.compare.dump import plain
from viewproof.spec.engines.compare.load import Common
from viewproof.spec.engines.mutate import mutants
from viewproof.spec.engines.mutate.rebuild import with_ir
from viewproof.spec.lang import Spec
from viewproof.spec.lang.expr import Binder, Const, Name, Op, Read, SortMax, Update
from viewproof.spec.vsr import model

SMALL = {"views": 2, "ops": 1, "requests": 1}


def as_data(spec: Spec) -> dict[str, Any]:
    return dict(json.loads(json.dumps(plain(spec))))


def mutant(spec: Spec, id: str) -> Spec:
    return next(m for m in mutants(spec) if m.id.startswith(id)).of(spec)


@pytest.mark.parametrize(
    "name", ["core", *(pytest.param(n, marks=pytest.mark.long) for n in ("clients", "superblock"))]
)
def test_a_specification_read_from_plain_data_is_searched_like_the_one_that_was_written(name: str) -> None:
    sizes = {"replicas": 2, **({"rots": 0} if name == "superblock" else {})}
    spec = model(name, **sizes)
    again = load(as_data(spec), Common())
    one, other = (explicit.explore(s, max_states=20_000) for s in (spec, again))
    assert (one.distinct, one.generated, one.depth) == (other.distinct, other.generated, other.depth)
    assert one.per_action == other.per_action
    slow = interp.explore(again, max_states=200)
    assert slow.per_action == interp.explore(spec, max_states=200).per_action


def test_two_equal_specifications_have_the_same_behaviours() -> None:
    data = as_data(model("core", **SMALL))
    found = diverging(data, data, 100_000)
    assert (found.steps, found.complete, found.states) == ((), True, 12_649)


def test_a_guard_left_out_has_a_behaviour_more_and_none_less() -> None:
    spec = model("core", **SMALL)
    wrong = as_data(mutant(spec, "commit | quorum <= "))
    right = as_data(spec)
    more = diverging(wrong, right, 100_000)
    assert [step.action for step in more.steps] == ["on_request", "commit"]
    assert all(change.var != "unshared" for step in more.steps for change in step.changes)
    fewer = diverging(right, wrong, 100_000)
    assert (fewer.steps, fewer.complete) == ((), True)


def test_an_update_left_out_leads_elsewhere_in_both() -> None:
    spec = model("core", **SMALL)
    wrong, right = as_data(mutant(spec, "start_view_change | durable_view[r] = … | left out")), as_data(spec)
    for one, other in ((wrong, right), (right, wrong)):
        assert [step.action for step in diverging(one, other, 100_000).steps] == ["start_view_change"]


def test_the_same_written_over_other_cells_is_the_same() -> None:
    spec = model("core", **SMALL)
    right = as_data(spec)
    ir = spec.ir("append")
    (one,) = [u for u in ir.updates if u.var.name == "written"]
    cell = Name("o_9", spec.schema.vars["written"].index[1])
    kept = Op("or", (Op("eq", (cell, one.index[1]), True), Read(one.var, (one.index[0], cell))), True)
    lost = Op("eq", (cell, one.index[1]), True)
    for value, same in ((kept, True), (lost, True), (Const(0, True), False)):
        row = Update(one.var, (one.index[0], cell), (Binder(cell, Const(1), SortMax(cell.sort)),), value, one.source)
        updates = tuple(row if u is one else u for u in ir.updates)
        other = as_data(with_ir(spec, replace(ir, updates=updates)))
        for found in (diverging(other, right, 100_000), diverging(right, other, 100_000)):
            assert found.complete
            assert (found.steps == ()) is same


def test_a_bound_of_states_leaves_it_open() -> None:
    data = as_data(model("core", **SMALL))
    found = diverging(data, data, 100)
    assert (found.steps, found.complete) == ((), False)


def test_states_of_different_kinds_are_not_compared() -> None:
    small, large = as_data(model("core", **SMALL)), as_data(model("core", **SMALL))
    next(var for var in large["vars"] if var["name"] == "view")["init"] = 1
    with pytest.raises(UnlikeError, match="the variable view has other indices, another range or another first value"):
        diverging(small, large, 100)
