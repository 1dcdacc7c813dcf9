"""Induction without sizes: what it proves, and that it does not prove what is false in some size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.failing_proofs import NOWHERE, changed_actions, fails_anyway, proof_rows
from tests.refinement.test_cli_own_model import TEXT as VOTES
from viewproof.refinement.cli import cli
from viewproof.refinement.cli.prove_unbounded import all_lemmas, following
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt.unbounded.proof import (
    FOLLOWS,
    Problem,
    Question,
    Unbounded,
    ask,
    assume,
    prove,
    without_sizes,
)
from viewproof.spec.engines.smt.unbounded.solve import ATTEMPTS
from viewproof.spec.lang import (
    NONE,
    Bool,
    Instance,
    Schema,
    Sort,
    Spec,
    action,
    all_of,
    any_of,
    between,
    count,
    exists,
    forall,
    invariant,
    maximum,
    not_,
    optional,
    require,
    some,
    up_to,
)
from viewproof.spec.vsr.core.lemmas import any_size
from viewproof.spec.vsr.core.state import Op, Replica
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.models import model

Place, Book = Sort("Place", lo=1), Sort("Book")
Length = Sort("Length", ends_with="Place")
QUORUM = '''
@invariant("J2", "a decision has a quorum")
def has_quorum(s):
    """Whoever decided, decided what a quorum voted for."""
    return forall(Voter, lambda a: any_of(
        s.decided[a] == NONE, lambda: count(Voter, lambda q: s.voted[q] == s.decided[a]) >= s.cfg))
'''


@action
def put(s: Any, b: Book) -> None:
    """A book is put at the end of the shelf."""
    s.book[s.top + 1] = some(b)
    s.top = s.top + 1


@action
def cut(s: Any, n: Length) -> None:
    """All books after a place are taken away."""
    require(n <= s.top)
    s.book.update((between(Place, n + 1, s.top),), lambda p: NONE)
    s.top = n


@action
def cut_one(s: Any, n: Length) -> None:
    """A mistake: only the book after the place is taken away."""
    require(n < s.top)
    s.book[n + 1] = NONE
    s.top = n


@action
def note_largest(s: Any) -> None:
    """The largest book so far is noted."""
    s.largest = maximum(between(Place, 1, s.top), lambda p: s.book[p])
    s.seen = s.top


@invariant("filled", "books stand side by side")
def filled(s: Any) -> Bool:
    """There is a book at exactly the places up to the top."""
    return forall(Place, lambda p: (s.book[p] != NONE) == (p <= s.top))


@invariant("noted", "what was noted is the largest")
def noted(s: Any) -> Bool:
    """If books were noted, one of them was the largest, unless some were taken away since."""
    return any_of(
        s.seen > s.top, lambda: forall(between(Place, 1, s.seen), lambda p: s.book[p] <= s.largest), s.seen == 0
    )


@invariant("found", "what was noted is on the shelf")
def found(s: Any) -> Bool:
    """What was noted as the largest is a book of the shelf: not true once it was taken away."""
    return any_of(s.largest == NONE, lambda: exists(between(Place, 1, s.top), lambda p: s.book[p] == s.largest))


@invariant("few", "few books are alike")
def few(s: Any) -> Bool:
    """Counts over places, of which there may be any number."""
    return all_of(count(Place, lambda p: s.book[p] == some(0)) >= 0)


@invariant("too_much", "whatever is in a log was executed")
def too_much(s: Any) -> Bool:
    """What was executed at an op is in every log that reaches it."""
    return forall(
        Replica,
        lambda r: forall(
            Op, lambda o: any_of(o > s.op[r], s.first_executed[o] == NONE, s.entry[r, o] == s.first_executed[o])
        ),
    )


def shelf(actions: tuple[Any, ...], invariants: tuple[Any, ...]) -> Spec:
    """Books on a shelf."""
    schema = Schema()
    schema.state("book", (Place,), optional(Book), doc="the book at a place")
    schema.state("top", (), up_to(Length), doc="the last place with a book")
    schema.state("largest", (), optional(Book), doc="the largest book that was noted")
    schema.state("seen", (), up_to(Length), doc="how many books were looked at")
    return Spec("shelf", schema, None, actions, invariants, (), Instance({"Place": 3, "Book": 2}))


@action
def choose(s: Any, p: Place, b: Book) -> None:
    """Somebody chooses a book that is there."""
    require(s.there[b])
    s.chosen[p] = b


@invariant("there", "whoever chose a book chose one that is there")
def only_there(s: Any) -> Bool:
    """A book that was chosen is there; book 0 stands for none."""
    return forall(Place, lambda p: forall(Book, lambda b: any_of(b == 0, s.chosen[p] != b, s.there[b])))


@invariant("last", "no book is after the last one")
def none_after_last(s: Any) -> Bool:
    """Books that are there are not after the last one."""
    return forall(Book, lambda b: any_of(not_(s.there[b]), b <= s.last))


@invariant("up_to_last", "whoever chose a book chose one up to the last")
def chosen_up_to_last(s: Any) -> Bool:
    """What was chosen is not after the last book."""
    return forall(Place, lambda p: s.chosen[p] <= s.last)


def library() -> Spec:
    """Books that are chosen."""
    schema = Schema()
    schema.state("chosen", (Place,), up_to(Book), doc="the book that somebody chose, 0: none")
    schema.state("there", (Book,), doc="is the book there?")
    schema.state("last", (), up_to(Book), doc="the last book")
    return Spec(
        "library", schema, None, (choose,), (only_there, none_after_last), (), Instance({"Place": 2, "Book": 2})
    )


def open_at(proof: Unbounded) -> set[tuple[str, str]]:
    """Actions and lemmas of the questions that are open."""
    return {(r.action, r.lemma) for r in proof.open}


def test_a_range_that_is_cleared_is_cleared_whatever_its_length() -> None:
    proof = prove(shelf((put, cut), (filled,)), ())
    assert (proof.verdict, proof.counted) == ("proved", {})


def test_a_cell_that_is_forgotten_in_a_long_range_is_found() -> None:
    proof = prove(shelf((put, cut_one), (filled,)), ())
    assert (proof.verdict, open_at(proof)) == ("failed", {("cut_one", "filled")})


def test_the_largest_of_any_number_of_values_is_at_least_each_of_them_and_one_of_them() -> None:
    assert prove(shelf((put, note_largest), (filled, found)), ()).verdict == "proved"
    assert open_at(prove(shelf((put, cut, note_largest), (filled, found)), ())) == {("cut", "found")}


def test_what_is_false_for_some_size_is_not_proved() -> None:
    """Taken away and put again, another book stands where a smaller one was noted."""
    assert ("put", "noted") in open_at(prove(shelf((put, cut, note_largest), (filled, noted)), ()))


def test_a_state_that_the_values_of_variables_rule_out_as_numbers_is_none() -> None:
    """What was chosen is up to the last book: that follows at the book that is the value, which nothing else names."""
    spec = library()
    problem = Problem(without_sizes(spec, (chosen_up_to_last,)), (), (chosen_up_to_last,))
    question = Question(None, "up_to_last", follows=True)
    shallow = ATTEMPTS[0]
    assert assume(problem, question, problem.refuting(question), attempt=shallow).status == "sat"
    assert ask(problem, question).status == "unsat"
    assert ask(problem, question, attempts=(shallow,)).status == "sat"
    assert prove(spec, (), (chosen_up_to_last,)).verdict == "proved"


def test_what_a_question_comes_to_does_not_depend_on_what_was_asked_before() -> None:
    spec = model("core_restart")
    lemmas, said_once = all_lemmas(spec), following(spec)

    def asked(*actions: str) -> list[tuple[str, str, int, int]]:
        found = prove(spec, lemmas, said_once, actions=actions, lemmas_asked=("I2", "I12", "messages.ack"))
        return [(r.label, r.status, r.queries, r.facts) for r in found.results if r.action == "append"]

    alone = asked("append")
    assert alone == asked("on_request", "on_prepare", "append")
    assert len(alone) == 6


def test_counting_keeps_a_sort_as_many_as_the_instance_has() -> None:
    proof = prove(shelf((put,), (few,)), ())
    assert proof.counted == {"Place": 4}


@pytest.fixture
def votes(tmp_path: Path) -> Path:
    """A model of one's own, with the lemma that its proof needs."""
    file = tmp_path / "votes.py"
    file.write_text(VOTES.replace("(agreement,), (decision,)", "(agreement, has_quorum), (decision,)").replace(
        "def votes(", QUORUM.lstrip() + "\n\ndef votes("))  # fmt: skip
    return file


