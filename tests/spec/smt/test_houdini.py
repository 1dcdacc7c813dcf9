"""Help with invariants: what is not inductive is dropped, what is needed is kept."""

from __future__ import annotations

import pytest

from viewproof.spec.engines.smt import houdini
from viewproof.spec.engines.smt.induction import RANGES
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.lang import Predicate, forall
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core.state import Replica
from viewproof.spec.vsr.lemmas import LEMMAS

SMALL = {"views": 2, "ops": 1, "requests": 1, "restarts": 1}
WRONG = Predicate(
    "wrong", "views stay 0", lambda s: forall(Replica, lambda r: s.view[r] == 0), "True at the start only."
)


def test_a_wrong_candidate_is_dropped_and_the_rest_is_kept() -> None:
    spec = model("core_restart", **SMALL)
    result = houdini.largest_inductive(spec, (*LEMMAS, WRONG))
    assert set(result.dropped) == {"wrong"}
    assert result.is_proved
    assert [p.id for p in result.kept] == [p.id for p in (*spec.invariants, *LEMMAS)]


def test_generated_candidates_that_survive_are_inductive() -> None:
    spec = model("core_restart", **SMALL)
    generated = houdini.candidates(spec, houdini.sample(spec, runs=6, length=25))
    result = houdini.largest_inductive(spec, generated)
    kept = {p.id for p in result.kept}
    assert {"candidate.durable_view = view", "candidate.log_view <= view"} <= kept
    assert "I2" in result.dropped
    assert result.proof is not None
    assert set(result.proof.failed()) == {RANGES}
    assert not result.is_proved


@pytest.mark.long
def test_needed_lemmas_still_prove_the_invariants() -> None:
    spec = model("core_restart", replicas=2, views=2, ops=1, requests=1, restarts=0)
    rest = houdini.needed(spec, LEMMAS)
    assert len(rest) < len(LEMMAS)
    assert prove(spec, rest).verdict == "proved"
    for lemma in rest[:3]:
        assert prove(spec, [p for p in rest if p is not lemma], stop_early=True).verdict == "failed"
