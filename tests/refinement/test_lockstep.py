"""Hypothesis drives implementation and specification in lock-step; planted mistakes are found and shrink to few steps.

The rules are what clients, the network, disks and time can do, nothing more; none knows of any mistake.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.refinement.lockstep import DivergedError, Setup, World
from viewproof.impl.interface.checks import InvariantError
from viewproof.impl.interface.durable import ClientTableConfig
from viewproof.impl.sim.storage import StorageError
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX
from viewproof.refinement.verdict import AuditOptions

STEPS_MAX = 15
"""A planted mistake must shrink to fewer steps."""

CLUSTERS = (
    Setup(),
    Setup(table=ClientTableConfig(slots=1, sessions=True)),
    Setup(table=ClientTableConfig(slots=1, gaps=True)),
    Setup(clients=1, supports=(7, 7, 7), checkpoint_interval=2),
)
"""The paper's table; sessions and fewer slots than clients; gaps, too; features and checkpoints."""

indices = st.integers(0, 4)
nodes = st.integers(0, 2)


class Lockstep(RuleBasedStateMachine):
    """What can happen to a cluster of three."""

    clusters: tuple[Setup, ...] = CLUSTERS
    steps: tuple[str, ...] = ()
    """Of the run before: after a failure, those that hypothesis shrank it to."""

    @initialize(data=st.data())
    def begin(self, data: st.DataObject) -> None:
        self.taken: list[str] = []
        self.parted = False
        self.world = World(data.draw(st.sampled_from(self.clusters)))

    @rule(client=st.integers(0, 1), to=nodes)
    def request(self, client: int, to: int) -> None:
        """The next request of a client, or its outstanding one again."""
        self._do("request", client % len(self.world.clients), to)

    @precondition(lambda self: self.world.requests)
    @rule(number=indices, to=nodes)
    def repeat_request(self, number: int, to: int) -> None:
        self._do("repeat_request", number % len(self.world.requests), to)

    @precondition(lambda self: self.world.messages)
    @rule(number=indices)
    def deliver(self, number: int) -> None:
        self._do("deliver", number % len(self.world.messages))

    @precondition(lambda self: self.world.messages)
    @rule(number=indices)
    def repeat(self, number: int) -> None:
        self._do("repeat", number % len(self.world.messages))

    @precondition(lambda self: self.world.messages)
    @rule(number=indices)
    def deliver_all(self, number: int) -> None:
        self._do("deliver_all", self.world.messages[number % len(self.world.messages)][0])

    @precondition(lambda self: self.world.messages)
    @rule(number=indices)
    def drop(self, number: int) -> None:
        self._do("drop", number % len(self.world.messages))

    @precondition(lambda self: any(self.world.writes(node) for node in self.world.replicas))
    @rule(choice=nodes, number=indices)
    def finish(self, choice: int, number: int) -> None:
        node = self._writing(choice)
        self._do("finish", node, number % len(self.world.writes(node)))

    @precondition(lambda self: any(self.world.writes(node) for node in self.world.replicas))
    @rule(choice=nodes, number=indices)
    def fail(self, choice: int, number: int) -> None:
        node = self._writing(choice)
        self._do("fail", node, number % len(self.world.writes(node)))

    @precondition(lambda self: any(self.world.writes(node) for node in self.world.replicas))
    @rule(choice=nodes)
    def finish_all(self, choice: int) -> None:
        self._do("finish_all", self._writing(choice))

    @precondition(lambda self: self.world.replicas)
    @rule(choice=nodes)
    def wait(self, choice: int) -> None:
        self._do("wait", self._up(choice))

    @precondition(lambda self: 2 * len(self.world.replicas) > self.world.setup.replicas + 1)
    @rule(choice=nodes, torn=indices)
    def crash(self, choice: int, torn: int) -> None:
        """A majority stays up, or hardly anything happens afterwards."""
        self._do("crash", self._up(choice), torn)

    @precondition(lambda self: len(self.world.replicas) < self.world.setup.replicas)
    @rule(choice=nodes)
    def restart(self, choice: int) -> None:
        down = [node for node in range(self.world.setup.replicas) if node not in self.world.replicas]
        self._do("restart", down[choice % len(down)])

    @rule()
    def calm(self) -> None:
        self._do("calm")

    def teardown(self) -> None:
        """The audit of the whole trace, in the order of the clocks, agrees."""
        if not hasattr(self, "world"):
            return
        Lockstep.steps = tuple(self.taken)
        if self.parted:
            return
        rows = sorted(
            self.world.follower.rows, key=lambda row: tuple(row[INDEX[name]] for name in ("clock", "node", "seq"))
        )
        verdict = check_run("lockstep", rows, AuditOptions())
        assert verdict.verdict == "conforms", (verdict.violations, verdict.missing)

    def _up(self, choice: int) -> int:
        up = sorted(self.world.replicas)
        return up[choice % len(up)]

    def _writing(self, choice: int) -> int:
        writing = [node for node in sorted(self.world.replicas) if self.world.writes(node)]
        return writing[choice % len(writing)]

    def _do(self, name: str, *arguments: int) -> None:
        self.taken.append(f"{name}{arguments}")
        try:
            getattr(self.world, name)(*arguments)
            self.world.follower.check()
        except (DivergedError, InvariantError, StorageError):
            self.parted = True
            raise


