"""Each mistake breaks the invariant that it is said to break, and how the build behaves loses what clients read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import FAULTS as STEPS
from tests.spec.counts import pinned, require_steps
from viewproof.api.check import check
from viewproof.api.model import model as named_model
from viewproof.spec.engines.smt import chain
from viewproof.spec.lang import SpecError, all_of, forall, implies, invariant
from viewproof.spec.oxia import FAULTS, model
from viewproof.spec.oxia.fault_models import FAULT_MODELS
from viewproof.spec.oxia.invariants import holds
from viewproof.spec.oxia.state import Offset, Replica, leads


def test_each_fault_has_a_model() -> None:
    assert FAULT_MODELS.keys() == FAULTS.keys()


@pytest.mark.parametrize("id", FAULTS)
def test_each_fault_breaks_its_invariant_after_the_shortest_story(id: str) -> None:
    chosen = FAULT_MODELS[id]
    found = check(named_model(chosen.model, faults=[id]))
    assert found.broken == chosen.breaks
    require_steps(found, id)


AS_BUILT = [
    (("oxia.commits_old_terms",), "oxia_turns", {"terms": 4, "offsets": 1}, "I2", 30),
    (("oxia.answers_synced_head",), "oxia_turns", {"terms": 3, "offsets": 1}, "I2", 25),
    (("oxia.truncates_once",), "oxia_turns", {"terms": 4, "offsets": 2}, "I10", 32),
]


def test_as_built_are_those_that_are_shown_here() -> None:
    assert {id for ids, *_ in AS_BUILT for id in ids} == {f.id for f in FAULTS.values() if f.as_built}


@pytest.mark.parametrize(("faults", "name", "sizes", "breaks", "steps"), AS_BUILT)
def test_the_build_loses_what_was_read_or_has_two_logs(
    faults: tuple[str, ...], name: str, sizes: dict[str, int], breaks: str, steps: int
) -> None:
    found = check(model(name, faults=faults, **sizes), invariants=[breaks])
    assert (found.verdict, found.broken, len(found.behaviour)) == ("violated", breaks, steps)


@invariant("answered", "what a leader answered of its own term is in later logs")
def answered_writes_last(s: Any) -> Any:
    """I2 of entries that were first read in the term that proposed them."""

    def own(r: Any, o: Any) -> Any:
        return all_of(leads(s, r), s.seen[o] != 0, s.seen[o] == s.seen_in[o], s.term[r] > s.seen_in[o])

    return forall(Replica, lambda r: forall(Offset, lambda o: implies(own(r, o), lambda: holds(s, r, o, s.seen[o]))))


def test_answered_writes_outlive_commits_of_old_terms() -> None:
    spec = model("oxia_turns", faults=["oxia.commits_old_terms"])
    found = check(replace(spec, invariants=(answered_writes_last,), witnesses=()))
    assert (found.verdict, found.distinct) == ("holds", 4_040_045)


def test_no_entry_opens_a_term_as_built() -> None:
    spec = model("oxia_turns", faults=["oxia.commits_old_terms"])
    assert "open_term" not in [a.name for a in spec.actions]


def test_faults_that_cannot_show_are_refused() -> None:
    with pytest.raises(SpecError, match="give the model features"):
        model("oxia", faults=["oxia.enabled_at_proposal"])
    with pytest.raises(SpecError, match="only at a restart"):
        model("oxia", faults=["oxia.term_not_durable"])
    with pytest.raises(SpecError, match="unknown fault"):
        model("oxia", faults=["view.even_quorum"])


@pytest.mark.parametrize("id", ["oxia.answers_synced_head", "oxia.elects_twice", "oxia.unsupported_member"])
def test_bounded_search_finds_them_too(id: str) -> None:
    chosen = FAULT_MODELS[id]
    found = chain.search(named_model(chosen.model, faults=[id]), chosen.rounds)
    assert (found.broken, len(found.steps)) == (chosen.breaks, pinned()[STEPS][id])
