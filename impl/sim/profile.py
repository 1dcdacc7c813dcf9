"""What a simulated run is like: how network, storage and processes misbehave, in ticks and probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random


@dataclass(frozen=True, slots=True)
class SimProfile:
    """Probabilities are per message or per write; intervals are mean ticks between faults (0: never).

    Delays are ticks. A message takes `delay_ticks_min` plus an exponential time of mean `delay_ticks_mean`, which also
    reorders. Clogging holds a path for a while; a partition cuts paths, in both directions or in one.
    """

    loss: float = 0.05
    repeat: float = 0.03
    delay_ticks_min: int = 1
    delay_ticks_mean: float = 1.5
    clog_interval_ticks: int = 400
    clog_ticks_mean: int = 30
    partition_interval_ticks: int = 500
    partition_ticks_mean: int = 120
    partition_one_way: float = 0.4
    append_ticks_max: int = 3
    superblock_ticks_max: int = 4
    slow_write: float = 0.02
    slow_write_ticks_max: int = 40
    crash_interval_ticks: int = 300
    restart_ticks_mean: int = 80
    crash_primary: float = 0.4
    crash_all: float = 0.05
    crash_in_write: float = 0.01
    safety_ticks_max: int = 6_000
    liveness_ticks_max: int = 12_000
    client_timeout_ticks: int = 25

    def without_faults(self) -> SimProfile:
        """A perfect network and storage that is only as slow as usual: the liveness phase."""
        return SimProfile(
            loss=0.0,
            repeat=0.0,
            delay_ticks_min=self.delay_ticks_min,
            delay_ticks_mean=min(self.delay_ticks_mean, 2.0),
            clog_interval_ticks=0,
            partition_interval_ticks=0,
            append_ticks_max=self.append_ticks_max,
            superblock_ticks_max=self.superblock_ticks_max,
            slow_write=0.0,
            crash_interval_ticks=0,
            crash_in_write=0.0,
            safety_ticks_max=self.safety_ticks_max,
            liveness_ticks_max=self.liveness_ticks_max,
            client_timeout_ticks=self.client_timeout_ticks,
        )


def profile_draw(random: Random) -> SimProfile:
    """A profile drawn at random, so that seeds differ in kind: some calm, some with a few faults, some with all."""

    def sometimes(value: int) -> int:
        return value if random.random() < 0.7 else 0

    return SimProfile(
        loss=random.choice((0.0, 0.01, 0.05, 0.1, 0.2)),
        repeat=random.choice((0.0, 0.02, 0.1, 0.3)),
        delay_ticks_min=1,
        delay_ticks_mean=random.choice((0.3, 1.0, 2.0, 4.0)),
        clog_interval_ticks=sometimes(random.randint(100, 600)),
        clog_ticks_mean=random.randint(10, 60),
        partition_interval_ticks=sometimes(random.randint(150, 700)),
        partition_ticks_mean=random.randint(40, 250),
        append_ticks_max=random.choice((1, 2, 4)),
        superblock_ticks_max=random.choice((1, 3, 6)),
        slow_write=random.choice((0.0, 0.02, 0.1)),
        crash_interval_ticks=sometimes(random.randint(80, 500)),
        restart_ticks_mean=random.choice((5, 40, 120)),
        crash_all=random.choice((0.0, 0.05, 0.2)),
        crash_in_write=random.choice((0.0, 0.02, 0.1)),
    )
