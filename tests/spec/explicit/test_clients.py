"""The models of the client table: counts, pinned; every action and outcome is reached; one slot without sessions
breaks exactly-once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from tests.spec.counts import require_counts
from tests.spec.explicit.test_differential import facts
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.replay import compile_spec
from viewproof.spec.lang import Instance, SpecError, forall, implies, invariant
from viewproof.spec.vsr import Config, build, model, unbounded
from viewproof.spec.vsr.config import ClientTable
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.core.state import Client, Replica
from viewproof.spec.vsr.parts.clients.table import Outcome

UNWITNESSED = {
    "clients": {"I12", "request.stale", "request.fenced", "I8.again", "register.stale", "I8.replayed", "I8.outlived"},
    "sessions": {"I3", "I5", "I7", "I8", "I12"},
    "iggy": {"I3", "I5", "I7", "I8", "I12", "I9.evicted", "I9.evicted_in_later_view", "I9.followed"},
    "slots": {"I3", "I5", "I7", "I8", "I12"},
}
"""Model → witnesses that it is too small for: each is reached in another one."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.long) if n == "sessions" else n for n in UNWITNESSED]
)
def test_model_holds_with_the_pinned_counts_and_reaches_all_it_can(name: str) -> None:
    found = explicit.explore(model(name))
    require_counts(found, name)
    assert found.unwitnessed.keys() == UNWITNESSED[name]
    idle = {a.name for a in found.coverage if not a.generated}
    assert idle == ({"execute_evicting"} if name == "iggy" else set())


def test_every_witness_is_reached_in_some_model_and_every_outcome_has_one() -> None:
    reached = {w.id for name in UNWITNESSED for w in model(name).witnesses if w.id not in UNWITNESSED[name]}
    assert reached >= {w.id for name in UNWITNESSED for w in model(name).witnesses} - {"I12"}
    assert reached >= {f"request.{y}" for y in Outcome.labels if y != "new"}
    assert reached >= {"register.in_progress", "register.stale", "register.duplicate"}


def test_without_sessions_one_slot_for_two_clients_breaks_exactly_once() -> None:
    found = explicit.explore(model("iggy", slots=1))
    assert (found.verdict, found.broken, len(found.behaviour)) == ("violated", "I8", 14)
    assert found.behaviour[8].action == "execute_evicting"


def test_a_table_that_forgets_executes_a_request_again_only_after_its_client_was_evicted() -> None:
    """The document's own table: what I8 says of it, and what it does not say."""
    spec = model("slots")
    found = explicit.explore(replace(spec, invariants=tuple(i for i in spec.invariants if i.id == "I8")))
    assert (found.verdict, "I8.forgotten" in found.unwitnessed) == ("holds", False)
    told = explicit.explore(model("iggy", ops=3, requests=1, slots=1))
    assert (told.verdict, told.broken) == ("violated", "I8")
    with pytest.raises(SpecError, match="only a table of slots without sessions forgets"):
        ClientTable(slots=1, sessions=True, forgets=True)


@pytest.mark.long
def test_the_table_that_forgets_on_three_replicas() -> None:
    found = explicit.explore(model("slots", replicas=3, ops=3, requests=1))
    require_counts(found, "slots", replicas=3, ops=3, requests=1)
    assert found.unwitnessed.keys() == {"I12", "request.stale"}


@invariant("same_clients", "equal commit_min, equal slots")
def same_clients(s: Any) -> Any:
    """Replicas that executed as much hold slots of the same clients."""
    return forall(
        Replica,
        lambda r: forall(
            Replica,
            lambda q: implies(
                s.commit_min[r] == s.commit_min[q],
                forall(Client, lambda c: (s.table_op[r, c] == 0) == (s.table_op[q, c] == 0)),
            ),
        ),
    )


@pytest.mark.parametrize("fault", [(), ("table.evict_by_commit_max",)], ids=["sound", "commit_max"])
def test_slots_stamped_with_commit_max_make_replicas_evict_different_clients(fault: tuple[str, ...]) -> None:
    spec = model("clients", replicas=2, views=1, ops=3, clients=3, slots=2, faults=fault)
    found = explicit.explore(replace(spec, invariants=(same_clients,), witnesses=()))
    assert found.verdict == ("violated" if fault else "holds")
    if fault:
        evicted = {s.args["r"]: s.args["c"] for s in found.behaviour if s.action == "execute_evicting"}
        assert len(set(evicted.values())) == 2
        assert len(found.behaviour) <= 25


