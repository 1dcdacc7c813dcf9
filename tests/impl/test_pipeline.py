"""One pipeline, several namespaces: what is committed is the contiguous prefix, and a view begins with no frontier."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.impl.link import Link
from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.messages import Message, PrepareOk
from viewproof.impl.machine.partitions import AppendMessages
from viewproof.impl.replica.pipeline import Pipeline


@given(st.lists(st.integers(0, 2), max_size=8), st.permutations(range(1, 9)))
def test_the_drained_prefix_is_that_of_the_acknowledged_ops_whatever_the_namespaces(
    namespaces: list[int], order: list[int]
) -> None:
    pipeline = Pipeline()
    pipeline.reset(0, 0)
    for namespace in namespaces:
        pipeline.push(namespace)
    commit_max = 0
    acknowledged: set[int] = set()
    for op in order:
        acknowledged.add(op)
        pipeline.acknowledge(op)
        while pipeline.is_committable(commit_max + 1):
            commit_max += 1
            pipeline.drain(commit_max)
        expected = 0
        while expected + 1 in acknowledged and expected < len(namespaces):
            expected += 1
        assert commit_max == expected
    assert sum(pipeline.frontiers.values()) == len(namespaces)


def test_a_frontier_runs_ahead_in_its_own_namespace_and_nothing_is_drained_before_the_others() -> None:
    pipeline = Pipeline()
    pipeline.reset(3, 10)
    for namespace in (7, 8, 8):
        pipeline.push(namespace)
    pipeline.acknowledge(12)
    pipeline.acknowledge(13)
    assert (pipeline.frontiers, pipeline.is_committable(11), pipeline.is_committable(12)) == ({8: 2}, False, True)
    pipeline.acknowledge(11)
    assert pipeline.is_committable(11)


def test_another_view_begins_without_frontiers() -> None:
    pipeline = Pipeline()
    pipeline.reset(0, 0)
    pipeline.push(7)
    pipeline.acknowledge(1)
    pipeline.reset(3, 1)
    pipeline.push(7)
    assert not pipeline.is_committable(2)
    pipeline.reset(6, 1)
    assert pipeline.frontiers == {}


def partitions(faults: tuple[str, ...] = ()) -> Link:
    return Link(plane=Plane.PARTITIONS, faults=faults)


def test_an_op_waits_for_the_ops_of_other_namespaces_before_it() -> None:
    link = partitions()
    link.lose = lambda source, to, message: isinstance(message, PrepareOk) and message.op == 1
    link.request(0, 1, 1, AppendMessages(7, (b"a",)))
    link.request(0, 2, 1, AppendMessages(8, (b"b",)))
    assert (link[0].state.commit_max, link[0].acknowledgements.pipeline.frontiers) == (0, {8: 1})
    link.lose = lambda source, to, message: False
    link.tick(30)
    assert [link[node].state.commit_min for node in range(3)] == [2] * 3
    assert {event.m_op for event in link.of(0, "commit")} == {1, 2}


def stale(faults: tuple[str, ...]) -> Link:
    """Replica 0 leads again with one entry that nobody else holds."""
    link = partitions(faults)
    link.request(0, 1, 1, AppendMessages(7, (b"a",)))
    link.tick(20)
    for node in (1, 2, 0):
        link.change_view(node)
        link.tick(20)

    def lose(source: int, to: int, message: Message) -> bool:
        return source == 0

    link.lose = lose
    link.request(0, 1, 2, AppendMessages(7, (b"b",)))
    return link


def test_the_fault_of_a_stale_frontier_commits_what_nobody_acknowledged_in_this_view() -> None:
    assert (stale(())[0].state.view, stale(())[0].state.op, stale(())[0].state.commit_max) == (3, 2, 1)
    assert stale(("commit.stale_frontier",))[0].state.commit_max == 2
