"""Offsets of messages are unique and rising, and what a client was told of lies at its offset at the end (I15).

A replica that boots, or installs a snapshot, has the ends and the stored offsets that go with its commit_min.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from impl.partitions import Appended, AppendMessages, Reader
from impl.replica import Replica
from impl.sim.checkers.base import Checker, FinalState
from impl.sim.clients import Answer
from impl.state_machine import decode_operation, decode_result
from impl.trace import TraceEvent

Ends = dict[int, int]


class OffsetsChecker(Checker):
    """Judges the answers to appends, per namespace, from outside, and the partitions in memory.

    `ends` and `stored` hold, by op, what the first replica had that executed it: ends of partitions, stored offsets.
    """

    name = "offsets"
    events = frozenset({"restart", "on_start_view"})

    def __init__(self) -> None:
        super().__init__()
        self.ends: dict[int, Ends] = {}
        self.stored: dict[int, dict[Reader, int]] = {}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        if replica.state_machine.partitions.logs:
            self._compare(node, replica, "executed")

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        if replica.commit_min in self.ends:
            self._compare(node, replica, event.event)

    def _compare(self, node: int, replica: Replica, what: str) -> None:
        partitions, op = replica.state_machine.partitions, replica.commit_min
        found = {namespace: log.end for namespace, log in partitions.logs.items() if log.end}
        first = self.ends.setdefault(op, found)
        for namespace in sorted(found.keys() | first.keys()):
            end, right = found.get(namespace, 0), first.get(namespace, 0)
            if end != right:
                self.fail(
                    f"replica {node} ({what}) gives the next message of {namespace} offset {end} after op {op}, another"
                    f" gave it {right}"
                )
        stored = self.stored.setdefault(op, dict(partitions.offsets))
        for reader, offset in partitions.offsets.items():
            if offset > partitions.end(reader[0]):
                self.fail(f"replica {node} ({what}) holds the offset {offset} of {reader} above the end, op {op}")
            if offset != stored.get(reader):
                self.fail(
                    f"replica {node} ({what}) holds the offset {offset} of {reader} after op {op}, another held"
                    f" {stored.get(reader)}"
                )

    def finish(self, final: FinalState) -> None:
        appends: dict[int, list[tuple[Answer, AppendMessages, Appended]]] = defaultdict(list)
        for answer in final.answers:
            try:
                operation = decode_operation(answer.body)
            except msgspec.DecodeError:
                continue
            if isinstance(operation, AppendMessages):
                result = decode_result(answer.reply)
                if isinstance(result, Appended):
                    appends[operation.namespace].append((answer, operation, result))
                else:
                    self.fail(f"{_name(answer)} appended messages and was answered {result!r}")
        for namespace, found in sorted(appends.items()):
            self._check_rising(namespace, found)
            for _, operation, result in found:
                self._check_kept(namespace, operation, result, final)

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
        if not final.finished:
            return
        for replica in final.core:
            found = replica.state_machine.partitions.read(namespace, result.offset, result.count)
            if found != operation.messages:
                self.fail(f"replica {replica.node} has other messages at offset {result.offset} of {namespace}")


def _name(answer: Answer) -> str:
    return f"client {answer.client} request {answer.request}"