def test_an_uncommitted_number_in_the_table_stands_for_a_lost_request() -> None:
    spec = model("iggy", replicas=3, views=4, ops=1, clients=1, requests=1, faults=["table.record_uncommitted"])
    found = explicit.explore(spec, invariants=["L2"])
    assert (found.broken, len(found.behaviour)) == ("L2", 10)
    assert found.behaviour[-1].action == "resend_reply"


TOGETHER: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "snapshots": ({"checkpoints": True}, {"ops": 2, "restarts": 1}),
    "ring": ({"checkpoints": True, "journal_slots": 1}, {"ops": 3}),
    "control": ({"features": 1}, {"ops": 3}),
}


@pytest.mark.parametrize("beside", TOGETHER)
def test_table_in_snapshots_and_beside_control_entries(beside: str) -> None:
    options, sizes = TOGETHER[beside]
    spec = model("clients", replicas=2, **sizes)
    bounds = {**spec.instance.bounds, **({"Feature": 1} if "features" in options else {})}
    found = explicit.explore(build(replace(spec.cfg, **options), Instance(bounds)))
    require_counts(found, f"clients_with_{beside}")
    assert all(a.generated for a in found.coverage)


SMALL: list[tuple[str, dict[str, int]]] = [
    ("clients", {"replicas": 2, "views": 1, "ops": 2}),
    ("sessions", {"replicas": 1, "views": 1, "ops": 3, "clients": 1}),
    ("iggy", {"replicas": 1, "views": 1, "ops": 2, "slots": 1, "requests": 1, "restarts": 1}),
]
LARGER: list[tuple[str, dict[str, int]]] = [
    ("clients", {"replicas": 2, "views": 1, "ops": 3}),
    ("clients", {"replicas": 2, "views": 2, "ops": 2}),
    ("clients", {"replicas": 1, "views": 2, "ops": 2, "restarts": 1}),
    ("sessions", {"views": 1, "ops": 3}),
    ("sessions", {"replicas": 1, "views": 2, "ops": 3, "clients": 1}),
    ("iggy", {"views": 1, "ops": 3}),
]


@pytest.mark.parametrize(
    ("name", "sizes"), [*SMALL, *(pytest.param(*m, marks=pytest.mark.long) for m in LARGER)], ids=str
)
def test_interp_and_explicit_agree(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)
    found = explicit.explore(spec)
    assert found.verdict == "holds"
    assert facts(found) == facts(interp.explore(spec))


@pytest.mark.parametrize(
    "table",
    [
        ClientTable(slots=8192, sessions=True, in_flight=0),
        ClientTable(slots=8192, gaps=True, in_flight=0),
        ClientTable(sessions=True),
        ClientTable(),
    ],
    ids=str,
)
def test_replay_compiles_the_table_for_any_number_of_clients(table: ClientTable) -> None:
    functions = compile_spec(unbounded(Config(3, client_table=table))).functions
    assert "drop_request" in functions
    assert ("execute_evicting" in functions) == (table.slots > 0)
    assert ("on_register" in functions) == table.sessions


@pytest.mark.parametrize(
    ("name", "fault", "reason"),
    [
        ("sessions", "table.record_uncommitted", "shows without sessions only"),
        ("iggy", "table.replayed_register", "needs sessions"),
        ("core", "table.evict_forgets", "needs a client table with slots"),
    ],
)
def test_a_fault_that_cannot_show_is_refused(name: str, fault: str, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        model(name, faults=[fault])


def test_slots_and_incarnations_are_sizes() -> None:
    sizes: dict[str, Any] = {"slots": 2, "incarnations": 3}
    spec = model("clients", **sizes)
    assert spec.cfg.client_table.slots == 2
    assert spec.instance.bounds["Incarnation"] == 3


@pytest.mark.parametrize(
    ("name", "sizes", "reason"),
    [
        ("core", {"incarnations": 2}, "core has no sessions"),
        ("core", {"slots": 3}, "core has no fixed number of slots"),
        ("clients", {"rots": 1}, "clients has no repair of journals"),
    ],
)
def test_a_size_of_what_a_model_does_not_have_is_refused(name: str, sizes: dict[str, int], reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        model(name, **cast("dict[str, Any]", sizes))


def test_every_client_can_register_and_be_answered() -> None:
    spec = model("sessions", requests=1, incarnations=1, slots=2)
    wanted = list(goals(spec))
    answers = explicit.always_reaches(spec, wanted)
    assert {a.goal.id: a.result.verdict for a in answers} == {"L1": "holds", "L2": "holds", "L2.catch_up": "holds"}
