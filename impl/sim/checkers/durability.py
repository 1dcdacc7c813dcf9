"""No acknowledged write is lost: every op a client got a reply for is in the log of every replica at the end (I2)."""

from __future__ import annotations

from viewproof.impl.sim.checkers.base import Checker, FinalState


class DurabilityChecker(Checker):
    """Compares replied ops with the final logs; a core that never got level is the liveness checker's matter.

    What lies below a log is in its snapshot, whose entry the agreement checker compares.
    """

    name = "durability"

    def finish(self, final: FinalState) -> None:
        for answer in final.answers:
            for replica in final.core:
                if not final.finished and answer.op > replica.state.op:
                    continue
                if answer.op <= replica.state.log.base:
                    continue
                entry = replica.state.log.get(answer.op)
                header = None if entry is None else entry.header
                if header is None:
                    self.fail(f"replica {replica.state.node} has no op {answer.op}, replied to client {answer.client}")
                elif (header.client, header.request) != (answer.client, answer.request):
                    self.fail(
                        f"replica {replica.state.node} has request ({header.client}, {header.request}) at op"
                        f" {answer.op}, replied to as ({answer.client}, {answer.request})"
                    )