def run(*words: str) -> tuple[int, str]:
    """Run `vsr prove … --unbounded`."""
    result = CliRunner().invoke(cli, ["prove", *words, "--unbounded"])
    return result.exit_code, result.stdout


def test_a_model_of_ones_own_is_proved_for_any_number_of_rounds(votes: Path) -> None:
    code, said = run(f"{votes}:small")
    assert code == 0, said
    assert "bounded: 3 of Voter; everything else is of any number" in said


def test_a_certificate_is_confirmed_and_stale_once_the_specification_is_another_one(votes: Path) -> None:
    file = votes.with_suffix(".json")
    assert run(f"{votes}:small", "--json", str(file))[0] == 0
    again = CliRunner().invoke(cli, ["prove", "--recheck", str(file)])
    assert (again.exit_code, again.stdout.split()[:2]) == (0, ["confirmed:", "proved"])
    votes.write_text(votes.read_text().replace("quorum=2", "quorum=3"))
    stale = CliRunner().invoke(cli, ["prove", "--recheck", str(file)])
    assert (stale.exit_code, stale.stdout.split()[0]) == (4, "stale:")


def test_a_quorum_that_is_too_small_is_not_proved(votes: Path) -> None:
    votes.write_text(votes.read_text().replace("quorum=2", "quorum=1"))
    code, said = run(f"{votes}:small")
    assert code == 1, said
    assert "open: decide(r=0) keeps J1: not kept in a state that is made of the numbers tried" in said
    assert "a real break:" in said


