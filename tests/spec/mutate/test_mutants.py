"""Mutants: one place changed at a time, the same in every size, run as they are recorded; hunted by shapes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.spec.counts import counts_of
from viewproof.refinement.cli.mutate import elsewhere, model_shapes
from viewproof.refinement.reports.mutants import EFFECTS, document
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.mutate import Mutant, all_mutants, hunt, mutants, survey
from viewproof.spec.engines.mutate.rebuild import runnable
from viewproof.spec.engines.portfolio import (
    Outcome,
    Shape,
    cover,
    digest,
    digest_of_predicates,
    digest_of_steps,
    search,
)
from viewproof.spec.engines.portfolio.digest import normal
from viewproof.spec.lang import (
    NONE,
    Instance,
    Schema,
    Sort,
    Spec,
    SpecError,
    action,
    all_of,
    any_of,
    count,
    invariant,
    optional,
    require,
    some,
    up_to,
    witness,
)
from viewproof.spec.lang.expr import Binder, Const, Name, Op, Quant
from viewproof.spec.mutants import reasons, tables
from viewproof.spec.protocols import MODELS, portfolio_of
from viewproof.spec.vsr import model

Voter = Sort("Voter")


@action
def vote(s, r: Voter):  # type: ignore[no-untyped-def]
    """A voter votes once, for the round it is in."""
    require(s.voted[r] == NONE)
    s.voted[r] = some(s.round[r])


@action
def move(s, r: Voter):  # type: ignore[no-untyped-def]
    """A voter that has not voted goes on to the next round."""
    require(all_of(s.voted[r] == NONE, s.round[r] < 1))
    s.round[r] = s.round[r] + 1


@action
def decide(s, r: Voter):  # type: ignore[no-untyped-def]
    """A majority voted in the voter's round."""
    require(count(Voter, lambda q: s.voted[q] == some(s.round[r])) >= 2)
    s.decided[r] = some(s.round[r])


@invariant("J1", "agreement")
def agreement(s):  # type: ignore[no-untyped-def]
    """No two voters decide differently."""
    return any_of(s.decided[0] == NONE, s.decided[1] == NONE, s.decided[0] == s.decided[1])


@witness("J1", "a decision")
def decision(s):  # type: ignore[no-untyped-def]
    """Somebody decides."""
    return s.decided[0] != NONE


def votes(voters: int) -> Spec:
    """Voters in rounds 0 and 1."""
    schema = Schema()
    rounds = Sort("Round")
    schema.state("round", (Voter,), up_to(rounds), doc="where it is")
    schema.state("voted", (Voter,), optional(rounds), doc="1 + the round in which it voted")
    schema.state("decided", (Voter,), optional(rounds), doc="1 + the round for which it decided")
    bounds = Instance({"Voter": voters - 1, "Round": 1})
    return Spec("votes", schema, None, (vote, move, decide), (agreement,), (decision,), bounds)


