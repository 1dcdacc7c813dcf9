"""Lost disks: the proof, its lemmas in all states, and weaker rules that fail where they are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.spec.explicit.test_loss import WRONG
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import lemmas_of

SIZES = [
    {},
    pytest.param({"replicas": 5}, marks=pytest.mark.long),
    pytest.param({"views": 3, "restarts": 2}, marks=pytest.mark.long),
    pytest.param({"ops": 2, "requests": 2}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_losses_are_inductive(sizes: dict[str, int]) -> None:
    spec = model("loss", **sizes)
    assert prove(spec, lemmas_of(spec.cfg, crashes=True)).verdict == "proved"


WEAKER = {wrong.name: case for case in WRONG for wrong in [case[2]]}


@pytest.mark.long
@pytest.mark.parametrize("name", WEAKER)
def test_a_weaker_rule_fails_where_it_is(name: str) -> None:
    _, replaced, wrong, sizes, _ = WEAKER[name]
    spec = model("loss", **sizes)
    found = prove(spec.with_actions({replaced: wrong}, ()), lemmas_of(spec.cfg, crashes=True))
    assert {failure.action for failure in found.failures} == {name}


@pytest.mark.long
@pytest.mark.parametrize("sizes", [{}, {"replicas": 2, "views": 3, "ops": 2, "requests": 2, "restarts": 2}])
def test_nothing_said_is_false_in_the_first_states(sizes: dict[str, int]) -> None:
    spec = model("loss", **sizes)
    said = (*spec.invariants, *lemmas_of(spec.cfg, crashes=True))
    found = explicit.explore(replace(spec, invariants=said, witnesses=()), max_states=5_000_000, notify=lambda _: None)
    assert found.broken is None
