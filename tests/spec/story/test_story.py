"""What is told of a behaviour: changes, grounds, messages, endings, why-not."""

from __future__ import annotations

import json

import pytest

from tests.spec.story.behaviours import BOOT, GETSTATE, faulty, taken
from viewproof.spec.engines import interp, story
from viewproof.spec.engines.guards import guard_text
from viewproof.spec.lang import Instance, Schema, Sort, Source, Spec, SpecError, Var, action, require, up_to
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr import model


def _show(var: Var, value: int) -> str:
    return var.values.show(value)


@pytest.fixture(scope="module")
def getstate() -> story.Story:
    spec = faulty("state.getstate_truncates")
    steps = taken(spec, GETSTATE)
    ending = story.broken(spec, "I3", [State.initial(), *(s.state for s in steps)], _show)
    return story.tell(spec, steps, ending=ending, marks={"on_get_state": "truncates"})


def test_a_step_shows_only_the_cells_that_it_changed(getstate: story.Story) -> None:
    assert [leaf.text() for leaf in getstate.steps[1].leaves] == [
        "status[0]: normal → view_change",
        "view[0]: 0 → 1",
        "durable_view[0]: 0 → 1",
        "svc[1, 0]: false → true",
    ]


def test_changes_lead_from_each_state_to_the_next(getstate: story.Story) -> None:
    document = story.to_json(getstate)
    values = [cell[2] for cell in document["cells"]]
    for step, state in zip(document["steps"], getstate.states[1:], strict=True):
        for cell, before, after in step["changes"]:
            assert values[cell] == before
            values[cell] = after
        variables = getstate.spec.schema.vars
        assert values == [_show(variables[n], state.get(variables[n], tuple(i))) for n, i, _ in document["cells"]]


def test_a_message_goes_from_the_step_that_wrote_it_to_the_one_that_read_it_as_received(getstate: story.Story) -> None:
    uses = {s.number: {(u.message, u.sender, u.step) for u in s.uses} for s in getstate.steps if s.uses}
    assert uses == {
        4: {("start_view_change", 0, 2), ("start_view_change", 1, 3)},
        5: {("start_view_change", 0, 2), ("start_view_change", 1, 3)},
        6: {("do_view_change", 0, 4), ("do_view_change", 1, 5)},
        7: {("prepare", 0, 1)},
        8: {("start_view", 1, 6)},
    }
    sends = {s.number: {(m.message, m.sender) for m in s.sends} for s in getstate.steps}
    assert sends[6] == {("start_view", 1), ("prepare_ok", 1)}
    assert sends[8] == set()


def test_the_guard_of_a_step_comes_with_the_values_it_stood_on(getstate: story.Story) -> None:
    guards = {guard_text(g.source): g.values for g in getstate.steps[7].guards}
    assert guards["v > state.view[r]"] == ("view[2] = 0",)
    assert guards["state.received(r).sv[v].sent"] == ("sv[1] = true",)


def test_a_broken_invariant_names_the_members_for_which_it_fails(getstate: story.Story) -> None:
    assert getstate.ending is not None
    assert getstate.ending.broken
    assert getstate.ending.members == (("v", 0), ("r", 2), ("o", 1))
    assert "written[2, 1] = false" in getstate.ending.values


def test_a_broken_transition_invariant_shows_both_states_and_a_restart_is_a_crash() -> None:
    spec = faulty("boot.view_from_last_prepare")
    steps = taken(spec, BOOT)
    ending = story.broken(spec, "I6", [State.initial(), *(s.state for s in steps)], _show)
    assert ending.broken
    assert {"view[0] = 1", "view[0]′ = 0"} <= set(ending.values)
    assert [s.tags for s in story.tell(spec, steps).steps] == [frozenset(), frozenset({"crash"})]


def test_an_invariant_that_holds_is_not_said_to_be_broken() -> None:
    assert not story.broken(model("core"), "I3", [State.initial()], _show).broken


def test_a_step_that_is_not_enabled_is_refused(getstate: story.Story) -> None:
    steps = taken(getstate.spec, GETSTATE)
    with pytest.raises(SpecError, match="step 1, start_view"):
        story.tell(getstate.spec, steps[5:])