def test_an_option_of_another_question_is_refused() -> None:
    result = CliRunner().invoke(cli, ["prove", "core", "--unbounded", "--used"])
    assert result.exit_code == 2
    assert "--used does not apply to --unbounded" in result.stderr


def test_steps_of_the_core_keep_all_lemmas_whatever_the_sizes() -> None:
    spec = model("core_restart")
    proof = prove(spec, all_lemmas(spec), following(spec), actions=("resend_reply", "send_commit", "on_commit"))
    assert (proof.verdict, proof.counted) == ("proved", {"Replica": 3})
    assert sum(r.goals for r in proof.results) > 10


@pytest.mark.parametrize(
    ("fault", "changed", "lemma"),
    [
        ("view.log_view_at_merge", "merge_early", "replicas.log_view_started"),
        ("boot.all_zero", "restart", "I6"),
        pytest.param("commit.out_of_order", "commit", "committed.known", marks=pytest.mark.long),
    ],
)
def test_a_fault_leaves_its_action_open(fault: str, changed: str, lemma: str) -> None:
    chosen = FAULT_MODELS[fault]
    spec = model(chosen.model, faults=(fault,), bounds=chosen.bounds)
    proof = prove(spec, all_lemmas(spec), actions=(changed,), timeout_ms=1_000, lemmas_asked=(lemma,))
    assert open_at(proof) == {(changed, lemma)}


def test_lemmas_of_any_size_hold_in_all_reachable_states() -> None:
    spec = model("core_restart", replicas=2, views=2, ops=2, requests=2, restarts=1)
    found = explicit.explore(replace(spec, invariants=(*any_size.LEMMAS, *any_size.FOLLOWING), witnesses=()))
    assert found.verdict == "holds"


def test_what_follows_from_the_lemmas_is_not_taken_on_trust() -> None:
    """Said of ops that are not known to be committed, it does not follow."""
    spec = model("core_restart")
    proof = prove(spec, all_lemmas(spec), (too_much,), timeout_ms=1_000, actions=(FOLLOWS,))
    assert open_at(proof) == {(FOLLOWS, "too_much")}


def test_a_proof_fails_at_the_action_that_a_fault_adds_and_a_story_follows() -> None:
    row = next(iter(proof_rows(["view.log_view_at_merge"])))
    assert (*row[:5], *row[6:8]) == (
        "`view.log_view_at_merge`", "`merge_early`", "any size", "merge_early", "replicas.log_view_started", "I12", "8",
    )  # fmt: skip


@pytest.mark.long
def test_the_core_is_proved_whatever_the_sizes_and_its_certificate_is_confirmed(tmp_path: Path) -> None:
    file = tmp_path / "core.json"
    code, said = run("core_restart", "--json", str(file))
    assert code == 0, said
    assert "bounded: 3 of Replica; everything else is of any number" in said
    again = CliRunner().invoke(cli, ["prove", "--recheck", str(file)])
    assert (again.exit_code, again.stdout.split()[:2]) == (0, ["confirmed:", "proved"])


@pytest.mark.long
@pytest.mark.parametrize("fault", [name for name, f in FAULT_MODELS.items() if not f.stops_progress])
def test_each_proof_fails_at_an_action_that_the_fault_changes(fault: str) -> None:
    """Where induction fails without the fault, too, what a step with it breaks may be among that."""
    row = next(iter(proof_rows([fault])))
    assert row[3] in changed_actions(fault) or (row[3:5] == NOWHERE and fails_anyway(FAULT_MODELS[fault]))
    assert row[6] == FAULT_MODELS[fault].breaks
    assert float(row[9]) < 60


@pytest.mark.parametrize("fault", ["", "boot.all_zero", "state.getstate_truncates"])
def test_no_step_is_proved_for_want_of_states(fault: str) -> None:
    """What is assumed, and an action's guard, do not contradict each other: a proof by contradiction of those says
    nothing.
    """
    chosen = FAULT_MODELS[fault] if fault else None
    spec = model(chosen.model if chosen else "core_restart", faults=(fault,) if fault else ())
    lemmas = all_lemmas(spec)
    said_once = following(spec)
    problem = Problem(without_sizes(spec, (*lemmas, *said_once)), lemmas, said_once)
    first = {step.ir.name: step for step in reversed(problem.steps)}
    for step in first.values():
        assert assume(problem, Question(step, ""), [[]], 500).status != "unsat", step.label
