"""Offsets of messages are unique and rising, and what a client was told of lies at its offset at the end (I15).

A replica that boots, or installs a snapshot, has the ends and the stored offsets that go with its commit_min. An op
stores what it was asked to store and no more, and who asks for a stored offset is told that.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from viewproof.impl.machine.partition_log import SegmentLostError
from viewproof.impl.machine.partitions import Appended, AppendMessages, Offset, Reader, ReadOffset
from viewproof.impl.machine.state_machine import decode_operation, decode_result
from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker, FinalState
from viewproof.impl.sim.clients import Answer
from viewproof.impl.trace.events import TraceEvent

Ends = dict[int, int]

NUMBERS = 1 << 64
"""Namespaces and consumers are below this; events show them as signed numbers."""


class OffsetsChecker(Checker):
    """Judges the answers to appends, per namespace, from outside, and the partitions in memory.

    `ends` holds, by op, the ends of partitions that the first replica had that executed it; `stored` the offsets that
    the ops up to it stored.
    """

    name = "offsets"
    events = frozenset({"restart", "on_start_view"})

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[int, Ends] = {}
        self.stored: dict[int, dict[Reader, int]] = {0: {}}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._store(event)
        if replica.state.state_machine.partitions.logs:
            self._compare(node, replica, "executed")

    def _store(self, event: TraceEvent) -> None:
        """Notes what offsets are stored after an op: those before it, and what it stored."""
        op, namespace, consumer, offset = event.m_op or 0, event.m_namespace, event.m_consumer, event.m_offset
        if op in self.stored or op - 1 not in self.stored or event.m_operation is None:
            return
        stored = self.stored[op] = dict(self.stored[op - 1])
        if event.m_operation == "store" and namespace is not None and consumer is not None and offset is not None:
            stored[namespace % NUMBERS, bool(event.m_group), consumer % NUMBERS] = offset

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        if replica.state.commit_min in self.ends:
            self._compare(node, replica, event.event)

    def _compare(self, node: int, replica: Replica, what: str) -> None:
        partitions, op = replica.state.state_machine.partitions, replica.state.commit_min
        found = {namespace: log.end for namespace, log in partitions.logs.items() if log.end}
        first = self.ends.setdefault(op, found)
        for namespace in sorted(found.keys() | first.keys()):
            end, right = found.get(namespace, 0), first.get(namespace, 0)
            if end != right:
                self.fail(
                    f"replica {node} ({what}) gives the next message of {namespace} offset {end} after op {op}, another"
                    f" gave it {right}"
                )
        for reader, offset in partitions.offsets.items():
            if offset > partitions.end(reader[0]):
                self.fail(f"replica {node} ({what}) holds the offset {offset} of {reader} above the end, op {op}")
        stored = self.stored.get(op, partitions.offsets)
        for reader in sorted(partitions.offsets.keys() | stored.keys()):
            if partitions.offsets.get(reader) != stored.get(reader):
                self.fail(
                    f"replica {node} ({what}) holds the offset {partitions.offsets.get(reader)} of {reader} after op"
                    f" {op}, stored was {stored.get(reader)}"
                )

    def finish(self, final: FinalState) -> None:
        appends: dict[int, list[tuple[Answer, AppendMessages, Appended]]] = defaultdict(list)
        for answer in final.answers:
            try:
                operation = decode_operation(answer.body)
            except msgspec.DecodeError:
                continue
            if isinstance(operation, ReadOffset):
                self._check_read(answer, operation)
            elif isinstance(operation, AppendMessages):
                result = decode_result(answer.reply)
                if isinstance(result, Appended):
                    appends[operation.namespace].append((answer, operation, result))
                else:
                    self.fail(f"{_name(answer)} appended messages and was answered {result!r}")
        for namespace, found in sorted(appends.items()):
            self._check_rising(namespace, found)
            for _, operation, result in found:
                self._check_kept(namespace, operation, result, final)

    def _check_read(self, answer: Answer, operation: ReadOffset) -> None:
        stored, result = self.stored.get(answer.op), decode_result(answer.reply)
        reader = (operation.namespace, operation.group, operation.consumer)
        if stored is not None and result != Offset(stored.get(reader)):
            self.fail(f"{_name(answer)} was answered {result!r} at op {answer.op}, stored is {stored.get(reader)}")

    def _check_rising(self, namespace: int, found: list[tuple[Answer, AppendMessages, Appended]]) -> None:
        end = 0
        for answer, operation, result in sorted(found, key=lambda item: item[0].op):
            if result.offset < end or result.count != len(operation.messages):
                self.fail(
                    f"{_name(answer)} got offsets {result.offset}..{result.offset + result.count - 1} of namespace"
                    f" {namespace} at op {answer.op} for {len(operation.messages)} messages; {end} was the next"
                )
            end = max(end, result.offset + result.count)

    def _check_kept(self, namespace: int, operation: AppendMessages, result: Appended, final: FinalState) -> None:
        """Each of the messages can be read at a replica; of those that lie in two segments perhaps not all at one."""
        if not final.finished or self._reads(namespace, result.offset, operation.messages, final):
            return
        for offset, message in enumerate(operation.messages, result.offset):
            if not self._reads(namespace, offset, (message,), final):
                self.fail(f"no replica can read the messages at offset {offset} of {namespace}")

    def _reads(self, namespace: int, offset: int, messages: tuple[bytes, ...], final: FinalState) -> bool:
        """True if a replica can read all of them; none that can may have others there."""
        readable = False
        for replica in final.core:
            try:
                found = replica.state.state_machine.partitions.read(namespace, offset, len(messages))
            except SegmentLostError:
                continue  # a segment that went bad, and that nobody has asked for since
            readable = True
            if found != messages:
                self.fail(f"replica {replica.state.node} has other messages at offset {offset} of {namespace}")
        return readable


def _name(answer: Answer) -> str:
    return f"client {answer.client} request {answer.request}"
