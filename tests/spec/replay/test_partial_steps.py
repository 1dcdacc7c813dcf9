"""Kleene's steps are sound: over states of which cells are not known, against the interpreter on all completions."""

from __future__ import annotations

import copy
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spec.replay.test_walks import OPTIONS, calls, deliver
from viewproof.spec.engines.guards import Span
from viewproof.spec.engines.guards.cells import ends
from viewproof.spec.engines.interp import Blocked, step
from viewproof.spec.engines.replay import TAKEN, Replay, compile_spec
from viewproof.spec.engines.replay.cells import PartialCells, meet
from viewproof.spec.engines.replay.partial import Steps
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.concrete import Index, State
from viewproof.spec.vsr import Config, unbounded

Cell = tuple[str, Index, int | None]
"""Variable, index, and the receiver, if it is what that one has received."""
UNKNOWN_MAX = 3


def walk(replay: Replay, rng: random.Random, steps: int) -> State:
    """A state some steps from the start; half of the messages that were sent are received."""
    store, possible = replay.new_store(), calls(replay)
    for _ in range(steps):
        deliver(replay, store)
        rng.shuffle(possible)
        next((n for n, a in possible if replay.functions[n](store, *a) == TAKEN), None)
    state = replay.layout.to_state(store)
    for inbox in (state.received or {}).values():
        for table in inbox.values():
            for index in [index for index in table if rng.random() < 0.3]:
                del table[index]
    return state


def cells_of(state: State) -> list[Cell]:
    """Cells that hold something, and some that hold nothing."""
    found: list[Cell] = [(name, index, None) for name, table in state.tables.items() for index in table]
    for receiver, inbox in (state.received or {}).items():
        found += [(name, index, receiver) for name, table in inbox.items() for index in table]
    return found


def with_value(state: State, cell: Cell, value: int) -> State:
    """The state with another value in one cell."""
    name, index, receiver = cell
    if receiver is not None:
        received = {r: {n: dict(t) for n, t in inbox.items()} for r, inbox in (state.received or {}).items()}
        received.setdefault(receiver, {}).setdefault(name, {})[index] = value
        return State(state.tables, received)
    tables = {n: dict(t) for n, t in state.tables.items()}
    tables.setdefault(name, {})[index] = value
    return State(tables, state.received)


def is_possible(replay: Replay, state: State) -> bool:
    """Is what was received what was sent?"""
    for inbox in (state.received or {}).values():
        for name, table in inbox.items():
            var = replay.spec.schema.vars[name]
            for index, value in table.items():
                sent = state.get(var, index)
                if value > sent if var.kind == "watermark" else value not in (0, sent):
                    return False
    return True


def completions(replay: Replay, state: State, unknown: dict[Cell, range]) -> Iterator[State]:
    """The state with every choice of values for the cells that are not known."""
    for values in itertools.product(*unknown.values()):
        filled = state
        for cell, value in zip(unknown, values, strict=True):
            filled = with_value(filled, cell, value)
        if is_possible(replay, filled):
            yield filled


def unknowns(replay: Replay, state: State, rng: random.Random) -> dict[Cell, range]:
    """A few cells, each with the values that it may hold."""
    chosen = rng.sample(cells_of(state), min(UNKNOWN_MAX, len(cells_of(state))))
    found = {}
    for name, index, receiver in chosen:
        var = replay.spec.schema.vars[name]
        value = state.get(var, index) if receiver is None else state.get_received(var, index, receiver)
        low, high = var.values.lo, var.values.upper(replay.spec.instance)
        top = value + 1 if high is None else min(high, value + 1)
        found[name, index, receiver] = range(max(low, value - 1), top + 1)
    return found


def partial(replay: Replay, state: State, unknown: dict[Cell, range]) -> PartialCells:
    cells = PartialCells.of(state, replay.spec.schema, replay.spec.instance, replay.layout.actors)
    for (name, index, receiver), values in unknown.items():
        var = replay.spec.schema.vars[name]
        span: Any = values[0] if len(values) == 1 else Span(values[0], values[-1])
        if receiver is None:
            cells.write(var, index, span, "taken away")
        else:
            cells.deliver(var, index, span, receiver, "taken away")
    return cells


