"""Configuration of a replica: limits and timeouts, all in ticks or counts."""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.groups.plane import Plane
from viewproof.impl.interface.durable import ConfigurationError, Quorums, validate_quorums
from viewproof.impl.machine.partition_log import HEAD_BYTES, RECORD_BYTES, SEGMENT_BYTES

_MAY_BE_ZERO = frozenset({"supports", "checkpoint_interval", "nonce", "scrub_bytes_per_tick"})


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """What the host chooses. Durations are in ticks of `Replica.on_tick` (the host says how long a tick is).

    `pipeline_max`: entries prepared and not committed; `request_queue_max`: requests that wait for the pipeline;
    `append_prepares_max`: entries in one journal write; `request_prepare_max`: entries asked for in one message.
    `run` is the run id written to trace events; without `traced` no event is made (its number is used up all the same).
    `supports`: features this member supports (bit f-1 is feature f); `checkpoint_interval`: ops between checkpoints,
    0: none. `plane`: which operations the state machine takes; the same on every replica of a group, for ever.
    `namespace`: the only partition that the group is of, None: of all.
    `journal_slots`: how far the log may rise above the checkpoint; `ring`: a journal that was damaged is repaired from
    the others, and the trace says so, the same on every replica; `snapshot_chunk_bytes`: a snapshot travels in chunks
    of at most so many bytes; `write_retry_ticks`: a write that failed is asked for again after so long.
    `nonce`: a number that no process of this replica had before, 0: none; it tells a start_view that answers this one.
    `abdicate_timeout_ticks`: a primary without progress, or without answers from a quorum, steps down; one of view 0
    that was never answered waits for `first_answer_timeout_ticks`, as its peers may not be up yet. It hands over once
    its last `slow_appends` appends ended `slow_append_ticks` or more after the others' (`impl.replica.pace`).
    `segment_bytes`: the size at which segments of messages roll; the same on every replica of a group, for ever.
    `scrub_bytes_per_tick`: so much of the segments on the disk is read to see if it is right, 0: nothing; a pass over
    all of them begins at least `scrub_pass_ticks_min` after the one before.
    """

    run: str = "run"
    traced: bool = True
    supports: int = 0
    plane: Plane = Plane.SINGLE
    namespace: int | None = None
    checkpoint_interval: int = 0
    pipeline_max: int = 32
    request_queue_max: int = 64
    append_prepares_max: int = 64
    request_prepare_max: int = 32
    prepare_buffer_max: int = 64
    journal_slots: int = 1 << 17
    ring: bool = False
    nonce: int = 0
    snapshot_chunk_bytes: int = 1 << 18
    segment_bytes: int = SEGMENT_BYTES
    write_retry_ticks: int = 30
    commit_timeout_ticks: int = 10
    prepare_timeout_ticks: int = 12
    repair_timeout_ticks: int = 6
    resend_timeout_ticks: int = 10
    normal_timeout_ticks: int = 50
    view_change_timeout_ticks: int = 60
    backoff_ticks: int = 15
    backoff_steps_max: int = 8
    jitter_ticks: int = 20
    abdicate_timeout_ticks: int = 150
    first_answer_timeout_ticks: int = 1500
    slow_append_ticks: int = 2
    slow_appends: int = 16
    scrub_bytes_per_tick: int = 0
    scrub_pass_ticks_min: int = 60_000

    def __post_init__(self) -> None:
        """Raises `ConfigurationError` for a number below its least, and for numbers that contradict each other."""
        for name in self.__slots__:
            value = getattr(self, name)
            least = 0 if name in _MAY_BE_ZERO else 1
            if isinstance(value, int) and not isinstance(value, bool) and value < least:
                raise ConfigurationError(f"{name} must be at least {least}, got {value}")
        smallest, largest = HEAD_BYTES + RECORD_BYTES, (1 << 32) - 1
        if not smallest <= self.segment_bytes <= largest:
            raise ConfigurationError(f"segment_bytes must be in {smallest}..{largest}, got {self.segment_bytes}")
        if self.checkpoint_interval + self.pipeline_max > self.journal_slots:
            raise ConfigurationError(
                f"journal_slots {self.journal_slots} must hold checkpoint_interval {self.checkpoint_interval} and"
                f" pipeline_max {self.pipeline_max}"
            )

    @property
    def shows_partitions(self) -> bool:
        """True if the trace shows what each executed operation asked of a partition."""
        return self.plane is not Plane.METADATA


def configured_quorums(quorums: Quorums, replica_count: int) -> Quorums:
    """The quorums a replica uses: those configured. Raises `ConfigurationError` if they need not intersect."""
    validate_quorums(quorums, replica_count)
    return quorums
