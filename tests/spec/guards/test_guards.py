"""The evaluator of guards: as the interpreter where all is known; never wrong where something is not; in words."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from viewproof.spec.engines import interp
from viewproof.spec.engines.guards import Evaluator, Span, StateCells, Value, Words, refusal
from viewproof.spec.engines.guards.cells import declared
from viewproof.spec.lang import Instance, Schema, Sort, Spec, Var, action, all_of, any_of, count, exists, require, up_to
from viewproof.spec.lang.concrete import Index, State
from viewproof.spec.vsr import model

Box = Sort("Box", lo=1)


@action
def seal(s, b: Box):  # type: ignore[no-untyped-def]
    """Enough boxes are full, or one overflows."""
    require(any_of(count(Box, lambda x: s.level[x] >= 2) >= 2, s.level[b] == 3))
    require(exists(Box, lambda x: all_of(x != b, s.level[x] == 0)))
    s.level[b] = 0


def _boxes() -> Spec:
    schema = Schema()
    schema.state("level", (Box,), up_to(Sort("Level")), doc="how full it is")
    return Spec("boxes", schema, None, (seal,), (), (), Instance({"Box": 3, "Level": 3}))


class Partly:
    """Cells of a state of which some are not known."""

    def __init__(self, instance: Instance, state: State, hidden: set[tuple[str, Index]]) -> None:
        self.known = StateCells(instance, state)
        self.hidden = hidden

    def read(self, var: Var, index: Index, receiver: int | None, after: bool) -> Value:
        value = self.known.read(var, index, receiver, after)
        return declared(var, self.known.instance) if (var.name, index) in self.hidden else value


def _walk(spec: Spec, seed: int, steps: int) -> Iterator[State]:
    chosen, state = random.Random(seed), State.initial()
    for _ in range(steps):
        yield state
        following = [after for _, _, after in interp.successors(spec, state)]
        if not following:
            return
        state = chosen.choice(following)


@pytest.mark.parametrize("name", ["core", "core_restart", "checkpoint"])
def test_it_agrees_with_the_interpreter_on_every_instance_of_every_action(name: str) -> None:
    spec = model(name)
    for state in _walk(spec, 1, 25):
        for act in spec.actions:
            for args in interp.instances(spec, act):
                evaluator = Evaluator(spec.instance, StateCells(spec.instance, state))
                conjunct, opened = evaluator.first_false(spec.ir(act.name), args)
                result = interp.step(spec, state, act, args)
                assert not opened
                assert conjunct == (result.conjunct if isinstance(result, interp.Blocked) else None)
                if isinstance(result, State):
                    for var, index, value in evaluator.updates(spec.ir(act.name), args):
                        assert result.get(var, index) == value  # type: ignore[arg-type]


def test_what_it_says_of_cells_that_are_not_known_is_so_whatever_they_are() -> None:
    spec = model("core")
    chosen = random.Random(7)
    decided = opened = 0
    for state in _walk(spec, 2, 25):
        variables = [v for v in spec.schema.vars.values() if chosen.random() < 0.3]
        hidden = {(v.name, index) for v in variables for index in state.tables.get(v.name, {})}
        for act in spec.actions:
            for args in interp.instances(spec, act):
                full = Evaluator(spec.instance, StateCells(spec.instance, state))
                part = Evaluator(spec.instance, Partly(spec.instance, state, hidden))
                for guard in spec.ir(act.name).guards:
                    truth = full.truth(guard.cond, args)
                    if truth is False:
                        assert part.truth(guard.cond, args) in (False, None)
                        break
                    found = part.truth(guard.cond, args)
                    assert found in (True, None)
                    decided, opened = decided + (found is True), opened + (found is None)
    assert decided > 1000
    assert opened > 100


def _truth(levels: tuple[int, ...], hidden: set[int], b: int) -> tuple[bool | None, bool | None]:
    spec = _boxes()
    state = State({"level": {(n + 1,): v for n, v in enumerate(levels) if v}})
    cells = Partly(spec.instance, state, {("level", (n,)) for n in hidden})
    first, second = spec.ir("seal").guards
    evaluator = Evaluator(spec.instance, cells)
    return evaluator.truth(first.cond, {"b": b}), evaluator.truth(second.cond, {"b": b})


@pytest.mark.parametrize(
    ("levels", "hidden", "expected"),
    [
        ((2, 2, 0), {3}, (True, None)),
        ((2, 0, 0), {3}, (None, True)),
        ((0, 0, 0), {3}, (False, True)),
        ((1, 2, 1), {1}, (None, False)),
        ((1, 2, 1), {1, 2, 3}, (None, None)),
    ],
)
def test_a_guard_is_open_only_if_what_is_not_known_decides(
    levels: tuple[int, ...], hidden: set[int], expected: tuple[bool | None, bool | None]
) -> None:
    assert _truth(levels, hidden, 1) == expected


def test_a_count_names_who_is_counted_who_is_not_and_how_many_it_takes() -> None:
    spec = _boxes()
    state = State({"level": {(1,): 2, (3,): 1}})
    found = refusal(spec, StateCells(spec.instance, state), "seal", 0, {"b": 2}, lambda var, value: f"<{value}>")
    assert found.text().startswith(
        "seal(b=2): any_of(count(Box, lambda x: s.level[x] >= 2) >= 2, s.level[b] == 3) is false "
        "(1 of 3 (x = 1), at least 2 needed; not 2: level[2] = <0>; not 3: level[3] = <1>, level[2] = <0>) ["
    )


def test_a_guard_that_is_open_says_which_cells_are_not_known() -> None:
    spec = _boxes()
    cells = Partly(spec.instance, State({"level": {(1,): 2}}), {("level", (3,))})
    found = refusal(spec, cells, "seal", 0, {"b": 2}, lambda var, value: str(value))
    assert found.truth is None
    assert "is open (1 of 3 (x = 1), at least 2 needed; not 2: level[2] = 0; open 3: level[3] is not known" in (
        found.text()
    )


def test_an_exists_that_fails_says_so_of_each_member() -> None:
    spec = _boxes()
    state = State({"level": {(1,): 2, (2,): 2, (3,): 1}})
    words = Words(spec.instance, StateCells(spec.instance, state), lambda var, value: str(value))
    assert words.because(spec.ir("seal").guards[1].cond, {"b": 1}) == (
        "none of 3 (x = 1 … 3), at least 1 needed; not 1; not 2: level[2] = 2; not 3: level[3] = 1",
    )


def test_a_sum_of_numbers_that_are_not_known_keeps_its_ends() -> None:
    spec = _boxes()
    cells = Partly(spec.instance, State({"level": {(1,): 2}}), {("level", (1,))})
    level = spec.schema.vars["level"]
    evaluator = Evaluator(spec.instance, cells)
    from viewproof.spec.lang.expr import Const, Op, Read

    read = Read(level, (Const(1),))
    assert evaluator.value(Op("add", (read, Const(2))), {}) == Span(2, 5)
    assert evaluator.value(Op("min", (read, Const(1))), {}) == Span(0, 1)
    assert evaluator.value(Op("max", (read, Const(7))), {}) == 7
    assert evaluator.truth(Op("le", (read, Const(3)), True), {}) is True
    assert evaluator.truth(Op("eq", (read, Const(2)), True), {}) is None
