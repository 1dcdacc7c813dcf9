"""Repair and recovery: pinned counts, actions, witnesses, agreement with interp and replay, faults, helpers."""

from __future__ import annotations

import copy
import itertools
import random
from typing import Any

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.api.audit import PROFILES as AUDITED
from viewproof.refinement.tigerbeetle.profile import JULY, JUNE
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.replay import TAKEN, Replay, compile_spec
from viewproof.spec.engines.replay.reference import by_interp
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import Config, model, unbounded
from viewproof.spec.vsr.config import Repair
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.models import build
from viewproof.spec.vsr.parts.repair.nacks import quorum_nack
from viewproof.spec.vsr.profiles import OF_LOGS, PROFILES, profile

Sizes = dict[str, Any]

PINNED: list[tuple[str, Sizes, set[str]]] = [
    ("repair", {}, {"repair_header", "drop_header"}),
    (
        "repair",
        {"replicas": 2, "views": 3, "ops": 2, "requests": 2},
        {"repair_header", "drop_header"},
    ),
    ("recovery", {"rots": 0}, {"repair_header", "drop_header"}),
    ("headers", {"replicas": 2}, {"drop_header", "nack"}),
    ("superblock", {"replicas": 2, "views": 3}, {"repair_header"}),
    ("superblock", {"restarts": 0, "rots": 0}, {"repair_header"}),
    (
        "superblock",
        {"replicas": 2, "ops": 2, "requests": 2, "rots": 0},
        {"repair_header", "answer_request_start_view"},
    ),
    ("alone", {}, {"resend_reply"}),
]
"""Model, sizes; actions that such a small instance has no use for."""
PINNED_LONG: list[tuple[str, Sizes]] = [
    ("repair", {"ops": 2, "requests": 2, "rots": 0}),
    ("repair", {"views": 3, "rots": 0}),
    ("recovery", {}),
    ("headers", {"clients": 1, "requests": 2}),
    ("diskless", {"replicas": 3}),
    ("superblock", {}),
    ("superblock", {"ops": 2, "requests": 2, "restarts": 0, "rots": 0}),
]
SMALL: list[Any] = [
    ("repair", {"replicas": 2, "rots": 0}),
    ("superblock", {"replicas": 2, "views": 1, "restarts": 0}),
    ("headers", {"replicas": 2, "views": 1}),
    ("alone", {"views": 2, "ops": 1, "restarts": 1}),
    *(
        pytest.param(name, sizes, marks=pytest.mark.long)
        for name, sizes in [
            ("repair", {"replicas": 2}),
            ("repair", {"replicas": 2, "views": 1, "ops": 2, "requests": 2}),
            ("superblock", {"replicas": 2, "rots": 0}),
            ("superblock", {"replicas": 2, "views": 1}),
            ("recovery", {"views": 1, "rots": 0}),
            ("diskless", {"replicas": 3, "views": 1}),
            ("alone", {"views": 2}),
        ]
    ),
]
CATALOGUE = [
    ("view.log_view_at_merge", "I2", 13),
    ("state.view_before_newstate", "I2", 14),
    ("view.blind_start_view_head", "I12", 5),
    ("view.pipeline_after_repair", "I2", 18),
    ("nack.below_window", "I2", 12),
    ("nack.clears_faulty", "I11", 13),
    ("nack.clears_faulty", "I2", 16),
    ("recover.empty_journal_is_new", "I11", 8),
    ("recover.any_primary", "I2", 13),
]
"""Faults of which the catalogue names another invariant, too: the steps to that."""
LOSSES = [("diskless.forgets_promise", 15), ("recover.stale_nonce", 16)]
"""The same, of I2, where the search takes longer."""


def title(value: Any) -> str:
    """Sizes in a test's name."""
    return "-".join(f"{k}{v}" for k, v in value.items()) if isinstance(value, dict) else str(value)


def explored(name: str, sizes: Sizes) -> explicit.Result:
    """A complete search that holds, with the pinned counts."""
    found = explicit.explore(model(name, **sizes))
    require_counts(found, name, **sizes)
    return found


WAYS = {"nonce": {"repair", "recovery", "headers"}, "superblock": {"superblock"}, "alone": {"alone"}}
BEYOND = {
    "nonce": set(),
    "superblock": {"I10.gap"},  # two ops, three replicas: PINNED_LONG
    "alone": {"I1", "I3", "I3.lost", "I4", "I5", "I6", "I9", "I10.gap", "I11", "I12", "L2"},  # speak of others
}
"""Way of recovery → witnesses that its small instances do not reach."""


@pytest.mark.parametrize("way", sorted(WAYS))
def test_small_models_hold_with_the_pinned_counts_and_reach_the_witnesses(way: str) -> None:
    missing: list[set[str]] = []
    for name, sizes, unused in (p for p in PINNED if p[0] in WAYS[way]):
        found = explored(name, sizes)
        assert {c.name for c in found.coverage if not c.generated} == unused
        missing.append(set(found.unwitnessed))
    assert set.intersection(*missing) == BEYOND[way]


