"""Along the shipped logs: what replicas executed is a state of the core in which the catalogue's invariants hold."""

from __future__ import annotations

from collections.abc import Iterator

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
"""How many states of a log are looked at, the last one included."""


def states(name: str) -> Iterator[tuple[Spec, State]]:
    """States of the core that a log's are."""
    bench = Bench(shipped(name), AuditOptions("core", (ACKS, SOLO)))
    judge = Judge(bench.segment, bench.cluster, bench.options)
    family = JUNE_STATES if bench.cluster.family is JUNE else JULY
    for part in range(STATES):
        begin, end = (len(bench.lines) * at // STATES for at in (part, part + 1))
        assert judge.feed(bench.lines[begin:end])
        replay = judge.whole.program.replay
        yield core_of(replay.layout.to_state(judge.whole.store), family, bench.cluster.nodes)


def broken(spec: Spec, state: State) -> set[str]:
    """The invariants that do not hold."""
    return {one.id for one in spec.invariants if one.id in HELD and not holds(spec, one, state)}


def check_log(name: str) -> None:
    """All of them hold in every state, and something was executed."""
    executed = 0
    for spec, state in states(name):
        assert broken(spec, state) == set()
        executed = len(state.tables.get("executed", {}))
    assert executed > 20


@pytest.mark.parametrize("name", [CONFORMING[0], CONFORMING[1]])
def test_executed_logs_are_logs_of_the_core(name: str) -> None:
    check_log(name)


@pytest.mark.long
@pytest.mark.parametrize("name", [*REJECTED, *CONFORMING])
def test_executed_logs_of_all_logs_are_logs_of_the_core(name: str) -> None:
    check_log(name)


def test_each_invariant_can_be_broken() -> None:
    *_, (spec, state) = states(CONFORMING[1])
    r, o = max(state.tables["executed"])
    own, other = ((state.tables["first_executed"][at,] - 1, at) for at in (o, 5))
    started = max(v for (v,) in state.tables["sv"])
    changes: dict[str, list[tuple[str, tuple[int, ...], int]]] = {
        "I1": [("executed", (r, o), state.tables["executed"][r, o] + 1)],
        "I2": [("sv_op", (started,), 1)],
        "I5": [("commit_max", (r,), 0)],
        "I8": [(name, own, state.tables[name][other]) for name in ("prepare_client", "prepare_request")],
        "I10": [("entry", (r, o), 0)],
    }
    assert changes.keys() == set(HELD)
    for id, cells in changes.items():
        tables = {key: dict(table) for key, table in state.tables.items()}
        for name, index, value in cells:
            tables[name][index] = value
        assert id in broken(spec, State(tables)), id
