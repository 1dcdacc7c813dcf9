"""What a replica executed stays: it executes the next op only, and stops before a log that contradicts its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.impl.link import Link, is_append
from viewproof.impl.interface.checks import ContradictionError, InvariantError
from viewproof.impl.interface.messages import (
    DoViewChange,
    PrepareHeader,
    StartView,
    StartViewChange,
    make_header,
)
from viewproof.impl.machine.state_machine import Put
from viewproof.impl.replica.state import LONG_AGO
from viewproof.impl.replica.view_change import ViewChange
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES

PUT = Put(b"k", b"v")


def executed(count: int) -> Link:
    """Three replicas that executed so many requests each."""
    link = Link()
    for number in range(1, count + 1):
        link.request(0, 1, number, PUT)
    link.tick(60)
    assert all(link[node].state.commit_min == count for node in range(3))
    return link


def other_log(count: int, view: int = 0) -> tuple[PrepareHeader, ...]:
    """A chain of so many entries that nobody prepared."""
    headers: list[PrepareHeader] = []
    for op in range(1, count + 1):
        parent = headers[-1].checksum if headers else ""
        headers.append(
            make_header(parent=parent, view=view, op=op, client=9, request=op, commit=op - 1, body=b"another")
        )
    return tuple(headers)


# The next op only


def test_an_op_is_executed_after_the_one_before_it_only() -> None:
    link = executed(2)
    state, path = link[1].state, link[1].commit_path
    for op, at in ((1, 2), (2, 2), (4, 2)):
        with pytest.raises(InvariantError, match=f"op {op} is to be executed at commit_min {at}"):
            path.execute(op)
    assert state.commit_min == 2


def test_an_op_is_not_executed_before_it_is_committed() -> None:
    link = executed(1)
    link.lose = lambda source, to, message: source != 0
    link.request(0, 1, 2, PUT)
    assert (link[0].state.op, link[0].state.commit_max) == (2, 1)
    with pytest.raises(InvariantError, match="op 2 is to be executed at commit_max 1"):
        link[0].commit_path.execute(2)


# Logs of others


def windows() -> Iterator[tuple[str, tuple[PrepareHeader, ...]]]:
    """Logs that contradict three executed ops, and what is said of them."""
    other = other_log(4)
    yield "has the entry .* at op 1, where this replica executed", other
    yield "has the entry .* at op 2, where this replica executed", other[2:]
    yield "has the entry .* at op 3, where this replica executed", other[3:]


@pytest.mark.parametrize(("error", "headers"), list(windows()))
def test_a_start_view_with_another_executed_entry_stops_the_replica(
    error: str, headers: tuple[PrepareHeader, ...]
) -> None:
    link = executed(3)
    before = (link[1].state.log.headers(1), link[1].state.superblock, len(link.writes))
    with pytest.raises(ContradictionError, match=f"the start_view of view 2 from replica 2 {error}"):
        link[1].on_message(StartView(2, 4, 4, headers, 2))
    assert (link[1].state.log.headers(1), link[1].state.superblock, len(link.writes)) == before


def test_a_later_view_that_lacks_an_executed_op_stops_the_replica() -> None:
    link = executed(3)
    short = link[0].state.log.headers(1)[:2]
    with pytest.raises(ContradictionError, match="ends at op 2; this replica executed up to op 3"):
        link[1].on_message(StartView(2, 2, 2, short, 2))


def test_an_old_start_view_of_the_own_view_that_is_shorter_stops_nobody() -> None:
    link = executed(3)
    link.deliver(1, StartView(0, 2, 1, link[0].state.log.headers(1)[:2], 0))
    assert link[1].state.op == 3
    link.request(0, 1, 4, PUT)
    assert link[0].state.commit_min == 4


def test_a_do_view_change_that_contradicts_what_the_new_primary_executed_stops_it() -> None:
    link = executed(3)
    link.lose = lambda source, to, message: True
    link[1].state.timers.heard_at = LONG_AGO
    link.deliver(1, StartViewChange(1, 2))
    link.run()
    assert link[1].state.status == "view_change"
    with pytest.raises(ContradictionError, match=r"the log of view 0, offered by replica 2 for view 1, has the entry"):
        link[1].on_message(DoViewChange(1, 0, 4, 4, other_log(4), 2))


def test_what_is_executed_while_another_log_is_fetched_is_compared_too() -> None:
    link = executed(1)
    link.hold = lambda node, io: node == 1 and is_append(node, io)
    link.request(0, 1, 2, PUT)
    assert (link[1].state.op, link[1].state.commit_min) == (2, 1)
    own = link[1].state.log.headers(1)
    second = make_header(parent=own[0].checksum, view=0, op=2, client=9, request=1, commit=1, body=b"another")
    link.lose = lambda source, to, message: True
    link.deliver(1, StartView(2, 2, 1, (second,), 2))
    assert link[1].state.target is not None
    link.lose = lambda source, to, message: False
    link.hold = lambda node, io: False
    with pytest.raises(ContradictionError, match=r"the log of view 2 has the entry .* at op 2"):
        link.tick(60)


def test_replicas_that_choose_the_smallest_log_stop_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def smallest(change: ViewChange) -> DoViewChange:
        return min(change.do_view_changes.values(), key=lambda offer: (offer.log_view, offer.op, offer.replica))

    monkeypatch.setattr(ViewChange, "best_offer", smallest)
    for seed in range(20):
        failures = simulate(seed, profile=NAMED_PROFILES["storm"], requests=80).failures
        stopped = [failure.message for failure in failures if failure.checker == "replica"]
        if any("ContradictionError: the log of view" in message for message in stopped):
            return
    pytest.fail("no replica stopped for that reason")