def fates(*shapes: Shape) -> dict[str, str | None]:
    found = hunt(shapes, survey(shapes))
    return {report.mutant.id: report.death.by if report.death else None for report in found}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outcomes are kept apart; compiled code is not."""
    monkeypatch.setattr("viewproof.spec.engines.portfolio.outcome.cache_dir", lambda: tmp_path / "cache" / "explicit")


def test_each_kind_of_mutant_is_made_and_named_by_its_text() -> None:
    ids = [mutant.id for mutant in mutants(votes(3), frozenset({"decide", "move"}))]
    assert ids == [
        "move | all_of(voted[r] == 0, round[r] < 1) | left out",
        "move | all_of(voted[r] == 0, round[r] < 1) | part left out | voted[r] == 0",
        "move | all_of(voted[r] == 0, round[r] < 1) | or less | voted[r] == 0",
        "move | all_of(voted[r] == 0, round[r] < 1) | or more | voted[r] == 0",
        "move | all_of(voted[r] == 0, round[r] < 1) | part left out | round[r] < 1",
        "move | all_of(voted[r] == 0, round[r] < 1) | one more | round[r] < 1",
        "move | round[r] = … | left out",
        "decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1)) | left out",
        "decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1)) | quorum one smaller",
        "decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1)) | or less | voted[q] == (round[r] + 1)",
        "decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1)) | or more | voted[q] == (round[r] + 1)",
        "decide | decided[r] = … | left out",
    ]


def test_a_shape_notices_a_mutant_by_an_invariant_a_range_a_witness_or_an_action() -> None:
    found = fates(Shape("3", votes(3)))
    count_of = "decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1))"
    assert found[f"{count_of} | left out"] == "J1"
    assert found[f"{count_of} | quorum one smaller"] == "J1"
    assert found["move | all_of(voted[r] == 0, round[r] < 1) | part left out | round[r] < 1"] == "leaves its range"
    assert found["decide | decided[r] = … | left out"] == "witness of J1 not reached"
    assert found["vote | voted[r] = … | left out"] == "witness of J1 not reached"


def test_a_mutant_that_no_shape_notices_is_said_to_be_open() -> None:
    assert fates(Shape("2", votes(2)))["decide | quorum <= count(Voter, q: voted[q] == (round[r] + 1)) | left out"]
    found = fates(Shape("3", votes(3)))
    assert found["vote | voted[r] == 0 | or less | voted[r] == 0"] is None


def test_what_a_bound_hides_or_a_shape_does_not_have_is_no_loss() -> None:
    """A mutant that is explained is tried in shapes that end; others may be the only ones that meet a witness."""
    small, large = Shape("small", model("core", views=1, ops=1, requests=1)), Shape("large", model("core"), 50_000)
    ground = survey([small, large])
    assert ground.bounded == {"large"}
    assert ground.witnessed["large"] - ground.witnessed["small"]
    actions = frozenset({"do_view_change"})
    found = list(hunt([small, large], ground, actions=actions, explained=lambda mutant: True))
    assert found
    assert not [report for report in found if report.death is not None]
    decided = frozenset({"decide"})
    bound = Shape("3", votes(3), 20)
    hunted = {report.mutant.id: report.death for report in hunt([bound], survey([bound]), actions=decided)}
    assert hunted["decide | decided[r] = … | left out"] is None


def test_what_a_mutant_that_is_explained_does_not_meet_where_it_is_tried_is_no_loss() -> None:
    """A bounded shape, in which it is not tried, may meet it."""
    shapes = [Shape("ends", votes(3))]
    decided = frozenset({"decide"})
    found = {r.mutant.id: r.death for r in hunt(shapes, survey(shapes), actions=decided, explained=lambda m: True)}
    assert found["decide | decided[r] = … | left out"] is not None
    shapes.append(Shape("bounded", votes(4), 20))
    found = {r.mutant.id: r.death for r in hunt(shapes, survey(shapes), actions=decided, explained=lambda m: True)}
    assert found["decide | decided[r] = … | left out"] is None


def test_what_an_explained_mutant_misses_where_it_was_tried_it_may_meet_elsewhere() -> None:
    shapes = [Shape("3", votes(3)), Shape("4", votes(4), 200)]
    ground = survey(shapes)
    assert ground.bounded == {"4"}
    assert "J1" in ground.witnessed["4"]
    found = hunt(shapes, ground, explained=lambda mutant: True)
    assert {r.mutant.id: r.death for r in found}["vote | voted[r] = … | left out"] is None
    assert fates(shapes[0])["vote | voted[r] = … | left out"] == "witness of J1 not reached"


def test_shapes_in_which_the_specification_itself_is_wrong_are_refused() -> None:
    wrong = next(m for m in mutants(votes(3)) if m.kind == "quorum one smaller").of(votes(3))
    with pytest.raises(SpecError, match="without any mutation"):
        survey([Shape("3", wrong)])


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("core", {"views": 2, "ops": 1, "requests": 1, "restarts": 1}),
        pytest.param("combined", {}, marks=pytest.mark.long),
        pytest.param("superblock", {}, marks=pytest.mark.long),
    ],
)
def test_an_action_made_again_from_its_record_does_the_same(name: str, sizes: dict[str, int]) -> None:
    spec = model(name, **sizes)
    again = replace(spec, actions=tuple(runnable(spec.ir(a.name), a) for a in spec.actions))
    one, other = (interp.explore(s, max_states=400) for s in (spec, again))
    assert one.distinct >= 400
    assert (one.per_action, one.witnessed, one.depth) == (other.per_action, other.witnessed, other.depth)


def test_a_mutant_has_the_same_name_in_every_size_and_some_only_where_their_action_is() -> None:
    small = Shape("a", model("core", views=2, ops=1, requests=1))
    crashing = Shape("b", model("core", replicas=4, views=2, ops=1, requests=1, restarts=1))
    every = all_mutants([small, crashing])
    assert all("b" in by_shape for by_shape in every.values())
    alone = {id for id, by_shape in every.items() if "a" not in by_shape}
    assert {id.partition(" | ")[0] for id in alone} == {"restart"}
    assert "restart | durable_view[r] is durable | lost in a crash" in alone


def minor_first() -> Mutant:
    (found,) = [m for m in mutants(model("core"), frozenset({"start_view"})) if m.kind == "minor key first"]
    return found


def test_the_order_of_two_keys_can_be_turned_round() -> None:
    text = minor_first().part
    assert text.startswith("any_of(received(r).dvc_log_view[view[r], q] < received(r).dvc_log_view[view[r], b]")


def test_a_search_is_kept_by_content_and_not_done_again() -> None:
    shape = Shape("one", model("core", views=1, ops=1, requests=1))
    first, result = search(shape)
    assert result is not None
    again, none = search(Shape("other name", model("core", views=1, ops=1, requests=1)))
    assert none is None
    assert again == first
    assert again.recalled
    changed, result = search(Shape("one", minor_first().of(model("core", views=1, ops=1, requests=1))))
    assert result is not None
    assert not changed.recalled


def test_what_is_kept_and_damaged_is_searched_again(tmp_path: Path) -> None:
    shape = Shape("one", model("core", views=1, ops=1, requests=1))
    search(shape)
    (kept,) = (tmp_path / "cache" / "outcomes").rglob("*.json")
    kept.write_text(kept.read_text().replace('"distinct": ', '"distinct": 1'))
    outcome, result = search(shape)
    assert result is not None
    assert outcome.distinct == result.distinct


def test_the_digest_is_of_what_is_recorded_and_of_the_bounds() -> None:
    assert digest(model("core")) == digest(model("core"))
    assert digest(model("core")) != digest(model("core", views=2))
    assert digest(model("core")) != digest(minor_first().of(model("core")))
    assert digest_of_steps(model("core")) != digest_of_steps(minor_first().of(model("core")))
    assert digest_of_predicates(model("core")) == digest_of_predicates(minor_first().of(model("core")))


def test_the_digest_does_not_depend_on_order_or_on_names_of_what_is_bound() -> None:
    one = model("core")
    turned = replace(one, actions=one.actions[::-1], invariants=one.invariants[::-1])
    assert digest(turned) == digest(one)
    a, b = Name("a"), Name("b")
    ranges = (Const(0), Const(1))
    some_of = [
        Quant("exists", Binder(n, *ranges), Op("or", (Op("le", (n, b), True), Const(1, True)), True))
        for n in (a, Name("z"))
    ]
    assert normal(some_of[0].key()) == normal(some_of[1].key())
    assert normal(some_of[0].key()) != normal(Quant("exists", Binder(b, *ranges), some_of[0].body).key())


def test_a_portfolio_holds_only_if_every_witness_is_reached_and_every_action_taken() -> None:
    one_view = cover([Shape("1", model("core", views=1, ops=1, requests=1))])
    assert one_view.verdict == "inconclusive"
    assert "start_view" in one_view.untaken
    assert "I12" in one_view.unwitnessed
    assert "is reached in no shape: vacuous" in one_view.reason()


def test_a_shape_that_is_too_large_is_searched_up_to_its_bound() -> None:
    outcome, _ = search(Shape("bounded", model("core"), 50_000))
    assert (outcome.verdict, outcome.distinct) == ("bounded", 50_000)
    deepest, _ = search(Shape("whole", model("core", views=2, ops=1, requests=1), 50_000))
    assert (deepest.verdict, deepest.distinct) == ("holds", counts_of("core", views=2, ops=1, requests=1).distinct)
    assert 0 < outcome.depth_complete < deepest.depth


def test_a_portfolio_stops_where_something_breaks_and_shows_the_behaviour_also_when_it_is_recalled() -> None:
    fine = Shape("fine", votes(2))
    wrong = Shape("wrong", next(m for m in mutants(votes(3)) if m.kind == "quorum one smaller").of(votes(3)))
    for recalled in (False, True):
        covered = cover([fine, wrong, fine])
        assert covered.verdict == "violated"
        assert [outcome.verdict for _, outcome in covered.outcomes] == ["holds", "violated"]
        assert covered.outcomes[1][1].recalled is recalled
        assert isinstance(covered.result, explicit.Result)
        assert covered.result.broken == "J1"
        assert isinstance(covered.outcomes[0][1], Outcome)


@pytest.mark.parametrize("table", tables(), ids=lambda table: str(table["model"]))
def test_a_table_that_is_kept_is_about_the_specification_and_each_mutant_is_noticed_or_explained(
    table: dict[str, Any],
) -> None:
    name = table["model"]
    shapes = model_shapes(name)
    assert table["beside"] == list(portfolio_of(name).beside)
    assert [shape["name"] for shape in table["shapes"]] == [shape.name for shape in shapes]
    found = digest_of_steps(*(shape.spec for shape in shapes))
    assert table["digest"] == found, f"vsr mutate {name} --record makes it again"
    assert {mutant["id"] for mutant in table["mutants"]} == set(all_mutants(shapes)) - elsewhere(name)
    for mutant in table["mutants"]:
        assert mutant["death"] or mutant["reason"] or mutant["effect"] in EFFECTS, mutant["id"]
    assert name != "core" or all(mutant["death"] or mutant["reason"] for mutant in table["mutants"])


def test_no_reason_is_written_for_a_mutant_that_is_noticed_or_that_there_is_not() -> None:
    for table in tables():
        explained = [m["id"] for m in table["mutants"] if not m["death"]]
        for id in reasons().get(table["model"], {}):
            assert any(mutant.startswith(id) for mutant in explained), id


def test_the_page_of_mutants_is_made_from_the_tables() -> None:
    page = Path(__file__).parents[3] / "docs/mutants.md"
    assert page.read_text() == document(tables()), "vsr mutate --document docs/mutants.md makes it again"


@pytest.mark.parametrize("name", MODELS)
def test_the_shapes_of_every_model_can_be_made_and_what_they_need_not_meet_is_theirs(name: str) -> None:
    portfolio = portfolio_of(name)
    specs = [shape.spec for shape in model_shapes(name)]
    assert len({size.name for size in portfolio.sizes}) == len(portfolio.sizes)
    known = {act.name for spec in specs for act in spec.actions} | {p.id for spec in specs for p in spec.witnesses}
    assert set(portfolio.unmet) <= known
    assert all(len(why) > 10 for why in portfolio.unmet.values())
    assert all(portfolio_of(other).table != portfolio.table for other in portfolio.beside)


def test_what_a_portfolio_need_not_meet_is_excused_by_name_and_only_that() -> None:
    one_view = [Shape("1", model("core", views=1, ops=1, requests=1))]
    excused = cover(one_view, unmet={"start_view": "one view", "append": "it is taken, so it needs no excuse"})
    assert excused.excused == {"start_view": "one view"}
    assert excused.verdict == "inconclusive"
    assert "start_view" not in excused.reason().split(": ")[-1].split(", ")
    every = dict.fromkeys((*excused.untaken, *excused.unwitnessed, "start_view"), "one view")
    assert cover(one_view, unmet=every).verdict == "holds"
