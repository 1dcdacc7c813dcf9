"""The compiled replay takes and refuses the steps that the reference interpreter does, in unbounded instances."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest

from viewproof.spec.engines.replay import TAKEN, Replay, Store, compile_spec
from viewproof.spec.engines.replay.reference import by_interp
from viewproof.spec.lang import Schema, Sort, Spec, SpecError, action, as_index, number_of
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.sorts import Instance, Values
from viewproof.spec.vsr import Config, model, unbounded
from viewproof.spec.vsr.config import ClientTable, Partitions

OPTIONS: list[dict[str, Any]] = [
    {},
    {"features": 63, "pipeline": 2},
    {"features": 63, "checkpoints": True, "journal_slots": 2},
    {"client_table": ClientTable(slots=1, sessions=True, in_flight=0)},
    {"client_table": ClientTable(slots=2, gaps=True)},
    {"client_table": ClientTable(slots=1, sessions=True, in_flight=0), "features": 63, "checkpoints": True},
    {"partitions": Partitions(2), "checkpoints": True},
]


def deliver(replay: Replay, store: Store) -> None:
    """Everything sent is received by everybody."""
    for var in (v for v in replay.spec.schema.vars.values() if v.is_message):
        for receiver in range(replay.layout.actor_count):
            getattr(store, f"in_{var.name}")[receiver] = dict(getattr(store, f"v_{var.name}"))


def calls(replay: Replay) -> list[tuple[str, tuple[int, ...]]]:
    """Actions with small arguments."""
    small = {"Replica": range(replay.layout.actor_count), "View": range(4), "Op": range(1, 5), "Length": range(5)}
    return [
        (act.name, args)
        for act in replay.spec.actions
        for args in itertools.product(*(small.get(p.sort.name, range(1, 4)) for p in act.params))
    ]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(o) or "core")
@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
def test_a_random_walk_is_the_same_in_the_compiled_replay_and_the_interpreter(
    options: dict[str, Any], seed: int
) -> None:
    replay = compile_spec(unbounded(Config(3, **options)))
    reference = by_interp(replay)
    rng, store, taken = random.Random(seed), replay.new_store(), dict.fromkeys(replay.functions, 0)
    possible = calls(replay)
    for _ in range(70):
        deliver(replay, store)
        for name, args in rng.sample(possible, 8):
            one, two = copy.deepcopy(store), copy.deepcopy(store)
            assert replay.functions[name](one, *args) == reference.functions[name](two, *args)
            assert replay.layout.to_state(one) == replay.layout.to_state(two)
        rng.shuffle(possible)
        judge = copy.deepcopy(store)
        least = sorted(possible, key=lambda call: taken[call[0]] + 5 * rng.random())
        name, args = next((n, a) for n, a in least if replay.functions[n](store, *a) == TAKEN)
        assert reference.functions[name](judge, *args) == TAKEN
        assert replay.layout.to_state(store) == replay.layout.to_state(judge)
        taken[name] += 1
    assert sum(n > 0 for n in taken.values()) > len(taken) / 2


def rows() -> Spec:
    """A variable by replica and colour, and messages that copy it; colours have no end."""
    node, colour = Sort("Node"), Sort("Colour", lo=1)
    s = Schema()
    s.state("paint", (node, colour), Values(0, 9), doc="litres")
    s.state("store", (node, colour), Values(0, 9), doc="litres put away")
    s.register("sent", (colour, node, colour), Values(0, 9), sender=lambda k, n, c: n, doc="litres sent in a parcel")

    @action
    def pour(t: Any, r: node, c: colour, k: colour) -> None:
        """Some paint."""
        t.paint[r, c] = number_of(k)

    @action
    def send(t: Any, r: node, k: colour) -> None:
        """All paint in parcel k, and stored."""
        t.sent.update((k, r, colour), lambda c: t.paint[r, c])
        t.store.update((r, colour), lambda c: t.paint[r, c])

    @action
    def unpack(t: Any, r: node, k: colour) -> None:
        """The other's parcel k replaces the paint; the store is empty."""
        t.paint.update((r, colour), lambda c: t.sent[k, as_index(node, 1 - number_of(r)), c])
        t.store.update((r, colour), lambda c: 0)

    return Spec("rows", s, None, (pour, send, unpack), (), (), Instance({"Node": 1}))


@pytest.mark.parametrize("seed", range(3))
def test_a_row_over_an_unbounded_sort_is_copied_cleared_and_overwritten(seed: int) -> None:
    replay = compile_spec(rows())
    reference = by_interp(replay)
    rng, store, judge = random.Random(seed), replay.new_store(), replay.new_store()
    for _ in range(200):
        name = rng.choice(list(replay.functions))
        args = [rng.randrange(2), *(rng.randrange(1, 6) for _ in replay.spec.action(name).params[1:])]
        assert replay.functions[name](store, *args) == reference.functions[name](judge, *args) == TAKEN
        assert replay.layout.to_state(store) == replay.layout.to_state(judge)
    assert replay.layout.to_state(store).tables.keys() == {"paint", "store", "sent"}


def test_an_update_of_all_members_of_an_unbounded_sort_is_refused() -> None:
    spec = rows()
    node, colour = (p.sort for p in spec.action("pour").params[:2])

    @action
    def flood(t: Any, r: node) -> None:
        """Every colour."""
        t.paint.update((r, colour), lambda c: 3)

    flooded = Spec("flooded", spec.schema, None, (flood,), (), (), spec.instance)
    with pytest.raises(SpecError, match="unbounded sort"):
        compile_spec(flooded)
    from viewproof.spec.engines.interp import step

    with pytest.raises(SpecError, match="changes all of its members"):
        step(flooded, State.initial(), flood, {"r": 0})


def test_every_model_compiles_without_bounds() -> None:
    for name in ("control", "checkpoint", "ring", "pipeline", "clients", "sessions", "iggy"):
        assert compile_spec(unbounded(model(name).cfg)).functions