@pytest.mark.long
@pytest.mark.parametrize(("name", "sizes"), PINNED_LONG, ids=title)
def test_the_models_own_sizes_hold_with_the_pinned_counts(name: str, sizes: Sizes) -> None:
    explored(name, sizes)


@pytest.mark.parametrize(("name", "sizes"), SMALL, ids=title)
def test_interp_agrees_on_counts_and_witnesses(name: str, sizes: Sizes) -> None:
    spec = model(name, **sizes)
    assert facts(explicit.explore(spec)) == facts(interp.explore(spec))


@pytest.mark.parametrize(("fault", "invariant", "steps"), CATALOGUE)
def test_the_invariant_that_the_catalogue_names_breaks_too(fault: str, invariant: str, steps: int) -> None:
    found = explicit.explore(FAULT_MODELS[fault].spec(fault), invariants=[invariant])
    assert (found.verdict, found.broken, len(found.behaviour)) == ("violated", invariant, steps)


@pytest.mark.long
@pytest.mark.parametrize(("fault", "steps"), LOSSES)
def test_a_forgotten_promise_and_an_old_answer_lose_a_committed_op(fault: str, steps: int) -> None:
    found = explicit.explore(FAULT_MODELS[fault].spec(fault), invariants=["I2"])
    assert (found.broken, len(found.behaviour)) == ("I2", steps)


def test_a_restart_of_the_whole_cluster_recovers_from_the_superblock() -> None:
    spec = model("superblock", replicas=2, views=3, restarts=2, rots=0)
    wanted = list(goals(spec))
    assert {a.goal.id: a.result.verdict for a in explicit.always_reaches(spec, wanted)} == {
        g.id: "holds" for g in wanted
    }


STORY = """
on_request r=0 c=1 s=1
on_prepare r=2 o=1
start_view_change r=1 v=1
do_view_change r=1
merge r=1 b=1
start_view r=1
on_request r=1 c=1 s=1
on_request r=1 c=2 s=1
on_start_view r=0 v=1 n=0
on_prepare r=0 o=2
start_view_change r=0 v=2
start_view_change r=2 v=2
do_view_change r=0
do_view_change r=2
merge r=2 b=0
drop_header r=2 o=1
discard r=2 o=1
start_view r=2
"""


WHOLE_CLUSTER = """
on_request r=0 c=1 s=1
on_prepare r=1 o=1
append r=0 o=1
append r=1 o=1
commit r=0 o=1
restart r=0
restart r=1
restart r=2
start_view_change r=1 v=1
update_superblock r=1
start_view_change r=2 v=1
update_superblock r=2
merge r=1 b=1 n=1
update_superblock r=1
send_start_view r=1
start_view r=1
prepare_ok r=1 o=1
on_start_view r=2 v=1 n=1
update_superblock r=2
repair r=2 o=1
commit r=1 o=1
execute r=1
"""


HEADER_LOST = """
on_request r=0 c=1 s=1
on_prepare r=1 o=1
append r=0 o=1
append r=1 o=1
commit r=0 o=1
execute r=0
on_request r=0 c=1 s=2
on_prepare r=1 o=2
append r=1 o=2
start_view_change r=0 v=1
rot r=1 o=1
restart r=1
start_view_change r=1 v=1
update_superblock r=0
update_superblock r=1
merge r=1 b=0 n=1
repair r=1 o=1
restart r=1
start_view_change r=1 v=2
update_superblock r=1
"""


COMMITTED_LATER = """
on_request r=0 c=1 s=1
on_request r=0 c=2 s=1
on_prepare r=1 o=2
append r=0 o=1
append r=0 o=2
append r=1 o=2
start_view_change r=0 v=1
start_view_change r=0 v=2
start_view_change r=1 v=1
do_view_change r=0
do_view_change r=1
merge r=0 b=0
start_view r=0
prepare_ok r=0 o=1
merge r=1 b=1
discard r=1 o=1
start_view r=1
on_start_view r=1 v=2 n=2
repair r=1 o=1
commit r=0 o=1
execute r=0
"""


def told(spec: Spec, story: str) -> State:
    """The state after a story, a step a line; no step breaks an invariant."""
    state = State.initial()
    for line in story.split("\n")[1:-1]:
        name, *args = line.split()
        named = {key: int(value) for key, value in (arg.split("=") for arg in args)}
        after = interp.step(spec, state, spec.action(name), named)
        assert isinstance(after, State), (line, after)
        assert [p.id for p in spec.invariants if not interp.holds(spec, p, state, after)] == [], line
        state = after
    return state


def test_a_header_that_the_chain_contradicts_is_dropped_and_the_gap_nacked() -> None:
    cfg = Config(3, quorum_replication=3, quorum_view_change=1, repair=Repair("nonce"))
    instance = model("repair", views=3, ops=2, clients=2, rots=0).instance
    state = told(build(cfg, instance, "repair"), STORY)
    assert state.tables["sv"] == {(1,): 1, (2,): 1}
    assert (2,) not in state.tables["sv_op"]


