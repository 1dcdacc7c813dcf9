"""No lemma is vacuous: the premise of each of its parts is true in some reachable state."""

from __future__ import annotations

import pytest

from spec.engines.smt.witness import witnesses
from spec.lang import Predicate, implies
from spec.vsr import model
from spec.vsr.lemmas import GROUPS, LEMMAS


def test_lemmas_about_types_replicas_and_quorums_have_witnesses() -> None:
    spec = model("core_restart", views=2, ops=2, requests=2, restarts=1)
    found = witnesses(spec, (*GROUPS["types"], *GROUPS["replicas"], *GROUPS["quorums"]))
    assert not [w for w in found if not w.reached]
    assert len(found) > 15
    assert max(len(w.steps) for w in found) > 0


def test_a_vacuous_lemma_has_no_witness() -> None:
    never = Predicate("never", "false implies all", lambda s: implies(s.replies[1] > s.replies[1] + 1, s.sv[0]), "No.")
    odd = Predicate("odd", "view 0 starts", lambda s: implies(s.sv[0], s.replies[1] == 0), "View 0 has no start_view.")
    found = witnesses(model("core", views=2, ops=1, requests=1), (never, odd))
    assert [w.reached for w in found if w.lemma == "odd"] == [False]
    assert not [w for w in found if w.lemma == "never" and w.reached]


@pytest.mark.long
def test_every_lemma_and_invariant_has_witnesses() -> None:
    spec = model("core_restart", views=3, ops=2, requests=2, restarts=1)
    assert not [w for w in witnesses(spec, (*spec.invariants, *LEMMAS)) if not w.reached]
