"""Sorts are checked when a specification is recorded: what does not go together is refused with both kinds."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.refinement.tigerbeetle.profile import SYSTEM_2022, Cluster
from viewproof.spec import oxia, vsr
from viewproof.spec.lang import (
    BOOL,
    NONE,
    Index,
    Label,
    Schema,
    SpecError,
    Values,
    as_index,
    between,
    count,
    exists,
    forall,
    largest,
    maximum,
    number_of,
    one_of,
    optional,
    require,
    some,
    up_to,
    value_of,
    where,
    within,
)
from viewproof.spec.lang.expr import Param
from viewproof.spec.lang.record import record_action, record_predicate
from viewproof.spec.oxia.fault_models import FAULT_MODELS as OXIA_FAULT_MODELS
from viewproof.spec.vsr import profiles
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.lemmas import lemmas_of
from viewproof.spec.vsr.models import unbounded
from viewproof.spec.vsr.tigerbeetle import july_2026, june_2022


class Node(Index):
    """A node."""


class Step(Index, lo=1):
    """A step."""


class Steps(Step, lo=0, ends_with="Step"):
    """How many steps: 0 or a step."""


class Mood(Label):
    """How a node feels."""

    CALM: Mood
    CROSS: Mood


def schema() -> Schema:
    """One variable of each kind."""
    s = Schema()
    s.state("at", (Node,), up_to(Step), doc="the step a node is at")
    s.state("table", (Node, Step), up_to(Node), doc="the node that a node saw at a step")
    s.state("last", (Node,), optional(Step), doc="the step that a node made last")
    s.state("mood", (Node,), one_of(Mood), doc="how a node feels")
    s.state("on", (Node,), BOOL, doc="is it on?")
    s.state("many", (), Values(0, 9), doc="how many there are")
    s.register("sent", (Node,), up_to(Step), sender=lambda n: n, doc="a step that was sent")
    return s


def record(fn: Callable[..., None]) -> Any:
    """Record the function as an action of a node and a step."""
    return record_action(fn.__name__, fn, (Param("r", Node), Param("o", Step)), schema(), None, "doc")


def index(s: Any, r: Any, o: Any) -> None:
    require(s.at[o] == o)  # here


def second_index(s: Any, r: Any, o: Any) -> None:
    s.at[r] = s.table[r, r + 1]  # here


def received_index(s: Any, r: Any, o: Any) -> None:
    require(s.received(r).sent[o] == o)  # here


def receiver(s: Any, r: Any, o: Any) -> None:
    require(s.received(o).sent[r] == o)  # here


def comparison(s: Any, r: Any, o: Any) -> None:
    require(s.at[r] == r)  # here


def order(s: Any, r: Any, o: Any) -> None:
    require(r < o)  # here


def assignment(s: Any, r: Any, o: Any) -> None:
    s.at[r] = r  # here


def range_index(s: Any, r: Any, o: Any) -> None:
    s.table.update((between(Step, 1, o), o), lambda p: r)  # here


def range_value(s: Any, r: Any, o: Any) -> None:
    s.table.update((r, between(Step, 1, o)), lambda p: p)  # here


def arithmetic(s: Any, r: Any, o: Any) -> None:
    require(s.at[r] + o == o)  # here


def distance(s: Any, r: Any, o: Any) -> None:
    require(o - r <= 1)  # here


def label_arithmetic(s: Any, r: Any, o: Any) -> None:
    require(s.mood[r] + 1 == Mood.CROSS)  # type: ignore[attr-defined]  # here


def label_by_number(s: Any, r: Any, o: Any) -> None:
    require(s.mood[r] == 0)  # here


def label_assigned(s: Any, r: Any, o: Any) -> None:
    s.mood[r] = 1  # here


def range_end(s: Any, r: Any, o: Any) -> None:
    require(forall(between(Step, 1, r), lambda p: s.at[r] == p))  # here


def range_begin(s: Any, r: Any, o: Any) -> None:
    require(exists(between(Node, o, 1), lambda q: s.on[q]))  # here


def branches(s: Any, r: Any, o: Any) -> None:
    s.at[r] = where(s.on[r], o, r)  # here


def extreme(s: Any, r: Any, o: Any) -> None:
    s.at[r] = largest(o, r)  # here


def maximum_of_another(s: Any, r: Any, o: Any) -> None:
    s.at[r] = maximum(Node, lambda q: q)  # here


def bound(s: Any, r: Any, o: Any) -> None:
    require(within(Step, r))  # here


def number_for_index(s: Any, r: Any, o: Any) -> None:
    s.at[r] = count(Node, lambda q: s.on[q])  # here


def remainder_for_index(s: Any, r: Any, o: Any) -> None:
    require(o % 3 == r)  # here


def optional_zero(s: Any, r: Any, o: Any) -> None:
    require(s.last[r] == 0)  # here


def optional_as_member(s: Any, r: Any, o: Any) -> None:
    s.at[r] = s.last[r]  # here


def member_as_optional(s: Any, r: Any, o: Any) -> None:
    s.last[r] = o  # here


def optional_arithmetic(s: Any, r: Any, o: Any) -> None:
    s.at[r] = s.last[r] - 1  # here


def optional_of_another(s: Any, r: Any, o: Any) -> None:
    s.last[r] = some(r)  # here


def optional_of_optional(s: Any, r: Any, o: Any) -> None:
    s.last[r] = some(s.last[r])  # here


def apart(s: Any, r: Any, o: Any) -> None:
    s.at[r] = value_of(o)  # here


def number_of_label(s: Any, r: Any, o: Any) -> None:
    s.many = number_of(s.mood[r])  # here


def index_as_index(s: Any, r: Any, o: Any) -> None:
    s.at[r] = as_index(Step, r)  # here


REFUSED = [
    (index, "index 1 of at is Node, got Step"), (second_index, "index 2 of table is Step, got Node"),
    (received_index, "index 1 of sent is Node, got Step"), (receiver, "who receives sent is Node, got Step"),
    (comparison, "comparison (==) of Step and Node"), (order, "comparison (<) of Node and Step"),
    (assignment, "at is Step, got Node"), (range_index, "index 1 of table is Node, got Step"),
    (range_value, "table is Node, got Step"), (arithmetic, "arithmetic (add) on Step and Step"),
    (distance, "arithmetic (sub) on Step and Node"), (label_arithmetic, "arithmetic (add) on Mood"),
    (label_by_number, "comparison (==) of Mood and a number that is written out; use its labels"),
    (label_assigned, "mood is Mood, got a number that is written out; use its labels"),
    (range_end, "the upper end of a range of Step is Step, got Node"),
    (range_begin, "the lower end of a range of Node is Node, got Step"),
    (branches, "the branches of where are of Step and Node"), (extreme, "maximum of Step and Node"),
    (maximum_of_another, "at is Step, got Node"), (bound, "what is within Step is Step, got Node"),
    (number_for_index, "at is Step, got Number; number_of(i) makes"),
    (remainder_for_index, "comparison (==) of Number and Node; number_of(i) makes"),
    (optional_zero, "comparison (==) of optional(Step) and a number that is written out; some(v) and NONE"),
    (optional_as_member, "at is Step, got optional(Step); some(v) and NONE"),
    (member_as_optional, "last is optional(Step), got Step; some(v) and NONE"),
    (optional_arithmetic, "arithmetic (sub) on optional(Step)"),
    (optional_of_another, "last is optional(Step), got optional(Node)"),
    (optional_of_optional, "an optional holds an index, not optional(Step)"),
    (apart, "value_of takes an optional apart, not Step"), (number_of_label, "number_of takes an index, not Mood"),
    (index_as_index, "what becomes a member of Step is Number, got Node"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "message"), REFUSED, ids=[fn.__name__ for fn, _ in REFUSED])
def test_a_mistake_is_refused_with_file_line_and_both_sorts(fn: Callable[..., None], message: str) -> None:
    lines, first = inspect.getsourcelines(fn)
    line = first + next(n for n, text in enumerate(lines) if "# here" in text)
    with pytest.raises(SpecError) as caught:
        record(fn)
    assert message in caught.value.message
    assert str(caught.value).startswith(f"tests/spec/lang/test_sorts.py:{line}: ")


def test_what_a_specification_needs_is_accepted() -> None:
    def fine(s: Any, r: Any, o: Any) -> None:
        require(s.last[r] != NONE)
        require(value_of(s.last[r]) < o)
        require(s.last[r] <= some(o))
        require(o - s.at[r] <= 2)
        require(as_index(Node, o % 3) == r)
        require(number_of(o) >= count(Node, lambda q: s.on[q]))
        require(exists(Steps, lambda n: n == s.at[r]))
        require(s.mood[r] == Mood.CALM)
        s.at[r] = where(s.on[r], largest(s.at[r], 1), o + 1)
        s.last[r] = where(o == 1, NONE, lambda: some(o - 1))
        s.mood[r] = where(s.on[r], Mood.CROSS, s.mood[r])
        s.many = s.many + number_of(o)

    assert [u.value.key()[0] for u in record(fine).updates] == ["ite", "ite", "ite", "add"]


def test_an_optional_is_written_as_0_or_1_plus_its_value() -> None:
    def fill(s: Any, r: Any, o: Any) -> None:
        require(value_of(s.last[r]) == o)
        s.last[r] = some(o)

    ir = record(fill)
    assert ir.updates[0].value.key() == ("add", ("name", "o"), ("const", 1, False))
    assert ir.guards[0].cond.key()[1] == ("sub", ("read", "last", False, None, ("name", "r")), ("const", 1, False))


KINDS = ("Node", "Step", "optional(Step)", "Mood", "Number")


def _terms(kind: str, depth: int) -> st.SearchStrategy[Callable[[Any], Any]]:
    """Well-sorted terms of a kind, as functions of the state."""
    node: st.SearchStrategy[Any] = _terms("Node", depth - 1) if depth else st.just(lambda s: as_index(Node, 0))
    leaf = {
        "Node": st.just(lambda s: as_index(Node, s.many % 2)),
        "Step": node.map(lambda n: lambda s: s.at[n(s)]),
        "optional(Step)": node.map(lambda n: lambda s: s.last[n(s)]),
        "Mood": node.map(lambda n: lambda s: s.mood[n(s)]),
        "Number": st.just(lambda s: s.many + 0),
    }[kind]
    if depth == 0:
        return leaf
    same = _terms(kind, depth - 1)
    step = _terms("Step", depth - 1)
    more = {
        "Node": st.builds(lambda n, o: lambda s: s.table[n(s), o(s)], same, step),
        "Step": st.builds(lambda a, k: lambda s: a(s) + k, same, st.integers(0, 2)),
        "optional(Step)": step.map(lambda o: lambda s: some(o(s))),
        "Mood": st.sampled_from((Mood.CALM, Mood.CROSS)).map(lambda label: lambda s: label),
        "Number": st.builds(lambda a, b: lambda s: a(s) - b(s), step, step),
    }[kind]
    choice = st.builds(lambda a, b, n: lambda s: where(s.on[n(s)], lambda: a(s), lambda: b(s)), same, same, node)
    return st.one_of(leaf, more, choice)


def _recorded(fn: Callable[[Any], Any]) -> None:
    record_predicate("P", "drawn", fn, schema(), None, "doc")


USES: dict[str, Callable[[Any, Any], Any]] = {
    "compared": lambda a, b: a == b,
    "chosen": lambda a, b: where(a == b, a, b) == b,
}


@given(st.data(), st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from(sorted(USES)))
def test_terms_go_together_if_they_are_of_one_kind_and_are_refused_otherwise(
    data: st.DataObject, left: str, right: str, use: str
) -> None:
    a, b = data.draw(_terms(left, 2)), data.draw(_terms(right, 2))
    if left == right:
        _recorded(lambda s: _used(use, s, a, b))
        return
    with pytest.raises(SpecError, match=rf"test_sorts.py:\d+: .*({left}|{right})".replace("(Step)", r"\(Step\)")):
        _recorded(lambda s: _used(use, s, a, b))


def _used(use: str, s: Any, a: Callable[[Any], Any], b: Callable[[Any], Any]) -> Any:
    x, y = a(s), b(s)
    return USES[use](x if not isinstance(x, int) else where(s.on[0], x, x), y)


def test_every_specification_is_recorded_without_a_mismatch() -> None:
    """All models, their lemmas, every fault where it shows, unbounded profiles, Oxia's and TigerBeetle's."""
    specs = [vsr.model(name, replicas=n) for name in vsr.MODELS for n in _replicas(name)]
    specs += [m.spec(fault) for fault, m in FAULT_MODELS.items()]
    specs += [unbounded(profiles.profile(name)) for name in ("iggy-3023", "oxia-882", "sessions")]
    specs += [oxia.model(name) for name in oxia.MODELS]
    specs += [oxia.model(m.model, bounds=m.bounds, faults=(fault,)) for fault, m in OXIA_FAULT_MODELS.items()]
    june, known = june_2022.spec_2022(Cluster(3, nodes=3)), SYSTEM_2022.profile.deviations(tuple(june_2022.DEVIATIONS))
    specs += [june, june.with_stand_ins(known.added), july_2026.spec_2026(Cluster(3, nodes=4))]
    for spec in specs:
        assert spec.action_irs
        assert len(spec.invariant_irs) + len(spec.witness_irs) == len(spec.invariants) + len(spec.witnesses)
    for name in vsr.MODELS:
        spec = vsr.model(name)
        assert all(spec._predicate(lemma) for lemma in lemmas_of(spec.cfg, crashes=True))


def _replicas(name: str) -> list[int]:
    """Numbers of replicas for which the model can be built."""
    found = []
    for n in (2, 3):
        try:
            vsr.model(name, replicas=n)
        except SpecError:
            continue
        found.append(n)
    return found