def test_an_op_is_not_committed_in_a_view_in_which_the_one_before_it_was_not_yet() -> None:
    """Both acknowledged op 2 in view 0, and one of them op 1: view 1 begins without either, and view 2 with both."""
    cfg = Config(2, quorum_replication=2, quorum_view_change=1, repair=Repair("nonce"))
    spec = build(cfg, model("repair", replicas=2, views=3, ops=2, clients=2, rots=0).instance, "repair")
    state = told(spec, COMMITTED_LATER)
    assert [p.id for p in spec.invariants if not interp.holds(spec, p, state, state)] == []
    assert state.tables["replies"] == {(1,): 1}
    assert state.tables["sv"] == {(1,): 1, (2,): 1}


def test_three_replicas_that_all_restart_answer_the_committed_request() -> None:
    state = told(model("superblock", restarts=3, rots=0), WHOLE_CLUSTER)
    assert state.tables["replies"] == {(1,): 1}
    assert state.tables["status"] == {(0,): 1}


def test_a_prepare_in_the_journal_is_not_nacked_for_want_of_its_header() -> None:
    """The header was lost with the slot, the slot repaired, and the second crash took the repaired header again."""
    spec = model("superblock", replicas=2, views=3, ops=2, requests=2, restarts=2, rots=1)
    state = told(spec, HEADER_LOST)
    assert state.tables["body"][1, 1] == 1
    assert (1, 1) not in state.tables["entry"]
    assert (2, 1, 1) not in state.tables["dvc_nack"]


def calls(replay: Replay) -> list[tuple[str, tuple[int, ...]]]:
    """Actions with small arguments."""
    small = {"Replica": range(replay.layout.actor_count), "View": range(3), "Op": range(1, 4), "Length": range(4)}
    return [
        (act.name, args)
        for act in replay.spec.actions
        for args in itertools.product(*(small.get(p.sort.name, range(1, 3)) for p in act.params))
    ]


@pytest.mark.parametrize("repair", [Repair("nonce"), Repair("nonce", headers=1), Repair("superblock")], ids=str)
def test_an_unbounded_walk_is_the_same_in_the_compiled_replay_and_the_interpreter(repair: Repair) -> None:
    replay = compile_spec(unbounded(Config(3, repair=repair)))
    reference = by_interp(replay)
    rng, store, taken = random.Random(1), replay.new_store(), dict.fromkeys(replay.functions, 0)
    possible = calls(replay)
    taken.update({act.name: 20 for act in replay.spec.actions if act.tags & {"crash", "fault"}})  # late, and seldom
    taken["start_view_change"] = 6
    for _ in range(80):
        for var in (v for v in replay.spec.schema.vars.values() if v.is_message):
            for receiver in range(replay.layout.actor_count):
                getattr(store, f"in_{var.name}")[receiver] = dict(getattr(store, f"v_{var.name}"))
        for name, args in rng.sample(possible, 4):
            one, two = copy.deepcopy(store), copy.deepcopy(store)
            assert replay.functions[name](one, *args) == reference.functions[name](two, *args)
            assert replay.layout.to_state(one) == replay.layout.to_state(two)
        rng.shuffle(possible)
        possible.sort(key=lambda call: taken[call[0]] + 3 * rng.random())
        name = next(n for n, a in possible if replay.functions[n](store, *a) == TAKEN)
        taken[name] += 1
    assert sum(n > 0 for n in taken.values()) > len(taken) / 3


@pytest.mark.parametrize(("replicas", "quorum"), [(1, 1), (2, 1), (3, 2), (4, 3), (5, 3), (6, 4)])
def test_nack_quorums_are_those_of_the_profile(replicas: int, quorum: int) -> None:
    assert quorum_nack(profile("recovery-superblock", replicas)) == quorum


def test_profiles_are_named_sets_of_options() -> None:
    assert all(profile(name).profile == name for name in PROFILES)
    assert profile("recovery-nonce").repair == Repair("nonce")
    assert profile("recovery-nonce", 4, repair=Repair("nonce", headers=8)).repair.headers == 8
    with pytest.raises(SpecError, match="unknown profile vr"):
        profile("vr")
    with pytest.raises(SpecError, match="1 to 6 replicas, not 7"):
        profile("recovery-superblock", 7)


def test_a_name_means_one_specification() -> None:
    assert not PROFILES.keys() & OF_LOGS.keys()
    assert set(OF_LOGS) == {JUNE.profile, JULY.profile} == set(AUDITED) - {"core"}
    for name, nearest in OF_LOGS.items():
        with pytest.raises(SpecError, match=f"no bounded model; the protocol with the same recovery is {nearest}"):
            model("core", profile=name)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"recovery": "tape"}, "recovery is nonce, superblock, probe or nothing, not tape"),
        ({"recovery": "superblock", "headers": 3}, "options of recovery by nonce"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        Repair(**options)


@pytest.mark.parametrize("fault", ["nack.below_window", "recover.head_from_old_start_view", "view.solo_keeps_view"])
def test_a_fault_of_another_recovery_is_refused_by_name(fault: str) -> None:
    with pytest.raises(SpecError, match=f"{fault} is a mistake of .*; see the model"):
        model("core", faults=[fault])
