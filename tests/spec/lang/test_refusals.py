"""What the language refuses, each with the file and line of the specification text that did it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

from viewproof.spec.engines import interp
from viewproof.spec.lang import (
    BOOL,
    Action,
    Instance,
    RangeError,
    Schema,
    Sort,
    Spec,
    SpecError,
    Values,
    as_index,
    between,
    number_of,
    require,
    where,
)
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.expr import Param
from viewproof.spec.lang.record import record_action

I = Sort("I")  # noqa: E741


def schema() -> Schema:
    """Two cells, a flag, a message."""
    s = Schema()
    s.state("x", (I,), Values(0, 2), doc="two small numbers")
    s.state("n", (), Values(0, 2), doc="a number")
    s.state("flag", (I,), BOOL, doc="two flags")
    s.register("msg", (I,), Values(0, 2), sender=lambda i: i, doc="a message")
    return s


def record(fn: Callable[..., None]) -> Any:
    """Record the function as an action with one parameter."""
    return record_action(fn.__name__, fn, (Param("i", I),), schema(), None, "doc")


def run(fn: Callable[..., None]) -> Any:
    """Run it in the interpreter on the initial state with i = 0."""
    act = Action(fn.__name__, fn, (Param("i", I),), "doc", None)
    spec = Spec("refusals", schema(), None, (act,), (), (), Instance({"I": 1}))
    return interp.step(spec, State.initial(), act, {"i": 0})


def python_if(s: Any, i: Any) -> None:
    if s.x[i] == 0:  # here
        s.x[i] = 1


def python_and(s: Any, i: Any) -> None:
    require(s.x[i] == 0 and s.n == 0)  # here


def python_or(s: Any, i: Any) -> None:
    require(s.x[i] == 0 or s.n == 0)  # here


def python_not(s: Any, i: Any) -> None:
    require(not s.flag[i])  # here


def chain(s: Any, i: Any) -> None:
    require(0 <= s.x[i] <= 1)  # here


def loop(s: Any, i: Any) -> None:
    for _ in s.x[i]:  # here
        s.x[i] = 1


def python_range(s: Any, i: Any) -> None:
    for k in range(s.n):  # here
        s.x[k] = 1


def twice(s: Any, i: Any) -> None:
    s.x[i] = 1
    s.x[as_index(I, s.n)] = 2  # here


def twice_another_guard(s: Any, i: Any) -> None:
    require(number_of(i) != s.x[i])
    s.x[i] = 1
    s.x[as_index(I, s.n)] = 2  # here


def guard_late(s: Any, i: Any) -> None:
    s.x[i] = 1
    require(s.n == 0)  # here


def mixed_types(s: Any, i: Any) -> None:
    require(s.flag[i] == s.n)  # here


def mixed_branches(s: Any, i: Any) -> None:
    s.n = where(s.flag[i], s.flag[i], s.n)  # here


def bool_arithmetic(s: Any, i: Any) -> None:
    s.n = s.flag[i] + 1  # here


def wrong_type(s: Any, i: Any) -> None:
    s.flag[i] = s.n  # here


def number_as_guard(s: Any, i: Any) -> None:
    require(s.n)  # here


def unknown(s: Any, i: Any) -> None:
    require(s.nonsense == 0)  # here


def unknown_write(s: Any, i: Any) -> None:
    s.nonsense = 0  # here


def received_state(s: Any, i: Any) -> None:
    require(s.received(i).x[i] == 0)  # here


def assigns_received(s: Any, i: Any) -> None:
    s.received(i).msg[i] = 1  # here


def too_few_indices(s: Any, i: Any) -> None:
    require(s.x[i, i] == 0)  # here


def modulo(s: Any, i: Any) -> None:
    require(s.n % s.x[i] == 0)  # here


def text_value(s: Any, i: Any) -> None:
    s.n = "one"  # here


REFUSED = [
    (python_if, "`if`"), (python_and, "`and`"), (python_or, "`or`"), (python_not, "`not`"), (chain, "comparison chain"),
    (loop, "loop"), (python_range, "range"), (twice, "assigned twice"), (guard_late, "before the first assignment"),
    (twice_another_guard, "assigned twice"),
    (mixed_types, "Boolean with an integer"), (mixed_branches, "differ in type"), (bool_arithmetic, "on a Boolean"),
    (wrong_type, "True, False or a condition, and got a number"), (number_as_guard, "expected a Boolean"),
    (unknown, "nonsense"),
    (unknown_write, "nonsense"), (received_state, "not a message"), (assigns_received, "cannot be assigned"),
    (too_few_indices, "1 indices, got 2"), (modulo, "positive constant"), (text_value, "not str"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "message"), REFUSED, ids=[fn.__name__ for fn, _ in REFUSED])
def test_recording_refuses_with_file_and_line(fn: Callable[..., None], message: str) -> None:
    lines, first = inspect.getsourcelines(fn)
    line = first + next(n for n, text in enumerate(lines) if "# here" in text)
    with pytest.raises(SpecError) as caught:
        record(fn)
    assert message in caught.value.message
    assert str(caught.value).startswith(f"tests/spec/lang/test_refusals.py:{line}: ")


def value_high(s: Any, i: Any) -> None:
    s.n = s.n + 3  # here


def value_low(s: Any, i: Any) -> None:
    s.n = s.n - 1  # here


def index_high(s: Any, i: Any) -> None:
    s.x[i + 2] = 0  # here


def read_high(s: Any, i: Any) -> None:
    require(s.x[i + 2] == 0)  # here


def range_high(s: Any, i: Any) -> None:
    s.x.update((between(I, 0, as_index(I, s.n + 2)),), lambda k: 1)  # here


def twice_dynamic(s: Any, i: Any) -> None:
    s.x[i] = 1
    s.x[as_index(I, s.n)] = 2  # here


LEFT = [
    (value_high, "n[] = 3 is outside 0..2"), (value_low, "n[] = -1 is outside 0..2"), (index_high, "index 2 of x"),
    (read_high, "index 2 of x"), (range_high, "range 0..2 leaves sort I"), (twice_dynamic, "assigned twice"),
]  # fmt: skip


@pytest.mark.parametrize(("fn", "message"), LEFT, ids=[fn.__name__ for fn, _ in LEFT])
def test_interpreter_refuses_what_leaves_its_range(fn: Callable[..., None], message: str) -> None:
    lines, first = inspect.getsourcelines(fn)
    line = first + next(n for n, text in enumerate(lines) if "# here" in text)
    with pytest.raises(SpecError) as caught:
        run(fn)
    assert message in str(caught.value)
    assert isinstance(caught.value, RangeError) == (fn is not twice_dynamic)
    if caught.value.source is not None:
        assert caught.value.source.line == line


def test_a_read_out_of_range_that_does_not_count_is_no_error() -> None:
    def guarded(s: Any, i: Any) -> None:
        s.n = where(s.n == 0, 1, lambda: s.x[i + 2])

    after = run(guarded)
    assert isinstance(after, State)


def test_two_cells_that_a_guard_tells_apart_may_be_assigned() -> None:
    def apart(s: Any, i: Any) -> None:
        require(i != as_index(I, s.n))
        s.x[i] = 1
        s.x[as_index(I, s.n)] = 2

    assert len(record(apart).updates) == 2
    assert run(apart) == interp.Blocked("apart", 0)


@pytest.mark.parametrize("name", ["received", "x y", "guards"])
def test_reserved_and_malformed_names_are_refused(name: str) -> None:
    with pytest.raises(SpecError):
        Schema().state(name, (), doc="a variable")


def test_a_variable_needs_a_sentence_and_one_declaration() -> None:
    s = Schema()
    s.state("x", (), doc="a flag")
    with pytest.raises(SpecError, match="declared twice"):
        s.state("x", (), doc="again")
    with pytest.raises(SpecError, match="needs a sentence"):
        s.state("y", (), doc="")
