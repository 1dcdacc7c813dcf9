"""Offsets of messages are unique and rising, and what a client was told of lies at its offset at the end (I15)."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from impl.partitions import Appended, AppendMessages
from impl.sim.checkers.base import Checker, FinalState
from impl.sim.clients import Answer
from impl.state_machine import decode_operation, decode_result


class OffsetsChecker(Checker):
    """Judges the answers to appends, per namespace, from outside; then the partitions in memory."""

    name = "offsets"

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
