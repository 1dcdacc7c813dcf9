"""Inductive proofs: the core is proved, each mistake makes a proof fail where it is, and nothing is proved for free."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.spec.smt.comparison import about_steps
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.smt import cti
from viewproof.spec.engines.smt.induction import RANGES
from viewproof.spec.engines.smt.proof import Proof, prove
from viewproof.spec.lang import Instance, Predicate, Schema, Sort, Spec, action, forall, invariant, number_to, require
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import GROUPS, LEMMAS

N = Sort("N")
SMALL = {"views": 2, "ops": 1, "requests": 1, "restarts": 1}


def test_core_is_proved_with_three_replicas_two_views_and_one_op() -> None:
    proof = prove(model("core_restart", **SMALL), LEMMAS)
    assert proof.verdict == "proved"
    assert set(proof.lemmas) == {RANGES, *(p.id for p in (*proof.problem.spec.invariants, *LEMMAS))}
    assert sum(t.solved for t in proof.actions.values()) > 1000


def test_processes_do_not_change_what_is_found() -> None:
    spec = model("core_restart", faults=["state.getstate_truncates"], **SMALL)
    one, two = prove(spec, LEMMAS), prove(spec, LEMMAS, workers=2)
    assert [(f.action, f.args, f.goal, f.names) for f in one.failures] == [
        (f.action, f.args, f.goal, f.names) for f in two.failures
    ]


def test_core_is_proved_with_three_views_and_two_ops() -> None:
    assert prove(model("core_restart", views=3, ops=2), LEMMAS).verdict == "proved"


def test_client_table_is_proved_with_two_clients() -> None:
    assert prove(model("core_restart", views=2, ops=2, clients=2, requests=2), LEMMAS).verdict == "proved"


@pytest.mark.long
@pytest.mark.parametrize(
    "sizes",
    [
        {"views": 4, "ops": 3, "requests": 3},
        {"views": 6, "ops": 5, "requests": 5},
        {"replicas": 4, "views": 3, "ops": 2},
        {"replicas": 5, "views": 3, "ops": 2},
    ],
    ids=str,
)
def test_core_is_proved_at_the_sizes_of_the_table(sizes: dict[str, int]) -> None:
    assert prove(model("core_restart", **sizes), LEMMAS, workers=2).verdict == "proved"


FAULTY = {
    "commit.apply_at_replicate": (3, "execute"),
    "view.even_quorum": (4, "start_view"),
    "boot.view_from_last_prepare": (3, "restart"),
    "state.getstate_truncates": (3, "on_get_state"),
}


@pytest.mark.parametrize("fault", FAULTY)
def test_a_fault_fails_at_the_action_it_changes(fault: str) -> None:
    replicas, culprit = FAULTY[fault]
    spec = model("core_restart", replicas=replicas, faults=[fault], **SMALL)
    proof = prove(spec, LEMMAS)
    assert proof.verdict == "failed"
    assert {f.action for f in proof.failures} == {culprit}
    assert any(f.goal.startswith("I") for f in proof.failures)
    check_counterexample(proof)


def check_counterexample(proof: Proof) -> None:
    """The interpreter takes the step from a state that satisfies the lemmas, and finds the lemma broken after it."""
    spec = proof.problem.spec
    transition = about_steps(spec, (*spec.invariants, *LEMMAS))
    found = cti.explain(proof.problem, proof.failures[0])
    after = interp.step(spec, found.before, spec.action(found.failure.action), found.failure.args)
    assert after == found.after
    assert isinstance(after, State)
    for lemma in (*spec.invariants, *LEMMAS):
        if lemma.id not in transition:
            assert interp.holds(spec, lemma, found.before), lemma.id
    broken = next(p for p in (*spec.invariants, *LEMMAS) if p.id == found.failure.goal)
    assert not interp.holds(spec, broken, *((found.before, after) if broken.id in transition else (after,)))
    assert not interp.holds(spec, found.avoided("leaves"), found.before)
    leaves = {(leaf.var, leaf.index): leaf.value for leaf in found.leaves}
    assert (
        leaves.items()
        <= {place: found.before.get(spec.schema.vars[place[0]], place[1]) for place in proof.problem.low.number}.items()
    )


@pytest.mark.parametrize("left_out", ["quorums.later_views_carry", "types.log_view", "messages.ack_durable"])
def test_without_a_needed_lemma_nothing_is_proved(left_out: str) -> None:
    spec = model("core_restart", **SMALL)
    proof = prove(spec, [p for p in LEMMAS if p.id != left_out], stop_early=True)
    assert proof.verdict == "failed"


INSTANCES = [
    SMALL,
    pytest.param({"replicas": 2, "views": 3, "ops": 2, "requests": 2, "restarts": 1}, marks=pytest.mark.long),
    pytest.param({"replicas": 2, "views": 2, "ops": 2, "clients": 2, "restarts": 1}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("sizes", INSTANCES)
def test_every_lemma_holds_in_every_reachable_state(sizes: dict[str, int]) -> None:
    spec = replace(model("core_restart", **sizes), invariants=LEMMAS, witnesses=())
    assert explicit.explore(spec, max_states=400_000, notify=lambda _: None).verdict == "holds"


def test_lemmas_have_groups_sentences_and_names_of_their_own() -> None:
    assert all(lemma.id.startswith(f"{group}.") for group, lemmas in GROUPS.items() for lemma in lemmas)
    assert len({lemma.id for lemma in LEMMAS}) == len(LEMMAS)


def counter(step: int, bound: int) -> Spec:
    """A counter per index that goes up by `step` while below `bound`."""
    schema = Schema()
    schema.state("x", (N,), number_to(N, plus=2), doc="a counter")

    @action
    def rise(s: object, i: N) -> None:
        """The counter rises."""
        require(s.x[i] < bound)  # type: ignore[attr-defined]
        s.x[i] = s.x[i] + step  # type: ignore[attr-defined]

    @invariant("small", "x stays small")
    def small(s: object) -> object:
        """The counter is at most 3."""
        return forall(N, lambda i: s.x[i] <= 3)  # type: ignore[attr-defined]

    return Spec("counter", schema, None, (rise,), (small,), (), Instance({"N": 1}))


def test_a_step_that_leaves_a_range_is_no_proof() -> None:
    proof = prove(counter(1, 4), [])
    assert {f.goal for f in proof.failures} == {RANGES}
    assert cti.explain(proof.problem, proof.failures[0]).leaves == (cti.Leaf("x", (0,), 3),)
    assert prove(counter(1, 3), []).verdict == "proved"


def test_an_initial_state_that_breaks_a_lemma_is_no_proof() -> None:
    started = Predicate("started", "x is above 0", lambda s: forall(N, lambda i: s.x[i] > 0), "Never at the start.")
    proof = prove(counter(1, 3), [started])
    assert proof.verdict == "failed"
    assert {f.action for f in proof.failures} == {"initial state"}


def test_a_query_that_meets_its_limit_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    from viewproof.spec.engines.smt.solve import Answer, Session

    monkeypatch.setattr(Session, "refute", lambda self, goal: Answer("unknown"))
    proof = prove(model("core_restart", **SMALL), LEMMAS)
    assert proof.verdict == "unknown"
    assert all(f.status == "unknown" for f in proof.failures)
