"""Work is dealt to Spark's tasks by its size, and it is said how even that is."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.refinement.spark import session
from viewproof.refinement.spark.balance import Cores, ahead, amount, dealt, why

SIZES = st.lists(st.integers(0, 1 << 40), min_size=1, max_size=60)


@given(SIZES, st.integers(1, 12))
def test_all_is_dealt_once_and_no_hand_has_more_than_a_share_and_the_largest(sizes: list[int], hands: int) -> None:
    found = dealt(sizes, hands, lambda size: size)
    assert sorted(size for hand in found for size in hand) == sorted(sizes)
    assert all(found)
    assert len(found) == min(hands, len(sizes))
    loads = [sum(hand) for hand in found]
    assert loads == sorted(loads, reverse=True), "the heaviest begins first"
    assert loads[0] <= sum(sizes) / len(found) + max(sizes) + len(sizes)


def test_it_is_said_how_even_it_is_and_why_not_more() -> None:
    assert why([5 << 20, 5 << 20], [5 << 20, 5 << 20], "bytes") == "2 tasks with at most 5.0 MB of 10.0 MB each"
    text = why([9 << 30, 1 << 30], [9 << 30, 1 << 30], "bytes")
    assert text == "2 tasks with at most 9.0 GB of 10.0 GB each: one is 90% of all, and a run is judged by one task"
    assert amount(12345, "events") == "12,345 events"
    assert (amount(3 << 10, "bytes"), amount(17, "bytes")) == ("3.0 kB", "17 bytes")


def test_a_giant_run_has_the_cores_that_others_leave() -> None:
    large = 10 << 30
    assert Cores(8, 1).threads(large, large) == 8
    assert Cores(8, 1).threads(large, 2 * large) == 4
    assert Cores(8, 1).threads(large, 100 * large) == 1
    assert Cores(8, 1).threads(1 << 20, 1 << 20) == 1
    assert Cores(0, 4).threads(large, 100 * large) == 4
    assert ahead(large, large, Cores(2, 1)) == "; the task of the largest reads it ahead with 2 threads"
    assert "--conf spark.task.cpus=N" in ahead(large, large, Cores(0, 1))
    assert ahead(1 << 20, 1 << 20, Cores(2, 1)) == ahead(large, 9 * large, Cores(0, 1)) == ""


def test_an_interrupt_in_spark_is_told_without_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its way to Java logs one, to the root; what else goes wrong is still told."""
    told: list[str] = []
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: told.append(record.getMessage()))
    monkeypatch.setattr(logging.getLogger(), "handlers", [handler])
    monkeypatch.setattr(session, "start_session", lambda *_: SimpleNamespace(stop=lambda: None))
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    with session.session_for(None, "local[1]", None):
        for error in (KeyboardInterrupt(), ValueError()):
            try:
                raise error
            except BaseException:
                logging.exception(type(error).__name__)
    assert told == ["ValueError"]
    logging.error("after", exc_info=KeyboardInterrupt())
    assert told == ["ValueError", "after"]
