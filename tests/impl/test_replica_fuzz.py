"""No message, however malformed, makes a replica raise or gives it a state that its inequalities forbid."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.impl.link import Link
from viewproof.impl.interface.messages import (
    Commit,
    DoViewChange,
    Message,
    Prepare,
    PrepareHeader,
    PrepareOk,
    PrepareResponse,
    Reply,
    Request,
    RequestDoViewChange,
    RequestPrepare,
    RequestStartView,
    StartView,
    StartViewChange,
    make_header,
)
from viewproof.impl.replica import Replica

NUMBERS = st.integers(-2, 6) | st.sampled_from([2**31, 2**63 - 1, 2**64 - 1])
SMALL = st.integers(0, 4)
TEXTS = st.sampled_from(["", "00", "zz", "ab" * 16])
BODIES = st.binary(max_size=4)
VALID = st.builds(
    lambda view, op, body: make_header(parent="", view=view, op=op, client=1, request=1, commit=0, body=body),
    SMALL,
    SMALL,
    st.just(b"x"),
)
HEADERS = VALID | st.builds(PrepareHeader, TEXTS, TEXTS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS)
WINDOWS = st.lists(HEADERS, max_size=3).map(tuple)
NODES = st.integers(-1, 4)
PREPARES = st.builds(Prepare, HEADERS, BODIES | st.just(b"x"), NODES, SMALL, SMALL)
WANTED = st.lists(st.tuples(NUMBERS, TEXTS), max_size=3).map(tuple)
MESSAGES = st.one_of(
    PREPARES,
    st.builds(Request, NUMBERS, NUMBERS, BODIES, SMALL),
    st.builds(Reply, SMALL, SMALL, SMALL, BODIES),
    st.builds(PrepareOk, SMALL, NUMBERS, TEXTS, NODES),
    st.builds(Commit, SMALL, NUMBERS, NODES),
    st.builds(StartViewChange, SMALL, NODES),
    st.builds(DoViewChange, SMALL, NUMBERS, NUMBERS, NUMBERS, WINDOWS, NODES),
    st.builds(StartView, SMALL, NUMBERS, NUMBERS, WINDOWS, NODES),
    st.builds(RequestStartView, SMALL, NUMBERS, NODES),
    st.builds(RequestDoViewChange, SMALL, NUMBERS, NODES),
    st.builds(RequestPrepare, SMALL, WANTED, NODES),
    st.builds(PrepareResponse, st.lists(PREPARES, max_size=2).map(tuple), NODES),
)


def assert_inequalities(replica: Replica) -> None:
    assert replica.state.durable_op <= replica.state.op
    assert replica.state.commit_min <= replica.state.commit_max
    assert replica.state.log_view <= replica.state.view <= replica.state.superblock.view
    assert replica.state.log_view <= replica.state.superblock.log_view
    assert [prepare.header.op for prepare in replica.state.log] == list(range(1, replica.state.op + 1))
    for before, after in pairwise(replica.state.log):
        assert after.header.parent == before.header.checksum


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), MESSAGES | st.integers(1, 120)), max_size=12))
def test_malformed_messages_are_never_raised_on(steps: list[tuple[int, Message | int]]) -> None:
    link = Link()
    for node, step in steps:
        if isinstance(step, int):
            link.tick(step, node)
        else:
            link.deliver(node, step)
            link.run()
        for replica in link.replicas.values():
            assert_inequalities(replica)
