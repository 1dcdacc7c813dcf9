"""`import viewproof`: quick, and its functions return values and raise what they say."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import viewproof
from viewproof import AuditOptionError, ConfigurationError, FaultError, Instance, Spec, action, invariant, require
from viewproof.spec.lang import Bool, Number, State, Values, schema_of, variable

HEAVY = ("z3", "llvmlite", "pyspark", "pyarrow", "pandas", "numpy", "click", "viewproof.spec", "viewproof.impl")
FUNCTIONS = ("audit", "check", "counterexamples", "model", "prove", "reach", "simulate")


def loaded_by(statement: str) -> list[str]:
    """The heavy modules that a fresh interpreter has loaded after a statement."""
    code = f"import sys, json; {statement}; print(json.dumps([m for m in {HEAVY!r} if m in sys.modules]))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found: list[str] = json.loads(answer.stdout)
    return found


def test_importing_the_package_loads_no_engine() -> None:
    assert loaded_by("import viewproof; dir(viewproof)") == []


def test_the_words_of_the_language_load_no_engine() -> None:
    assert loaded_by("from viewproof import Spec, Schema, Sort, action, invariant, require") == ["viewproof.spec"]


def test_a_search_loads_neither_z3_nor_spark_nor_the_replica() -> None:
    loaded = loaded_by("import viewproof; viewproof.check(viewproof.model('core', views=1, ops=1))")
    assert "llvmlite" in loaded
    assert not {"z3", "pyspark", "pyarrow", "viewproof.impl"} & set(loaded)


@pytest.mark.parametrize("name", viewproof.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    value = getattr(viewproof, name)
    assert inspect.getdoc(value)
    assert name in dir(viewproof)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_has_types(name: str) -> None:
    signature = inspect.signature(getattr(viewproof, name))
    assert signature.return_annotation is not inspect.Signature.empty
    assert all(p.annotation is not inspect.Parameter.empty for p in signature.parameters.values())


def test_a_name_that_is_not_there_is_an_attribute_error_with_those_that_are() -> None:
    with pytest.raises(AttributeError, match="it has AuditOptionError"):
        viewproof.nonsense  # noqa: B018


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "kore"}, "unknown model kore"),
        ({"faults": ["no.such"]}, "no.such"),
        ({"viewz": 2}, "no size viewz; there are: views"),
        ({"slots": 2}, "core has no fixed number of slots"),
        ({"profile": "none"}, "unknown profile none"),
        ({"faults": ["table.evict_forgets"]}, "shows in the model clients, not in core"),
        ({"views": 0}, "views must be at least 1"),
    ],
)
def test_a_wrong_model_is_refused_by_name(options: dict[str, object], said: str) -> None:
    with pytest.raises(viewproof.SpecError, match=said):
        viewproof.model(**options)  # type: ignore[arg-type]


def test_wrong_ids_are_refused_by_name() -> None:
    core = viewproof.model("core", views=1, ops=1)
    with pytest.raises(viewproof.SpecError, match="no invariant I99; there are: I1"):
        viewproof.check(core, invariants=["I99"])
    with pytest.raises(viewproof.SpecError, match="no witness W; there are: I1"):
        viewproof.reach(core, "W")


def test_a_bound_is_inconclusive_and_says_so() -> None:
    found = viewproof.check("core", max_states=100)
    assert found.verdict == "inconclusive"
    assert "bound of 100 states reached" in found.reason


def test_an_unreachable_witness_holds_as_never_met() -> None:
    core = viewproof.model("core", views=2, ops=1)
    vacuous = sorted(viewproof.check(core).unwitnessed)
    assert vacuous
    assert viewproof.reach(core, vacuous[0]).verdict == "holds"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"runs": 0}, "runs and workers must be at least 1"),
        ({"replicas": 0}, "must be at least 1"),
        ({"profile": "none"}, "unknown profile none; there are"),
        ({"client_profile": "none"}, "unknown client profile none; there are"),
        ({"features": "none of them"}, "unknown features none of them; there are"),
        ({"groups": "blue"}, "unknown group 'blue'"),
        ({"parquet": True}, "out says where"),
    ],
)
def test_a_wrong_run_is_refused_by_name(options: dict[str, object], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        viewproof.simulate(**options)  # type: ignore[arg-type]


def test_a_fault_that_the_replica_does_not_know_is_refused() -> None:
    with pytest.raises(FaultError, match=r"unknown fault no\.such"):
        viewproof.simulate(faults=["no.such"])


@pytest.mark.parametrize(
    ("options", "option"),
    [
        ({"input": "flink"}, "input"),
        ({"engine": "flink"}, "engine"),
        ({"profile": "flink"}, "profile"),
        ({"profile": "tigerbeetle-2022"}, "profile"),
        ({"allow": ["no.such"]}, "allow"),
        ({"allow": ["no.such"], "input": "tigerbeetle"}, "allow"),
        ({"workers": 0}, "paths"),
    ],
)
def test_an_option_that_an_audit_does_not_have_is_refused(options: dict[str, object], option: str) -> None:
    with pytest.raises(AuditOptionError) as refused:
        viewproof.audit("traces", **options)  # type: ignore[arg-type]
    assert refused.value.option == option


def test_an_audit_permits_a_deviation_by_name_and_says_where_it_was_used(tmp_path: Path) -> None:
    [run] = viewproof.simulate(3, requests=60, faults=["commit.apply_at_replicate"], out=tmp_path)
    assert not run.ok
    assert viewproof.audit(tmp_path).exit_code == 1
    permitted = viewproof.audit(tmp_path, allow=["commit.apply_at_replicate"])
    uses = [use for verdict in permitted.verdicts for use in verdict.allowed_uses]
    assert uses
    assert {use.fault for use in uses} == {"commit.apply_at_replicate"}


def test_the_interpreter_judges_a_trace_as_the_compiled_replay_does(tmp_path: Path) -> None:
    viewproof.simulate(1, requests=10, out=tmp_path)
    fast, slow = viewproof.audit(tmp_path), viewproof.audit(tmp_path, interp=True)
    assert (fast.verdict, fast.events) == (slow.verdict, slow.events)
    assert fast.events > 0


class Counters(State):
    """Two numbers that go up in twos."""

    x: Number = variable("a number", values=Values(0, 20))
    y: Number = variable("another", values=Values(0, 20))


@action
def up(state: Counters) -> None:
    """Two more."""
    require(state.x <= 18)
    state.x = state.x + 2


@action
def other_up(state: Counters) -> None:
    """Two more of the other."""
    require(state.y <= 18)
    state.y = state.y + 2


@invariant("C1", "never seven")
def never_seven(state: Counters) -> Bool:
    """The number is not 7: true, but not inductive."""
    return state.x != 7


@invariant("C2", "never four")
def never_four(state: Counters) -> Bool:
    """The other is not 4: soon false."""
    return state.y != 4


def test_each_step_that_breaks_a_proof_is_looked_for_in_all_reachable_states() -> None:
    invariants = (never_seven, never_four)
    counters = Spec("counters", schema_of(Counters), None, (up, other_up), invariants, (), Instance())
    found = viewproof.counterexamples(viewproof.prove(counters, workers=1))
    assert {step.goal: (step.before, step.count) for step in found} == {
        "C1": ("unreachable", 11 * 11),
        "C2": ("reachable", 1),
    }
