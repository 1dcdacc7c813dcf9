"""Partitions: pinned counts, every action and witness, agreement of the engines, faults, and guards that are needed."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from tests.spec.smt.comparison import random_walk
from tests.spec.smt.test_lowering import agree
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.lower import Lowering
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.engines.smt.witness import witnesses
from viewproof.spec.lang import SpecError, action, without
from viewproof.spec.vsr import Config, model
from viewproof.spec.vsr.config import Partitions, Repair
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.core.state import Replica
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.faults import alternatives
from viewproof.spec.vsr.lemmas import lemmas_of
from viewproof.spec.vsr.parts.checkpoints import checkpoint
from viewproof.spec.vsr.parts.partitions import lemmas
from viewproof.spec.vsr.parts.partitions import state as partition_state

Sizes = dict[str, Any]

PINNED: list[Sizes] = [
    {},
    {"replicas": 3, "ops": 1, "requests": 1, "messages": 1},
    {"views": 3, "ops": 1, "messages": 1},
    {"replicas": 1},
]
TWO_PARTITIONS: Sizes = {"partitions": 2, "readers": 2, "messages": 1}
TINY: Sizes = {"replicas": 2, "views": 1, "ops": 1, "requests": 1}
FAULTS = {"boot.offset_from_index": 3, "boot.offset_clamp": 4, "boot.recreates_missing_file": 4}
"""Fault → rounds in which bounded search finds one."""


def explored(sizes: Sizes) -> explicit.Result:
    """A complete search that holds and has the pinned counts."""
    found = explicit.explore(model("partitions", **sizes))
    require_counts(found, "partitions", **sizes)
    return found


def test_the_model_holds_with_the_pinned_counts_all_actions_and_all_witnesses() -> None:
    found = [explored(pinned) for pinned in PINNED]
    assert set.intersection(*(set(f.unwitnessed) for f in found)) == set()
    for result in found[:3]:
        assert [c.name for c in result.coverage if not c.generated] == []
    alone = {c.name for c in found[3].coverage if c.generated}
    assert {"restart_accepting_loss", "damage_segment", "flush_segment", "ask_store"} <= alone


@pytest.mark.long
def test_two_partitions_hold_with_the_pinned_counts() -> None:
    explored(TWO_PARTITIONS)


@pytest.mark.parametrize(
    "sizes",
    [
        pytest.param(TINY, marks=pytest.mark.long),
        {**TINY, "replicas": 1, "ops": 2, "requests": 2, "partitions": 2, "messages": 1},
    ],
    ids=str,
)
def test_interp_agrees_on_counts_and_witnesses(sizes: Sizes) -> None:
    spec = model("partitions", **sizes)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


def test_terms_and_interpreter_agree() -> None:
    spec = model("partitions", replicas=2, views=1, messages=1)
    walk = random_walk(spec, random.Random(2), 40)
    assert {"held", "saved_held", "segment"} <= walk[-1].tables.keys()
    assert agree(spec, Lowering(spec), walk) > 20


PROVED = [
    {**TINY, "views": 2},
    {**TWO_PARTITIONS, "views": 1},
    pytest.param({"messages": 1}, marks=pytest.mark.long),
    pytest.param({"replicas": 3, "messages": 1}, marks=pytest.mark.long),
]


@pytest.mark.parametrize("sizes", PROVED, ids=str)
def test_the_invariants_are_inductive(sizes: Sizes) -> None:
    spec = model("partitions", **sizes)
    proof = prove(spec, lemmas_of(spec.cfg), workers=2)
    assert proof.verdict == "proved"
    assert {"I15", *(p.id for p in lemmas.LEMMAS)} <= set(proof.lemmas)


@pytest.mark.parametrize("left_out", [p.id for p in lemmas.LEMMAS])
def test_without_a_lemma_nothing_is_proved(left_out: str) -> None:
    spec = model("partitions", **TINY)
    fewer = [p for p in lemmas_of(spec.cfg) if p.id != left_out]
    assert prove(spec, fewer, workers=2, stop_early=True).verdict == "failed"


def test_lemmas_hold_in_all_reachable_states_and_say_something() -> None:
    spec = model("partitions", views=1, messages=1)
    found = explicit.explore(replace(spec, invariants=lemmas_of(spec.cfg), witnesses=()))
    require_counts(found, "partitions", views=1, messages=1)
    assert not [w for w in witnesses(spec, lemmas.LEMMAS, rounds=3) if not w.reached]


def test_nothing_is_stuck() -> None:
    spec = model("partitions", replicas=2, ops=1, messages=1)
    wanted = list(goals(spec))
    assert {a.result.verdict for a in explicit.always_reaches(spec, wanted)} == {"holds"}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_breaks_i15(fault: str) -> None:
    spec = FAULT_MODELS[fault].spec(fault)
    found = explicit.explore(spec)
    assert found.broken == "I15"
    assert found.behaviour[-1].action == "restart"
    proof = prove(spec, lemmas_of(spec.cfg), workers=2)
    assert {(f.action, f.goal) for f in proof.failures} == {("restart", "I15")}
    assert chain.search(spec, FAULTS[fault], minimise_ms=1).broken == "I15"


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_needs_segment_files(fault: str) -> None:
    with pytest.raises(SpecError, match="segment files"):
        model("checkpoint", faults=(fault,))
    with pytest.raises(SpecError, match="no trace shows segment files"):
        alternatives((fault,))


@action
def take_checkpoint(state: Any, r: Replica) -> None:
    """Without the flush before it."""
    with without(partition_state.require_flushed):
        checkpoint.take_checkpoint.fn(state, r)


def test_a_checkpoint_without_a_flush_breaks_i15() -> None:
    assert (
        explicit.explore(model("partitions", **TINY).with_actions({"take_checkpoint": take_checkpoint})).broken == "I15"
    )


def test_a_stored_offset_above_the_end_breaks_i15(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        partition_state, "is_accepted", lambda state, r, v, o: state.asked[v, o] == partition_state.STORE
    )
    assert explicit.explore(model("partitions", **TINY)).broken == "I15"


def test_without_damage_or_crashes_what_needs_them_is_left_out() -> None:
    spec = model("partitions", replicas=1, restarts=0, rots=0)
    assert {a.name for a in spec.actions} & {"damage_segment", "restart_accepting_loss", "restart"} == set()
    assert {w.id for w in spec.witnesses} & {"I15.damaged", "I15.loss", "I15.between"} == set()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitions": Partitions(1, files=True)}, "need partitions and checkpoints"),
        ({"partitions": Partitions(files=True), "checkpoints": True}, "need partitions and checkpoints"),
        ({"partitions": Partitions(1), "repair": Repair("nonce")}, "together with partitions"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        Config(3, **options)
    with pytest.raises(SpecError, match="count must be at least 0, not -1"):
        Partitions(-1)


def test_partitions_of_another_model_are_refused() -> None:
    with pytest.raises(SpecError, match="has no partitions"):
        model("core", partitions=1)
