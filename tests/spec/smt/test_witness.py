"""No lemma is vacuous: the premise of each of its parts is true in some reachable state."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.spec.smt.comparison import random_walk
from viewproof.spec.engines import interp
from viewproof.spec.engines.smt import witness
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.premises import parts
from viewproof.spec.engines.smt.terms import evaluate
from viewproof.spec.engines.smt.witness import holds_last, unwitnessed, witnesses
from viewproof.spec.lang import NONE, Predicate, Spec, all_of, any_of, between, exists, forall, implies, not_
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import MODELS, model
from viewproof.spec.vsr.core.state import Op, Replica
from viewproof.spec.vsr.lemmas import GROUPS, lemmas_of
from viewproof.spec.vsr.models import build

Sizes = dict[str, Any]
DEEP = {"replicas": 2, "views": 3, "ops": 2, "requests": 2}
MANY = 3_000_000
WITNESSED: dict[str, list[Sizes]] = {
    "core": [{"restarts": 1}],
    "core_restart": [{}, {"views": 3, "ops": 1, "requests": 1}],
    "control": [{}, {**DEEP, "restarts": 1}],
    "control_checkpoint": [{}, {**DEEP, "restarts": 1}],
    "checkpoint": [{}, {**DEEP, "restarts": 1}],
    "ring": [{}, {**DEEP, "restarts": 1}, {"replicas": 2, "journal_slots": 2}],
    "drain": [{}, {**DEEP, "restarts": 1}, {"replicas": 2, "journal_slots": 2}],
    "combined": [
        {},
        {"replicas": 3, "ops": 2},
        {"views": 3, "restarts": 1},
        {"views": 1, "ops": 4, "requests": 2, "clients": 1},
        {"views": 1, "ops": 4, "incarnations": 2},
    ],
    "pipeline": [{}, {**DEEP, "restarts": 1}],
    "append_failure": [{}, {**DEEP, "restarts": 1}],
    "frontiers": [{}, {"requests": 1, "restarts": 1}, {"replicas": 3, "views": 3, "clients": 1}],
    "discard": [{}, {"views": 3}, {**DEEP}, {"replicas": 2, "views": 4}],
    "clients": [{}, {"requests": 2, "ops": 4}, {"replicas": 2, "views": 3, "ops": 3, "restarts": 1, "incarnations": 2}],
    "sessions": [{"replicas": 3, "ops": 3}, {"replicas": 2, "views": 3, "restarts": 1}],
    "iggy": [{"replicas": 3, "ops": 3}, {"views": 3, "ops": 3, "restarts": 1}],
    "repair": [
        {},
        {**DEEP, "rots": 1},
        {"ops": 2, "clients": 2, "rots": 0},
        {"restarts": 1},
        {"ops": 3, "clients": 3, "rots": 0, "states": 10 * MANY},
        {"replicas": 5, "views": 3, "states": 0, "rounds": 2},
        {"views": 4, "rots": 0, "states": 0, "rounds": 3},
        {"replicas": 2, "views": 6, "states": 10 * MANY},
    ],
    "headers": [
        {},
        {**DEEP, "rots": 1, "states": 2 * MANY},
        {"ops": 1, "clients": 1, "restarts": 1},
        {"ops": 3, "clients": 3, "states": 10 * MANY},
        {"views": 4, "ops": 1, "clients": 1, "rots": 0, "states": 0, "rounds": 3},
        {"replicas": 2, "views": 6, "ops": 1, "clients": 1, "states": 10 * MANY},
        {"ops": 1, "clients": 1, "restarts": 1, "rots": 1},
    ],
    "recovery": [
        {},
        {**DEEP, "restarts": 2},
        {"ops": 2, "clients": 2, "rots": 0, "restarts": 0},
        {"replicas": 5, "views": 3, "restarts": 0, "states": 0, "rounds": 2},
        {"views": 4, "rots": 0, "restarts": 0, "states": 0, "rounds": 3},
        {"replicas": 2, "views": 6, "restarts": 0, "states": 10 * MANY},
    ],
    "partitions": [{}, {**DEEP, "restarts": 1}, {"replicas": 3, "ops": 1, "requests": 1, "messages": 1}],
    "loss": [{}, {**DEEP, "restarts": 1}, {"replicas": 5, "restarts": 2}],
    "superblock": [{}, {**DEEP, "restarts": 1}, {"ops": 2, "clients": 2, "restarts": 0, "rots": 0}],
}
"""Model → instances that together have a witness of every part: sizes, where the search of states is not enough also
the states searched and the rounds of bounded search, and the slots of a ring where they are not the model's.
"""
NOT_FOUND = {"superblock": ["I5.3"]}
"""A head of which the header is unknown is allowed by superblock too, to a replica that is not normal; none was met."""
NO_LEMMAS = {
    "alone": "a cluster of one, by superblock: what its lemmas say of others is said of nobody",
    "diskless": "recovery by nonce with other quorums",
    "slots": "those of iggy but one: a request of a client that was evicted comes again",
    "withdrawal": "those of control, of which it changes how a primary asks",
    "iggy_clients": "the core's log; what its table keeps has no lemmas",
}
"""Models of configurations whose lemmas are witnessed under another name."""


def test_every_model_is_looked_at() -> None:
    with_lemmas = {name for name in MODELS if lemmas_of(model(name).cfg)}
    assert set(WITNESSED) | set(NO_LEMMAS) >= with_lemmas


def said(spec: Spec) -> tuple[Predicate, ...]:
    """Invariants and lemmas of a model."""
    return (*spec.invariants, *lemmas_of(spec.cfg, crashes=spec.instance.bounds.get("Restart") != 0))


def instance(name: str, sizes: Sizes) -> Spec:
    """A model of these sizes, perhaps with another ring."""
    slots = sizes.pop("journal_slots", None)
    spec = model(name, **sizes)
    return build(replace(spec.cfg, journal_slots=slots), spec.instance, name) if slots else spec


def left(name: str, instances: list[Sizes]) -> list[witness.Witness]:
    """Parts of what is said of the model that have no witness in any of these instances.

    A lemma counts only where it is one: some are not where replicas crash.
    """
    waiting = {w.part.label: w for w in unwitnessed(model(name), said(model(name)))}
    for chosen in instances:
        sizes = dict(chosen)
        options = {"max_states": sizes.pop("states", MANY), "rounds": sizes.pop("rounds", 0)}
        spec = instance(name, sizes)
        found = [w for w in unwitnessed(spec, said(spec)) if w.part.label in waiting]
        witness.search(spec, found, **options)
        for w in found:
            if w.reached:
                assert holds_last(spec, w.part, w.steps)
                del waiting[w.part.label]
        if not waiting:
            break
    return list(waiting.values())


@pytest.mark.long
@pytest.mark.parametrize("name", WITNESSED)
def test_every_part_of_every_invariant_and_lemma_has_a_witness(name: str) -> None:
    assert [w.part.label for w in left(name, WITNESSED[name])] == NOT_FOUND.get(name, [])


def test_lemmas_about_types_replicas_and_quorums_have_witnesses_by_bounded_search() -> None:
    spec = model("core_restart", views=2, ops=2, requests=2, restarts=1)
    found = witnesses(spec, (*GROUPS["types"], *GROUPS["replicas"], *GROUPS["quorums"]), max_states=0, rounds=1)
    assert {w.engine for w in found} == {"z3"}
    assert len(found) > 15
    assert max(len(w.steps) for w in found) > 0


def test_lemmas_about_messages_have_shortest_witnesses_by_search() -> None:
    spec = model("core_restart", views=2, ops=2, requests=2, restarts=1)
    found = witnesses(spec, GROUPS["messages"])
    assert {w.engine for w in found} == {"explicit"}
    deep = max(found, key=lambda w: len(w.steps))
    assert len(deep.steps) > 5
    assert all(not holds_last(spec, deep.part, deep.steps[:n]) for n in range(len(deep.steps)))


def test_a_vacuous_lemma_has_no_witness() -> None:
    never = Predicate(
        "never", "false implies all", lambda s: implies(s.replies[1] > s.replies[1] + 1, s.sv[0].sent), "No."
    )
    odd = Predicate(
        "odd", "view 0 starts", lambda s: implies(s.sv[0].sent, s.replies[1] == 0), "View 0 has no start_view."
    )
    spec = model("core", views=2, ops=1, requests=1)
    for options in ({"max_states": None}, {"max_states": 0, "rounds": 2}):
        found = witnesses(spec, (never, odd), **options)
        assert [(w.part.label, w.reached) for w in found] == [("never.1", False), ("odd.1", False)]
        assert {w.unreachable for w in found} == {options["max_states"] is None}
    assert not any(w.unreachable for w in witnesses(spec, (never,), max_states=100))


def test_a_lemma_about_steps_is_witnessed_by_a_step() -> None:
    spec = model("core_restart", views=2, ops=1, requests=1, restarts=1)
    bounded, afresh, *_, answered = found = witnesses(spec, [p for p in spec.invariants if p.id == "I4"])
    assert all(w.reached and w.part.of_step for w in found)
    assert (bounded.part.reads_after, len(bounded.steps)) == (False, 1)
    assert (afresh.part.reads_after, afresh.steps[-1].action) == (True, "restart")
    assert (answered.part.reads_after, answered.steps[-1].action) == (True, "execute")


def test_an_interrupt_ends_the_search_and_keeps_what_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = model("core", views=2, ops=1, requests=1)
    found = unwitnessed(spec, spec.invariants)

    def interrupted(*_: object, **__: object) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(witness, "by_rounds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        witness.search(spec, found, max_states=1_000, rounds=1)
    assert any(w.reached for w in found)


def split(fn: Any) -> list[Any]:
    """Premises of a lemma in the core."""
    spec = model("core", views=2, ops=1, requests=1)
    return [part.predicate() for part in parts(spec, Predicate("p", "a lemma", fn, "For a test."))]


def test_premises_are_what_stands_before_the_last_disjunct() -> None:
    def lemma(s: Any) -> Any:
        return forall(
            Replica,
            lambda r: all_of(
                s.op[r] <= 1,
                forall(between(Op, 1, s.op[r]), lambda o: s.entry[r, o] != NONE),
                implies(s.view[r] == 1, lambda: all_of(s.log_view[r] == 1, any_of(s.op[r] == 0, s.svc[1, r]))),
            ),
        )

    def premises(s: Any) -> list[Any]:
        def some(body: Any) -> Any:
            return exists(Replica, body)

        return [
            some(lambda r: r == r),
            some(lambda r: exists(between(Op, 1, s.op[r]), lambda o: o == o)),
            some(lambda r: s.view[r] == 1),
            some(lambda r: all_of(s.view[r] == 1, s.log_view[r] == 1, not_(s.op[r] == 0))),
        ]

    found = split(lemma)
    assert len(found) == 4
    spec = model("core", views=2, ops=1, requests=1)
    states = [s for seed in range(6) for s in random_walk(spec, random.Random(seed), 12)]
    for n, premise in enumerate(found):
        meant = Predicate("q", "what is meant", lambda s, n=n: premises(s)[n], "For a test.")
        answers = [interp.holds(spec, premise, state) for state in states]
        assert answers == [interp.holds(spec, meant, state) for state in states]
        assert any(answers)


def test_a_premise_is_the_same_for_interpreter_and_terms() -> None:
    spec = model("repair", replicas=2, views=2, ops=1)
    low = Lowering(spec)
    asked = [w.part for w in unwitnessed(spec, said(spec)) if not w.part.reads_after]
    terms = [low.expr(part.premise, {}) for part in asked]
    for state in [State.initial(), *random_walk(spec, random.Random(2), 14)[-2:]]:
        values = low.values_of(state)
        for part, term in zip(asked, terms, strict=True):
            assert evaluate(term.ok, values)
            assert bool(evaluate(term.term, values)) == interp.holds(spec, part.predicate(), state), part.label
