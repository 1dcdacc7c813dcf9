"""What every checker of the simulator has in common."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.interface.messages import Eviction, Message, Prepare, Reply
from viewproof.impl.replica import Replica
from viewproof.impl.sim.clients import Answer
from viewproof.impl.trace.events import TraceEvent


@dataclass(frozen=True, slots=True)
class Failure:
    """A checker (by name) found that a run is wrong."""

    checker: str
    message: str

    def __str__(self) -> str:
        return f"{self.checker}: {self.message}"


@dataclass(frozen=True, slots=True)
class FinalState:
    """The cluster at the end of the liveness phase.

    `core`: the replicas that are up; `chain`: the entry first executed at each op; `finished`: every request answered
    and every core replica level; `unanswered`: (client, request) still outstanding; `fenced_wrongly`: clients that were
    told of a newer instance that they never had; `rotten`: core replicas that look for rot, and still have some.
    """

    core: tuple[Replica, ...]
    chain: dict[int, Prepare]
    answers: tuple[Answer, ...]
    finished: bool
    unanswered: tuple[tuple[int, int], ...]
    tick: int
    fenced_wrongly: tuple[str, ...] = ()
    rotten: tuple[int, ...] = ()


class Checker:
    """Sees the run through hooks; collects failures (the first few)."""

    name = "checker"
    events: frozenset[str] = frozenset()
    failures_max = 5

    def __init__(self) -> None:
        self.failures: list[Failure] = []

    def fail(self, message: str) -> None:
        """Records a failure."""
        if len(self.failures) < self.failures_max:
            self.failures.append(Failure(self.name, message))

    def on_boot(self, node: int, replica: Replica) -> None:
        """A replica has booted."""

    def on_send(self, node: int, message: Message, durable_view: int) -> None:
        """A replica sends a message while its disk holds `durable_view`."""

    def on_execute(self, node: int, replica: Replica, event: TraceEvent) -> None:
        """A replica executed an op: its event `execute`."""

    def on_event(self, node: int, replica: Replica, event: TraceEvent) -> None:
        """A replica emitted one of `events`."""

    def on_answer(self, node: int, message: Reply | Eviction) -> None:
        """A replica sends a client a reply, or the news that its session is gone."""

    def finish(self, final: FinalState) -> None:
        """The run is over."""
