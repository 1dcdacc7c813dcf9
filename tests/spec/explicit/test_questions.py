"""Questions beyond invariants: what can always be reached, what sometimes is, deadlocks, walks, coverage."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from viewproof.refinement.cli.check import check
from viewproof.spec.engines import explicit, interp
from viewproof.spec.lang import Goal, Instance, Schema, Sort, Spec, SpecError, Values, action, invariant, require
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.fault_models import FAULT_MODELS

SMALL = ("--replicas", "2", "--views", "2", "--ops", "1", "--requests", "1")
TINY = {"replicas": 2, "views": 2, "ops": 1, "requests": 1}


def wanted(spec: Spec) -> list[Goal]:
    """The goals of the core protocol, as the engine takes them."""
    return list(goals(spec))


def without(spec: Spec, name: str) -> Spec:
    """The specification without one action."""
    return replace(spec, actions=tuple(a for a in spec.actions if a.name != name))


@pytest.mark.parametrize("sizes", [{"replicas": 3, "restarts": 1}, {"replicas": 3, "views": 3}, {"ops": 2}])
def test_view_changes_can_always_end_and_requests_can_always_be_answered(sizes: dict[str, int]) -> None:
    spec = model("core", **{**TINY, **sizes})
    answers = explicit.always_reaches(spec, wanted(spec))
    assert [(a.goal.id, a.result.verdict) for a in answers] == [(i, "holds") for i in ("L1", "L2", "L2.catch_up")]
    assert all(0 < a.good < a.result.distinct for a in answers)


@pytest.mark.parametrize(("missing", "broken"), [("start_view", ["L1", "L2", "L2.catch_up"]), ("resend_reply", ["L2"])])
def test_without_one_action_the_protocol_gets_stuck_and_the_way_there_is_shown(missing: str, broken: list[str]) -> None:
    spec = without(model("core", **TINY), missing)
    answers = explicit.always_reaches(spec, wanted(spec))
    assert [a.goal.id for a in answers if a.result.verdict == "violated"] == broken
    for answer in answers:
        if answer.goal.id in broken:
            assert answer.result.behaviour
            assert interp.holds(spec, answer.goal.premise, answer.result.behaviour[-1].state)


def test_a_goal_is_inconclusive_under_a_bound_and_without_its_premise() -> None:
    spec = model("core", **TINY)
    assert {a.result.verdict for a in explicit.always_reaches(spec, wanted(spec), max_states=50)} == {"inconclusive"}
    goal = wanted(spec)[0]
    never = replace(goal.premise, fn=lambda s: s.restarts > 0)
    (answer,) = explicit.always_reaches(spec, [replace(goal, premise=never)])
    assert answer.result.verdict == "inconclusive"
    assert answer.result.reason == "its premise is never true in this instance"


def test_reachability_agrees_with_a_search_over_the_interpreters_steps() -> None:
    spec = without(model("core", **TINY), "resend_reply")
    goal = wanted(spec)[1]
    edges: dict[State, list[State]] = {}
    waiting = [State.initial()]
    while waiting:
        state = waiting.pop()
        if state not in edges:
            edges[state] = [after for _, _, after in interp.successors(spec, state)]
            waiting += edges[state]
    good = {s for s in edges if interp.holds(spec, goal.good, s)}
    while more := {s for s, after in edges.items() if s not in good and any(a in good for a in after)}:
        good |= more
    stuck = [s for s in edges if s not in good and interp.holds(spec, goal.premise, s)]
    (answer,) = explicit.always_reaches(spec, [goal])
    assert (answer.stuck, answer.result.distinct) == (len(stuck), len(edges))


def test_walks_find_a_fault_give_the_same_for_the_same_seed_and_never_say_holds() -> None:
    sizes = FAULT_MODELS["state.getstate_truncates"]
    spec = model("core", replicas=3, faults=["state.getstate_truncates"], bounds=sizes.bounds)
    one, two = (explicit.simulate(spec, seed=7, depth=60, walks=20_000, workers=n) for n in (1, 2))
    assert (one.verdict, one.broken) == ("violated", "I3")
    assert [(s.action, s.args) for s in one.behaviour] == [(s.action, s.args) for s in two.behaviour]
    sound = explicit.simulate(model("core"), seed=7, depth=60, walks=300)
    assert sound.verdict == "inconclusive"
    assert "no violation found in 300 walks of at most 60 steps (seed 7)" in sound.reason
    assert sound.generated > 3_000
    assert {c.name for c in sound.coverage if c.generated} >= {"execute", "start_view"}


def test_a_walk_that_leaves_a_range_is_an_error() -> None:
    cell = Sort("Cell")
    schema = Schema()
    schema.state("x", (cell,), Values(0, 2), doc="a counter")

    @action
    def up(s: Any, c: cell) -> None:
        """Count."""
        require(s.x[c] < 9)
        s.x[c] = s.x[c] + 1

    @invariant("I1", "small")
    def small(s: Any) -> Any:
        """Never above."""
        return s.x[0] < 9

    spec = Spec("counter", schema, None, (up,), (small,), (), Instance({"Cell": 0}))
    with pytest.raises(explicit.OutOfRangeError, match=r"= 3 is outside 0\.\.2"):
        explicit.simulate(spec, walks=3)


def test_a_nearest_state_without_a_successor_is_shown() -> None:
    spec = model("core", **TINY)
    found = explicit.explore(spec)
    assert found.deadlocks > 0
    assert not list(interp.successors(spec, found.deadlock[-1].state))
    assert 0 < len(found.deadlock) <= found.depth


def run(*args: str) -> tuple[int, str]:
    """`vsr check core` with these arguments: exit code and output."""
    answer = CliRunner().invoke(check, ["core", *args], standalone_mode=False)
    assert answer.exception is None, answer.exception
    return int(answer.return_value or 0), answer.output


def test_the_command_asks_the_questions(tmp_path: Path) -> None:
    out = tmp_path / "answer.json"
    code, text = run(*SMALL, "--always", "--json", str(out))
    assert (code, json.loads(out.read_text())["verdict"]) == (0, "holds")
    assert "can always reach, L1 a view change can always end: holds" in text
    code, text = run(*SMALL, "--simulate", "--walks", "50", "--depth", "30", "--seed", "3")
    assert code == 4
    assert "no violation found in 50 walks" in text
    code, text = run(*SMALL, "--sometimes", "I6")
    assert code == 0
    assert "I6, log_view lags view: reached after 1 steps" in text
    code, text = run(*SMALL, "--sometimes", "I10")
    assert code == 1
    assert "I10, a log holds entries of two views: never reached" in text
    code, text = run(*SMALL, "--deadlock", "--coverage", "--workers", "1")
    assert code == 0
    assert "a nearest state without a successor" in text
    assert "never false" in text
    assert "times false" in text


WRONG = [["--profile", "papers"], ["--simulate", "--always"], ["--sometimes", "I99"], ["--always", "--engine=interp"]]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda args: args[0])
def test_the_command_refuses_what_does_not_go_together(wrong: list[str]) -> None:
    answer = CliRunner().invoke(check, ["core", *SMALL, *wrong])
    assert answer.exit_code == 2
    assert (
        "unknown profile papers; there are: core, paper"
        in CliRunner().invoke(check, ["core", "--profile", "papers"]).output
    )


def test_an_unknown_number_of_goals_is_refused() -> None:
    with pytest.raises(SpecError, match="one to four"):
        explicit.always_reaches(model("core"), [])
