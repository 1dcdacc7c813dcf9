"""Replies are right: each equals what replaying the canonical chain gives, in an order that respects real time."""

from __future__ import annotations

from impl.sim.checkers.base import Checker, FinalState
from impl.state_machine import StateMachine


class RepliesChecker(Checker):
    """Linearizability along the canonical chain, which is one order of all operations.

    Each reply is that of its op, and an op called after another was answered comes later in the chain.
    """

    name = "replies"

    def finish(self, final: FinalState) -> None:
        results = self._replay(final)
        for answer in final.answers:
            prepare = final.chain.get(answer.op)
            name = f"client {answer.client} request {answer.request}"
            if prepare is None or answer.op not in results:
                self.fail(f"{name} was answered at op {answer.op}, which nobody executed")
            elif (prepare.header.client, prepare.header.request) != (answer.client, answer.request):
                self.fail(f"{name} was answered at op {answer.op}, which is another request")
            elif prepare.body != answer.body:
                self.fail(f"{name}: the entry's body is not what the client sent")
            elif results[answer.op] != answer.reply:
                self.fail(f"{name}: reply {answer.reply!r}, the chain gives {results[answer.op]!r}")
        self._check_real_time(final)

    def _replay(self, final: FinalState) -> dict[int, bytes]:
        machine = StateMachine()
        results: dict[int, bytes] = {}
        op = 1
        while (prepare := final.chain.get(op)) is not None:
            results[op] = machine.apply(prepare.body)
            op += 1
        return results

    def _check_real_time(self, final: FinalState) -> None:
        returned = sorted(final.answers, key=lambda answer: answer.returned)
        called = sorted(final.answers, key=lambda answer: answer.called)
        position = 0
        newest_op = 0
        for answer in called:
            while position < len(returned) and returned[position].returned < answer.called:
                newest_op = max(newest_op, returned[position].op)
                position += 1
            if answer.op <= newest_op:
                self.fail(
                    f"client {answer.client} request {answer.request} was executed at op {answer.op},"
                    f" but called after op {newest_op} was answered"
                )
