"""Replies are right: the same bytes whoever sends them, what the canonical chain gives, in an order of real time."""

from __future__ import annotations

from viewproof.impl.interface.messages import Eviction, Prepare, Reply, register_result
from viewproof.impl.machine.state_machine import StateMachine
from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker, FinalState
from viewproof.impl.sim.clients import Answer


class RepliesChecker(Checker):
    """Every reply sent, and linearizability along the canonical chain, which is one order of all operations.

    A reply is that of its op, stamped as its prepare says; an op called after another was answered comes later. Without
    sessions in a table with slots a request of an evicted client may have two ops, and a reply for each.
    """

    name = "replies"

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[tuple[int, int, int, int], tuple[int, Reply]] = {}
        self.forgets = False

    def on_boot(self, node: int, replica: Replica) -> None:
        self.forgets = replica.state.clients.slots > 0 and not replica.state.clients.sessions

    def on_answer(self, node: int, message: Reply | Eviction) -> None:
        if isinstance(message, Eviction):
            return
        request = (message.client, message.session, message.request, message.op if self.forgets else 0)
        first, reply = self.sent.setdefault(request, (node, message))
        if reply_fields(reply) != reply_fields(message):
            name = f"client {request[0]} session {request[1]} request {request[2]}"
            self.fail(f"{name}: replica {node} replied {message}, before replica {first} {reply}")

    def finish(self, final: FinalState) -> None:
        results = self._replay(final)
        for _, reply in self.sent.values():
            self._check_sent(reply, final.chain.get(reply.op), results.get(reply.op))
        for answer in final.answers:
            self._check_answer(answer, final.chain.get(answer.op), results.get(answer.op))
        self._check_real_time(final)

    def _check_sent(self, reply: Reply, prepare: Prepare | None, result: bytes | None) -> None:
        name = f"client {reply.client} session {reply.session} request {reply.request}"
        if prepare is None:
            self.fail(f"{name} was replied to at op {reply.op}, which nobody executed")
            return
        header = prepare.header
        session = header.session if header.request else header.op
        expected = (header.client, session, header.request, header.op, result, header.view)
        if reply_fields(reply)[:6] != expected:
            self.fail(f"{name}: the reply is {reply}, its prepare gives {expected}")

    def _check_answer(self, answer: Answer, prepare: Prepare | None, result: bytes | None) -> None:
        name = f"client {answer.client} request {answer.request}"
        if prepare is None or result is None:
            self.fail(f"{name} was answered at op {answer.op}, which nobody executed")
            return
        header = prepare.header
        if (header.client, header.session, header.request) != (answer.client, answer.session, answer.request):
            self.fail(f"{name} was answered at op {answer.op}, which is another request")
        elif prepare.body != answer.body:
            self.fail(f"{name}: the entry's body is not what the client sent")
        elif result != answer.reply:
            self.fail(f"{name}: reply {answer.reply!r}, the chain gives {result!r}")

    def _replay(self, final: FinalState) -> dict[int, bytes]:
        machine = StateMachine()
        results: dict[int, bytes] = {}
        op = 1
        while (prepare := final.chain.get(op)) is not None:
            header = prepare.header
            if header.request:
                results[op] = machine.apply(prepare.body)
            elif header.client:
                results[op] = register_result(header.incarnation)
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


def reply_fields(reply: Reply) -> tuple[int, int, int, int, bytes, int, int]:
    """A reply without the clock of its sending."""
    return (reply.client, reply.session, reply.request, reply.op, reply.body, reply.view, reply.replica)
