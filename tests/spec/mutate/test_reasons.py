"""A reason that says that another model notices the mistake is true."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest

from viewproof.refinement.cli.mutate import model_shapes
from viewproof.spec.engines.mutate import Mutant, all_mutants
from viewproof.spec.engines.portfolio import Shape, search
from viewproof.spec.mutants import reasons

NOTICES = re.compile(r"the model (\w+) notices")


def anywhere(mutant: str) -> str:
    """The id of a mutant without the number of nacks that a size of the cluster needs."""
    return re.sub(r"\| \(\d+ - ", "| (n - ", mutant)


def said() -> list[tuple[str, str]]:
    """The other model, and the mutant, for which a reason says that it notices it."""
    found = {
        (match[1], anywhere(mutant))
        for by_mutant in reasons().values()
        for mutant, why in by_mutant.items()
        for match in NOTICES.finditer(why)
    }
    return sorted(found)


def test_some_reasons_are_another_models() -> None:
    assert {model for model, _ in said()} == {"combined", "headers"}
    assert anywhere("discard | (2 - where(x, 0, 1)) <= 3") == "discard | (n - where(x, 0, 1)) <= 3"


@pytest.mark.long
@pytest.mark.parametrize("model", sorted({model for model, _ in said()}))
def test_what_a_reason_says_that_another_model_notices_it_notices(model: str) -> None:
    shapes = model_shapes(model)
    found: dict[str, list[tuple[Shape, Mutant]]] = defaultdict(list)
    for id, by_shape in all_mutants(shapes).items():
        found[anywhere(id)] += [(shape, by_shape[shape.name]) for shape in shapes if shape.name in by_shape]
    for mutant in [mutant for other, mutant in said() if other == model]:
        verdicts = (search(Shape(s.name, m.of(s.spec), s.max_states))[0].verdict for s, m in found[mutant])
        assert any(verdict in ("violated", "range") for verdict in verdicts), mutant
