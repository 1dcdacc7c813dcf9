"""Equal commit_min means equal features, enabled at the same ops, equal database checksums, and equal state (I14).

Compared from memory, as bytes, whether executed or taken from a snapshot. At the end they are also computed anew from
the canonical chain, so that a mistake that all replicas make alike is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b

import msgspec

from viewproof.impl.interface.messages import Prepare
from viewproof.impl.machine.state_machine import StateMachine
from viewproof.impl.replica import Replica
from viewproof.impl.sim.checkers.base import Checker, FinalState
from viewproof.impl.trace.events import TraceEvent

STATE_INTERVAL = 16
"""Ops between two comparisons of the whole state while a run goes on."""


class FeaturesChecker(Checker):
    """Compares with the first replica seen at the same commit_min."""

    name = "features"
    events = frozenset({"restart", "on_start_view"})

    def __init__(self) -> None:
        super().__init__()
        self.masks: dict[int | None, tuple[int | None, int]] = {}
        self.features: dict[int, tuple[bytes, int]] = {}
        self.states: dict[int, tuple[bytes, int]] = {}

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        mask, first = self.masks.setdefault(event.commit_min, (event.features, node))
        if mask != event.features:
            at = event.commit_min
            self.fail(f"replica {node} has features {event.features} at commit_min {at}, replica {first} had {mask}")
        self._compare(node, replica)

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        self._compare(node, replica)

    def _compare(self, node: int, replica: Replica, *, whole: bool = False) -> None:
        at = replica.state.commit_min
        features, first = self.features.setdefault(at, (replica.state.enabled.to_bytes(), node))
        if features != replica.state.enabled.to_bytes():
            self.fail(f"replica {node} has other features at commit_min {at} than replica {first} had")
        if not whole and at % STATE_INTERVAL:
            return
        state = blake2b(replica.state.state_machine.to_bytes(), digest_size=16).digest()
        known, first = self.states.setdefault(at, (state, node))
        if known != state:
            self.fail(f"replica {node} has another state at commit_min {at} than replica {first} had")

    def finish(self, final: FinalState) -> None:
        for replica in final.core:
            self._compare(replica.state.node, replica, whole=True)
        expected = expected_features(final.chain)
        for at, (found, node) in sorted(self.features.items()):
            if at in expected and found != expected[at]:
                given, right = map(msgspec.msgpack.decode, (found, expected[at]))
                self.fail(
                    f"replica {node} has features and checksum {given} at commit_min {at}, the chain gives {right}"
                )
                return


def expected_features(chain: Mapping[int, Prepare]) -> dict[int, bytes]:
    """Enabled features with their ops, and the database checksum, after each op of a chain, as a snapshot has them.

    The checksum runs over every entry from the one on that enables feature 1: its checksum, its op, the state after it.
    """
    machine, ops, checksum = StateMachine(), dict[int, int](), ""
    expected: dict[int, bytes] = {}
    op = 1
    while (prepare := chain.get(op)) is not None:
        header = prepare.header
        if header.request:
            machine.apply(prepare.body)
        if header.feature:
            ops.setdefault(header.feature, op)
        if 1 in ops:
            links = [("entry", header.checksum), ("op", op), ("state", f"{machine.digest:032x}")]
            data = bytes.fromhex(checksum) + msgspec.msgpack.encode(links)
            checksum = blake2b(data, digest_size=16, person=b"database").hexdigest()
        expected[op] = msgspec.msgpack.encode((sorted(ops.items()), checksum))
        op += 1
    return expected