def drive(clusters: tuple[Setup, ...], examples: int, steps: int, **options: Any) -> type[Lockstep]:
    """Run the machine; returns its class, whose `steps` are those of the last run."""
    machine = type("Lockstep", (Lockstep,), {"clusters": clusters})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            derandomize=True,
            deadline=None,
            database=None,
            report_multiple_bugs=False,
            suppress_health_check=list(HealthCheck),
            phases=(Phase.generate, Phase.shrink),
            **options,
        ),
    )
    return machine


def test_implementation_and_specification_stay_together() -> None:
    drive(CLUSTERS, examples=50, steps=30)


@pytest.mark.long
def test_implementation_and_specification_stay_together_for_long() -> None:
    for cluster in CLUSTERS:
        drive((cluster,), examples=1500, steps=60)


PAPER, SESSIONS, GAPS, FEATURES = CLUSTERS

QUICK = {
    "commit.apply_at_replicate": PAPER,
    "commit.sequencer_before_append": PAPER,
    "control.applied_on_leader_only": FEATURES,
}
"""Mistake → a cluster in which it can be made; found in a few hundred runs."""

RARE = {
    "commit.false_ack_after_start_view": PAPER,
    "table.reply_from_current_view": SESSIONS,
    "table.replayed_register": SESSIONS,
    "control.no_offset_advance": FEATURES,
    "commit.out_of_order": PAPER,
    "view.log_view_at_merge": PAPER,
    "view.blind_start_view_head": PAPER,
    "boot.view_from_last_prepare": PAPER,
    "boot.all_zero": PAPER,
    "boot.replays_uncommitted": PAPER,
    "table.evict_by_commit_max": SESSIONS,
    "table.evict_forgets": SESSIONS,
}
"""The same, of mistakes that may take longer to find."""


def find(fault: str, cluster: Setup, examples: int) -> None:
    """The mistake is found, and the steps that hypothesis shrinks it to are few."""
    with pytest.raises((DivergedError, InvariantError, StorageError)):
        drive((replace(cluster, faults=frozenset({fault})),), examples=examples, steps=20)
    assert 0 < len(Lockstep.steps) < STEPS_MAX, Lockstep.steps


@pytest.mark.parametrize("fault", QUICK)
def test_a_planted_mistake_is_found_and_shrinks_to_few_steps(fault: str) -> None:
    find(fault, QUICK[fault], examples=400)


@pytest.mark.long
@pytest.mark.parametrize("fault", RARE)
def test_a_rarer_mistake_is_found_and_shrinks_to_few_steps(fault: str) -> None:
    find(fault, RARE[fault], examples=4000)
