"""The mapping of what executed ops ask of partitions (I15): appends, and stored offsets of consumers and groups.

A prepare does not show what it asks. The first `execute` of it does (`ask_…`); every other one must show the same.
The spec then gives the offset. Partitions are numbered by their namespace, 64 bits; a reader is partition, number
and kind in one number (`reader`).
"""

from __future__ import annotations

from viewproof.refinement.mapping.lines import Check, Holds, Line, Step

PARTITIONS = 1 << 64
"""Number of partitions: one for each namespace."""

_IN_LOG = "m_op <= spec.op[node]"
_KNOWN = "spec.asked[spec.entry[node, m_op] - 1, m_op]"
_ASKED = "[spec.executed[node, m_op] - 1, m_op]"
_APPENDS, _STORES = "m_operation == 'append'", "m_operation in ('store', 'refused')"
_PARTITION = "m_namespace % partition_count"
_END = f"spec.next_offset[node, {_PARTITION}]"
_READER = "reader(m_namespace, m_consumer, m_group)"

ASKS: tuple[Line, ...] = (
    Step(
        "ask_append",
        {"r": "node", "n": _PARTITION, "m": "m_count"},
        only_if=f"{_APPENDS} and {_IN_LOG}",
        unless=_KNOWN,
        when="partitions",
    ),
    Step(
        "ask_store",
        {"r": "node", "g": _READER, "x": "m_offset"},
        only_if=f"{_STORES} and {_IN_LOG}",
        unless=_KNOWN,
        when="partitions",
    ),
    Step("ask_other", {"r": "node"}, only_if=f"m_operation == 'other' and {_IN_LOG}", unless=_KNOWN, when="partitions"),
    Check("m_operation", "'other'", when="-partitions"),
)
"""Before an execution."""

ASKED: tuple[Line, ...] = (
    Holds(
        f"(m_operation if m_operation != 'refused' else 'store') == operation(spec.asked{_ASKED})",
        "m_operation",
        "the entry asked something else of the replica that executed it before",
        when="partitions",
    ),
    Check("m_count", f"spec.asked_count{_ASKED}", only_if=_APPENDS, when="partitions"),
    Holds(
        f"{_PARTITION} == spec.asked_partition{_ASKED}",
        "m_namespace",
        "the entry appended to another partition before",
        only_if=_APPENDS,
        when="partitions",
    ),
    Check("m_offset", f"spec.asked_offset{_ASKED}", only_if=_STORES, when="partitions"),
    Holds(
        f"{_READER} == spec.asked_reader{_ASKED}",
        "m_consumer",
        "the entry stored another reader's offset before",
        only_if=_STORES,
        when="partitions",
    ),
    Check("m_offset", f"{_END} - m_count", "I15", _APPENDS, when="partitions"),
    Check("m_operation", f"'store' if m_offset <= {_END} else 'refused'", "I15", _STORES, when="partitions"),
)
"""After it: every replica that executes an entry is asked the same. An append's messages got the offsets up to the end;
an offset above the end is refused.
"""


def reader(namespace: int, consumer: int, group: int) -> int:
    """The number of a reader: that of its partition, modulo the number of partitions."""
    return (2 * (consumer % PARTITIONS) + group) * PARTITIONS + namespace % PARTITIONS