def assert_covers(replay: Replay, cells: PartialCells, state: State) -> None:
    """Every cell of the state lies in what the partial cells say of it."""
    for var in replay.spec.schema.vars.values():
        indices = {*state.tables.get(var.name, {}), *cells.known[var.name]}
        for index in indices:
            value = cells.read(var, index)
            assert meet(value, state.get(var, index)) is not None, (var.name, index, value, state.get(var, index))


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "core")
def test_a_step_over_unknown_cells_holds_for_every_completion(options: dict[str, Any]) -> None:
    replay = compile_spec(unbounded(Config(3, **options)))
    rng, possible = random.Random(str(options)), calls(replay)
    seen = dict.fromkeys(("refused", "open", "taken"), 0)
    for _ in range(12):
        state = walk(replay, rng, rng.randrange(40))
        unknown = unknowns(replay, state, rng)
        filled = list(completions(replay, state, unknown))
        assert filled
        for name, args in rng.sample(possible, 25) + enabled(replay, filled, possible, rng):
            action, ir = replay.spec.action(name), replay.spec.ir(name)
            given = dict(zip((p.name for p in action.params), args, strict=True))
            cells = partial(replay, state, unknown)
            number, opened = Steps(cells).take(ir, given)
            outcomes = []
            for one in filled:
                try:
                    outcomes.append(step(replay.spec, one, action, given))
                except SpecError:
                    continue
            taken = [after for after in outcomes if isinstance(after, State)]
            if number != TAKEN:
                assert not taken, (name, args, unknown)
                seen["refused"] += 1
                continue
            assert opened or len(taken) == len(outcomes), (name, args, unknown)
            seen["open" if opened else "taken"] += 1
            for after in taken:
                assert_covers(replay, cells, after)
    assert all(seen.values()), seen


def enabled(
    replay: Replay, filled: list[State], possible: list[tuple[str, tuple[int, ...]]], rng: random.Random
) -> list[tuple[str, tuple[int, ...]]]:
    """Calls that some completion takes."""
    found = []
    for name, args in rng.sample(possible, min(len(possible), 150)):
        action = replay.spec.action(name)
        given = dict(zip((p.name for p in action.params), args, strict=True))
        try:
            if not isinstance(step(replay.spec, rng.choice(filled), action, given), Blocked):
                found.append((name, args))
        except SpecError:
            continue
    return found[:15]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "core")
def test_what_a_replica_did_unseen_is_covered(options: dict[str, Any]) -> None:
    """Whatever steps a replica takes in a hole, the cells after `forget` cover the state."""
    replay = compile_spec(unbounded(Config(3, **options)))
    rng, possible = random.Random(str(options)), calls(replay)
    for _ in range(15):
        store = replay.new_store()
        replay.layout.load(store, walk(replay, rng, rng.randrange(40)))
        deliver(replay, store)
        cells = PartialCells.of(
            replay.layout.to_state(store), replay.spec.schema, replay.spec.instance, replay.layout.actors
        )
        node = rng.randrange(3)
        cells.forget(node, "a hole")
        own = [(n, a) for n, a in possible if replay.spec.action(n).actor == "r" and a[0] == node]
        for _ in range(6):
            rng.shuffle(own)
            next((n for n, a in own if replay.functions[n](store, *a) == TAKEN), None)
            assert_covers(replay, cells, replay.layout.to_state(store))


def test_taking_back_and_joining() -> None:
    replay = compile_spec(unbounded(Config(3)))
    view = replay.spec.schema.vars["view"]
    cells = PartialCells.of(State.initial(), replay.spec.schema, replay.spec.instance, replay.layout.actors)
    before = copy.deepcopy(cells.known)
    cells.trail = []
    cells.write(view, (1,), 3)
    cells.undo()
    assert (cells.known, cells.read(view, (1,))) == (before, 0)
    cells.trail = []
    cells.write(view, (1,), 3)
    cells.join("perhaps")
    assert ends(cells.read(view, (1,))) == (0, 3)
    assert cells.cause(view, (1,)) == "perhaps"
