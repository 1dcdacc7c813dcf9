"""The client-side history checker: what it accepts, what it rejects, and that it agrees with brute force."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewproof.impl.net.history import HistoryError, Operation, apply, check_history

K = b"k"


def op(kind: str, called: int, returned: int | None, client: int = 1, **columns: object) -> Operation:
    return Operation(client=client, kind=kind, key=K, called=called, returned=returned, **columns)  # type: ignore[arg-type]


def test_a_sequential_history_is_linearizable() -> None:
    history = [
        op("put", 1, 2, argument=b"a"),
        op("append", 3, 4, argument=b"b"),
        op("get", 5, 6, value=b"ab"),
        op("cas", 7, 8, expected=b"ab", argument=b"c", success=True),
        op("cas", 9, 10, expected=b"ab", argument=b"d", success=False),
        op("delete", 11, 12, success=True),
        op("get", 13, 14, value=None),
    ]
    result = check_history(history)
    assert result.ok
    assert result.operations == 7


def test_a_lost_acknowledged_write_is_found() -> None:
    history = [op("put", 1, 2, argument=b"a"), op("put", 3, 4, argument=b"b"), op("get", 5, 6, value=b"a")]
    result = check_history(history)
    assert result.verdict == "violation"
    assert result.failures[0].explained == 2
    assert "get b'k'" in str(result.failures[0])


def test_an_append_applied_twice_is_found() -> None:
    assert not check_history([op("append", 1, 2, argument=b"x"), op("get", 3, 4, value=b"xx")]).ok


def test_a_stale_read_after_a_newer_one_is_found() -> None:
    history = [
        op("put", 1, 2, argument=b"a"),
        op("put", 3, 20, argument=b"b"),
        op("get", 4, 5, client=2, value=b"b"),
        op("get", 6, 7, client=2, value=b"a"),
    ]
    assert check_history(history).verdict == "violation"
    assert check_history(history[:3]).ok


def test_concurrent_operations_may_take_either_order() -> None:
    for value in (b"a", b"b"):
        history = [
            op("put", 1, 10, argument=b"a"),
            op("put", 2, 9, client=2, argument=b"b"),
            op("get", 11, 12, client=3, value=value),
        ]
        assert check_history(history).ok


def test_an_unanswered_write_may_or_may_not_have_happened() -> None:
    for value, fits in ((b"a", True), (b"b", True), (b"c", False)):
        history = [
            op("put", 1, 2, argument=b"a"),
            op("put", 3, None, client=2, argument=b"b"),
            op("get", 5, 6, value=value),
        ]
        assert check_history(history).ok is fits


def test_an_unanswered_write_takes_no_effect_before_its_call() -> None:
    history = [op("get", 1, 2, value=b"b"), op("put", 3, None, client=2, argument=b"b")]
    assert check_history(history).verdict == "violation"


def test_an_empty_history_proves_nothing() -> None:
    assert check_history([]).verdict == "inconclusive"


def test_a_bound_makes_it_inconclusive() -> None:
    history = [op("put", 1, 2, argument=b"a"), op("get", 3, 4, value=b"a")]
    result = check_history(history, configurations_max=1)
    assert result.verdict == "inconclusive"
    assert result.inconclusive_keys == (K,)


def test_an_answer_before_its_call_is_refused() -> None:
    with pytest.raises(HistoryError, match="answered before"):
        check_history([op("get", 5, 3)])


def test_initial_values_are_used() -> None:
    assert check_history([op("get", 1, 2, value=b"z")], initial={K: b"z"}).ok


def _brute_force(history: list[Operation]) -> bool:
    """Every subset of the unanswered ones, every permutation, real-time order respected."""
    answered = [o for o in history if o.returned is not None]
    pending = [o for o in history if o.returned is None]
    for count in range(len(pending) + 1):
        for chosen in itertools.combinations(pending, count):
            for order in itertools.permutations([*answered, *chosen]):
                if _explains(order):
                    return True
    return False


def _explains(order: tuple[Operation, ...]) -> bool:
    for earlier, later in itertools.combinations(order, 2):
        if later.returned is not None and later.returned < earlier.called:
            return False
    state: bytes | None = None
    for operation in order:
        fits, state = apply(operation, state)
        if not fits:
            return False
    return True


@st.composite
def _histories(draw: st.DrawFn) -> list[Operation]:
    values = st.sampled_from([None, b"a", b"b", b"ab"])
    history = []
    for client in range(1, draw(st.integers(1, 5)) + 1):
        called = draw(st.integers(0, 8))
        returned = draw(st.one_of(st.none(), st.integers(called + 1, called + 6)))
        kind = draw(st.sampled_from(["get", "put", "append", "cas", "delete"]))
        history.append(
            op(
                kind,
                called,
                returned,
                client=client,
                argument=draw(st.sampled_from([b"a", b"b"])),
                expected=draw(values),
                value=draw(values),
                success=draw(st.booleans()),
            )
        )
    return history


@settings(max_examples=300, deadline=None)
@given(_histories())
def test_the_search_agrees_with_brute_force(history: list[Operation]) -> None:
    assert check_history(history).ok is _brute_force(history)