def test_why_not_agrees_with_the_interpreter_everywhere(getstate: story.Story) -> None:
    spec = getstate.spec
    for number, state in enumerate(getstate.states):
        for tried in spec.actions:
            reasons = getstate.why_not(number, tried.name)
            assert len(reasons) == len(list(interp.instances(spec, tried)))
            assert [r.remaining for r in reasons] == sorted(r.remaining for r in reasons)
            for reason in reasons:
                result = interp.step(spec, state, tried, reason.args)
                assert reason.enabled is isinstance(result, State)
                if isinstance(result, interp.Blocked):
                    assert reason.refusal is not None
                    assert (reason.conjunct, reason.refusal.guard) == (result.conjunct, guard_text(result.source(spec)))


def test_why_not_shows_the_first_false_guard_and_the_cells_that_it_reads(getstate: story.Story) -> None:
    question = story.parse_question(getstate.spec, "on_start_view:r=0,v=1,n=0@7")
    (reason,) = getstate.why_not(question.step, question.action, question.args)
    assert reason.text().startswith(
        "on_start_view(r=0, v=1, n=0): n >= received.sv[v].op is false (sv_op[1] = 1) [spec/"
    )
    (enabled,) = getstate.why_not(7, "on_start_view", {"r": 0, "v": 1, "n": 1})
    assert enabled.text() == "on_start_view(r=0, v=1, n=1): enabled"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("commit", "is not ACTION"),
        ("nothing@1", "no action nothing"),
        ("commit:x=1@1", "no parameter x"),
        ("commit:r=9@1", "not one of 0 … 2"),
        ("commit:r=-1@1", "not one of"),
    ],
)
def test_a_question_that_makes_no_sense_is_refused(getstate: story.Story, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        story.parse_question(getstate.spec, text)


def test_a_step_that_is_not_there_is_refused(getstate: story.Story) -> None:
    with pytest.raises(SpecError, match="there is no step 9"):
        getstate.why_not(9, "commit")


def test_the_document_is_json_and_answers_why_not_for_every_action_at_every_step(getstate: story.Story) -> None:
    document = json.loads(json.dumps(story.to_json(getstate)))
    answers = document["why_not"]["steps"]
    assert len(answers) == len(GETSTATE) + 1
    assert all(set(a) == {action.name for action in getstate.spec.actions} for a in answers)
    nearest = answers[8]["commit"][0]
    assert document["why_not"]["texts"][nearest[2]].startswith(
        "1 of 3 (q = 1), at least 2 needed; not 0: view[1] = 1, ack[1, 0, 1] = 0"
    )


def test_a_large_instance_keeps_the_nearest_answers_only(
    getstate: story.Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("viewproof.spec.engines.story.document.WHY_NOT_MAX", 10)
    why_not = story.to_json(getstate)["why_not"]
    assert not why_not["complete"]
    assert all(len(rows) <= why_not["nearest"] for answers in why_not["steps"] for rows in answers.values())


@action
def leap(s):  # type: ignore[no-untyped-def]
    """More than there is room for."""
    require(s.level == 0)
    s.level = s.level + 5


def test_a_step_that_leaves_its_ranges_says_so() -> None:
    schema = Schema()
    schema.state("level", (), up_to(Sort("Level")), doc="how high it stands")
    spec = Spec("leap", schema, None, (leap,), (), (), Instance({"Level": 1}))
    (reason,) = story.why_not(spec, State.initial(), spec.action("leap"), _show)
    assert not reason.enabled
    assert "its guard holds, but it leaves the bounds" in reason.text()
    assert "level[] = 5 is outside 0..1" in reason.text()
    assert "test_story.py" in reason.text()


def test_a_guard_is_shown_as_one_line_without_require() -> None:
    assert guard_text(Source("f", 1, "require( any_of( a == 1, b, ) )")) == "any_of(a == 1, b)"
    assert guard_text(Source("f", 1, "require(a == 1)")) == "a == 1"
