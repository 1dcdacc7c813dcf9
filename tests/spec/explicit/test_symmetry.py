"""Symmetry changes counts only: verdicts, depth, behaviours' length and what is reachable up to renaming stay."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from viewproof.spec.engines import explicit
from viewproof.spec.lang import (
    Instance,
    Schema,
    Sort,
    Spec,
    SpecError,
    action,
    exists,
    forall,
    invariant,
    not_,
    require,
    up_to,
)
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.faults import FAULTS

Node = Sort("Node", lo=1)

MODELS: list[tuple[str, dict[str, int], tuple[str, ...]]] = [
    ("two clients", {"replicas": 2, "views": 2, "ops": 2, "requests": 1, "clients": 2}, ()),
    ("three clients", {"replicas": 2, "views": 1, "ops": 3, "requests": 1, "clients": 3}, ()),
    ("restart", {"replicas": 2, "views": 2, "ops": 1, "requests": 1, "clients": 2, "restarts": 1}, ()),
    ("one view", {"replicas": 3, "views": 1, "ops": 2, "requests": 1, "clients": 2}, ()),
    (
        "early execution",
        {"replicas": 3, "views": 2, "ops": 1, "requests": 1, "clients": 2},
        ("commit.apply_at_replicate",),
    ),
    ("transfer", {"replicas": 3, "views": 3, "ops": 1, "requests": 1, "clients": 2}, ("state.getstate_truncates",)),
    ("quorum", {"replicas": 4, "views": 2, "ops": 1, "requests": 1, "clients": 2}, ("view.even_quorum",)),
    (
        "view from prepare",
        {"replicas": 3, "views": 2, "ops": 1, "requests": 1, "clients": 2, "restarts": 1},
        ("boot.view_from_last_prepare",),
    ),
]


@pytest.mark.parametrize(("title", "sizes", "faults"), MODELS, ids=[m[0] for m in MODELS])
def test_verdict_depth_and_length_are_the_same_and_states_fewer(
    title: str, sizes: dict[str, int], faults: tuple[str, ...]
) -> None:
    assert set(faults) <= set(FAULTS)
    spec = model("core", faults=faults, **sizes)
    full = explicit.explore(spec, workers=1)
    small = explicit.explore(spec, symmetry=["Client"])
    assert (full.verdict, full.broken, full.depth) == (small.verdict, small.broken, small.depth)
    assert len(full.behaviour) == len(small.behaviour)
    assert full.witnessed == small.witnessed
    assert small.distinct < full.distinct
    assert small.symmetry == ["Client"]
    if full.verdict == "holds":
        assert full.distinct <= small.distinct * {2: 2, 3: 6}[sizes["clients"]]


def tokens(prefer: bool = False, init: int = 0) -> Spec:
    """Nodes pass one token and mark who had it; with `prefer` they are told apart by their order."""
    schema = Schema()
    schema.state("holder", (), up_to(Node), init=init, doc="who holds the token; 0 nobody")
    schema.state("had", (Node,), doc="had it once")

    @action
    def take(s: Any, n: Node) -> None:
        """A node takes the free token, once."""
        require(s.holder == 0)
        require(not_(s.had[n]))
        if prefer:
            require(exists(Node, lambda m: m <= n))
        s.holder = n
        s.had[n] = True

    @action
    def give(s: Any, n: Node) -> None:
        """The holder gives it back."""
        require(s.holder == n)
        s.holder = 0

    @invariant("I1", "someone never had it")
    def not_all(s: Any) -> Any:
        """Not every node had the token."""
        return not_(forall(Node, lambda n: s.had[n]))

    return Spec("tokens", schema, None, (take, give), (not_all,), (), Instance({"Node": 4}))


def classes(states: set[tuple[int, frozenset[int]]]) -> set[tuple[bool, bool, int]]:
    """States up to renaming of nodes: is the token held, by one who had it, and how many had it."""
    return {(holder > 0, holder in had, len(had)) for holder, had in states}


def test_what_is_reachable_up_to_renaming_is_the_same() -> None:
    spec = replace(tokens(), invariants=())
    full, small = explicit.explore(spec), explicit.explore(spec, symmetry=["Node"])
    by_hand = {(0, frozenset[int]())}
    waiting = list(by_hand)
    while waiting:
        holder, had = waiting.pop()
        steps = [(0, had)] if holder else [(n, had | {n}) for n in range(1, 5) if n not in had]
        waiting += [s for s in steps if s not in by_hand]
        by_hand |= set(steps)
    assert full.distinct == len(by_hand)
    assert small.distinct == len(classes(by_hand))
    assert (full.depth, full.verdict) == (small.depth, small.verdict)


def test_a_counterexample_under_symmetry_is_a_behaviour_of_the_specification() -> None:
    full, small = explicit.explore(tokens()), explicit.explore(tokens(), symmetry=["Node"])
    assert (small.verdict, len(small.behaviour)) == ("violated", len(full.behaviour))
    assert small.behaviour[-1].state != State.initial()


def test_a_specification_that_tells_members_apart_is_refused() -> None:
    with pytest.raises(SpecError, match="told apart by le"):
        explicit.explore(tokens(prefer=True), symmetry=["Node"])
    with pytest.raises(SpecError, match="holder starts at"):
        explicit.explore(tokens(init=1), symmetry=["Node"])
    with pytest.raises(SpecError, match="no symmetry over Replica"):
        explicit.explore(model("core"), symmetry=["Replica"])
    with pytest.raises(SpecError, match="no sort Clients; there are: Client, Op"):
        explicit.explore(model("core"), symmetry=["Clients"])
