"""Along the shipped logs: what replicas hold and said is a state of the core in which the invariants hold."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import pytest

from tests.refinement.tigerbeetle.corruptions import Bench, Judge
from tests.refinement.tigerbeetle.logs import ACKS, CONFORMING, REJECTED, SOLO, shipped
from viewproof.refinement.tigerbeetle.profile import JUNE
from viewproof.refinement.verdict import AuditOptions
from viewproof.spec.engines.interp import holds
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.vsr.tigerbeetle.abstraction import HELD, JULY, core_of
from viewproof.spec.vsr.tigerbeetle.abstraction import JUNE as JUNE_STATES

STATES = 8
"""How many states of a log are looked at in the ordinary suite, the last one included."""
PASSING = frozenset({"I1", "I5", "I6", "I9"})
"""Those that a later state may hide. The others speak of what was executed, acknowledged and sent, which stays."""
FINE, COARSE = 200, 20
"""How many states of each log are looked at in the long suite, for those and for all."""


def states(name: str, parts: int) -> Iterator[tuple[Spec, State, State]]:
    """States of the core that a log's are, each with the one before it, and between steps."""
    bench = Bench(shipped(name), AuditOptions("core", (ACKS, SOLO)))
    cluster = bench.cluster
    judge = Judge(bench.segment, cluster, bench.options)
    family = JUNE_STATES if cluster.family is JUNE else JULY
    before: State | None = None
    end = 0
    for part in range(parts):
        begin, end = end, max(end, len(bench.lines) * (part + 1) // parts)
        assert judge.feed(bench.lines[begin:end])
        while any(judge.whole.state.due) and end < len(bench.lines):
            assert judge.feed(bench.lines[end : end + 1])
            end += 1
        replay = judge.whole.program.replay
        now = replay.layout.to_state(judge.whole.store)
        spec, state = core_of(now, family, cluster.nodes, cluster.replicas, cluster.quorum_replication)
        yield spec, before or state, state
        before = state


def broken(spec: Spec, state: State, before: State | None = None, ids: Collection[str] = HELD) -> set[str]:
    """The invariants that do not hold."""
    return {one.id for one in spec.invariants if one.id in ids and not holds(spec, one, before or state, state)}


def check_log(name: str, parts: int, every: int) -> None:
    """Those that pass hold in every state, all of them in every so many; and something was executed."""
    executed = 0
    for part, (spec, before, state) in enumerate(states(name, parts)):
        assert broken(spec, state, before, HELD if (part + 1) % every == 0 else PASSING) == set(), part
        executed = len(state.tables.get("executed", {}))
    assert executed > 20


@pytest.mark.parametrize("name", [CONFORMING[0], CONFORMING[1]])
def test_logs_are_logs_of_the_core(name: str) -> None:
    check_log(name, STATES, 1)


@pytest.mark.long
@pytest.mark.parametrize("name", [*REJECTED, *CONFORMING])
def test_all_logs_are_logs_of_the_core_from_end_to_end(name: str) -> None:
    check_log(name, FINE, FINE // COARSE)


def test_each_invariant_can_be_broken() -> None:
    *_, (spec, _, state) = states(CONFORMING[1], STATES)
    r, o = max(state.tables["executed"])
    own, other = ((state.tables["first_executed"][at,] - 1, at) for at in (o, 5))
    started = max(v for (v,) in state.tables["sv"])
    changes: dict[str, list[tuple[str, tuple[int, ...], int]]] = {
        "I1": [("executed", (r, o), state.tables["executed"][r, o] + 1)],
        "I2": [("sv_op", (started,), 1)],
        "I3": [("written", cell[1:], 0) for cell in state.tables["ack"]],
        "I5": [("commit_max", (r,), 0)],
        "I6": [("durable_view", (r,), 0)],
        "I8": [(name, own, state.tables[name][other]) for name in ("prepare_client", "prepare_request")],
        "I9": [("table", max(state.tables["table"]), 1)],
        "I12": [("dvc_op", max(state.tables["dvc"]), 0)],
        "I10": [("entry", (r, o), 0)],
    }
    assert changes.keys() == set(HELD)
    for id, cells in changes.items():
        tables = {key: dict(table) for key, table in state.tables.items()}
        for name, index, value in cells:
            tables[name][index] = value
        assert id in broken(spec, State(tables)), id
