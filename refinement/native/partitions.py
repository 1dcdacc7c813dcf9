"""What executed ops ask of partitions (I15): appends, and stored offsets of consumers and groups.

A prepare does not show what it asks. The first `execute` of it does; every other one must show the same. The
specification then gives the offset. Partitions are numbered by their namespace, 64 bits; a reader is partition, number
and kind in one number (`reader`).
"""

from __future__ import annotations

from typing import Any

from viewproof.refinement.events import call, check, holds, step, text, text_of, when
from viewproof.spec.lang import all_of, any_of, as_index, number_of, value_of, where
from viewproof.spec.vsr.parts.partitions.state import STORE, UNKNOWN, Asked, Partition, Reader

PARTITIONS = 1 << 64
"""Number of partitions: one for each namespace."""
NUMBERED = 1 << 20
"""Most partitions, and most consumers, of one run where they are numbered from 0 on."""


def reader(namespace: int, consumer: int, group: int, partitions: int) -> int:
    """The number of a reader: that of its partition, modulo the number of partitions."""
    return (2 * (consumer % partitions) + group) * partitions + namespace % partitions


def _partition(state: Any, e: Any) -> Any:
    return as_index(Partition, e.m_namespace % state.cfg.partitions.count)


def _reader(state: Any, e: Any) -> Any:
    return call(reader, e.m_namespace, e.m_consumer, e.m_group, state.cfg.partitions.count, sort=Reader)


def _appends(e: Any) -> Any:
    return e.m_operation == "append"


def _stores(e: Any) -> Any:
    return any_of(e.m_operation == "store", e.m_operation == "refused")


def asks(state: Any, e: Any) -> None:
    """What the entry asks, if it is executed for the first time."""
    r, in_log = e.node, e.m_op <= state.op[e.node]
    known = state.asked[value_of(state.entry[r, e.m_op]), e.m_op] != UNKNOWN
    with when(all_of(_appends(e), in_log)):
        step("ask_append", r=r, n=_partition(state, e), m=e.m_count, unless=known)
    with when(all_of(_stores(e), in_log)):
        step("ask_store", r=r, g=_reader(state, e), x=e.m_offset, unless=known)
    with when(all_of(e.m_operation == "other", in_log)):
        step("ask_other", r=r, unless=known)


def asked(state: Any, e: Any) -> None:
    """Every replica that executes an entry is asked the same. An append's messages got the offsets up to the end; an
    offset above the end is refused.
    """
    entry = value_of(state.executed[e.node, e.m_op]), e.m_op
    what = state.asked[entry]
    same = any_of(all_of(e.m_operation == "refused", what == STORE), e.m_operation == text_of(Asked, what))
    holds(same, "the entry asked something else of the replica that executed it before", e.m_operation)
    with when(_appends(e)):
        check(e.m_count, state.asked_count[entry])
        same = _partition(state, e) == state.asked_partition[entry]
        holds(same, "the entry appended to another partition before", e.m_namespace)
    with when(_stores(e)):
        check(e.m_offset, state.asked_offset[entry])
        same = _reader(state, e) == state.asked_reader[entry]
        holds(same, "the entry stored another reader's offset before", e.m_consumer)
    end = state.next_offset[e.node, _partition(state, e)]
    with when(_appends(e)):
        check(e.m_offset, end - number_of(e.m_count), rule="I15")
    with when(_stores(e)):
        check(e.m_operation, where(e.m_offset <= end, text("store"), text("refused")), rule="I15")
