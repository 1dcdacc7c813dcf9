"""Who judges what: work dealt to tasks so that none has much more of it than the others, and why it can be no better.

A run is judged by one task, so the largest is the least that some task has.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from viewproof.refinement.judging import STREAM_BYTES

Item = TypeVar("Item")

_LARGE_SHARE = 8
"""A run of more than this part of a task's share is placed by its size, a smaller one by its name."""


def dealt(items: Iterable[Item], hands: int, size: Callable[[Item], int]) -> list[list[Item]]:
    """The items dealt to so many hands by size, the largest first, to the hand that has least; none is empty."""
    ordered = sorted(items, key=lambda item: -size(item))
    least = [(0, hand) for hand in range(min(hands, len(ordered)))]
    found: list[list[Item]] = [[] for _ in least]
    for item in ordered:
        load, hand = heapq.heappop(least)
        found[hand].append(item)
        heapq.heappush(least, (load + max(1, size(item)), hand))
    return sorted(found, key=lambda some: -sum(map(size, some)))


def why(sizes: Sequence[int], hands: Sequence[int], unit: str) -> str:
    """How even it is, in words: `sizes` of the runs (or directories), and what each task has of them."""
    total, most, largest = sum(sizes), max(hands, default=0), max(sizes, default=0)
    text = f"{len(hands)} tasks with at most {amount(most, unit)} of {amount(total, unit)} each"
    if len(hands) > 1 and largest > total / len(hands) * 1.5:
        share = 100 * largest / total
        text += f": one is {share:.0f}% of all, and a run is judged by one task"
    return text


@dataclass(frozen=True)
class Cores:
    """The cores that a task may use: those of a session on this machine, and those of `spark.task.cpus`."""

    here: int
    of_a_task: int

    def threads(self, size: int, total: int) -> int:
        """How many threads judge a run of so many bytes of all: as its share is here, those of a task elsewhere."""
        share = round(self.here * size / max(1, total)) if size > STREAM_BYTES else 1
        return max(1, self.of_a_task, min(self.here, share))


def cores_of(spark: SparkSession) -> Cores:
    """The cores of a session's tasks."""
    found = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", str(spark.conf.get("spark.master", "")))
    here = 0
    if found:
        here = (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)
    return Cores(here, int(spark.conf.get("spark.task.cpus", "1") or 1))


def ahead(largest: int, total: int, cores: Cores) -> str:
    """What is said of the largest run: how many threads its task has to read it ahead, and how it may have more."""
    threads = cores.threads(largest, total)
    if threads > 1:
        return f"; the task of the largest reads it ahead with {threads} threads"
    if not cores.here and largest > STREAM_BYTES and largest * 2 > total:
        return "; with --conf spark.task.cpus=N it is read ahead with N threads"
    return ""


def amount(number: int, unit: str) -> str:
    """A number of bytes or events, as a reader takes it in."""
    if unit != "bytes":
        return f"{number:,} {unit}"
    for name, above in (("GB", 30), ("MB", 20), ("kB", 10)):
        if number >= 1 << above:
            return f"{number / (1 << above):.1f} {name}"
    return f"{number} bytes"


class Plan:
    """How the runs of a DataFrame are dealt to tasks: `str` of it says how many, how even and why."""

    def __init__(
        self, tasks: int, runs: int, events: int, placed: dict[str, int], loads: tuple[int, ...], largest: int
    ):
        self.tasks, self.runs, self.events = tasks, runs, events
        self.placed, self.loads, self.largest = placed, loads, largest

    def __str__(self) -> str:
        small = self.runs - len(self.placed)
        return (
            f"{self.runs:,} runs, brought together by a shuffle: {len(self.placed):,} large ones placed by their size, "
            f"{small:,} by their name; {why([self.largest, self.events - self.largest], self.loads, 'events')}"
        )

    __repr__ = __str__

    def task_of(self) -> Column:
        """The task of an event, by its run."""
        by_name = fn.pmod(fn.xxhash64("run"), fn.lit(self.tasks)).cast("int")
        if not self.placed:
            return by_name
        pairs = [fn.lit(word) for pair in self.placed.items() for word in pair]
        return fn.coalesce(fn.create_map(*pairs)[fn.col("run")], by_name)


def plan(events: DataFrame, tasks: int) -> Plan:
    """Count the events of each run, and place those runs by size that would make a task much larger than others.

    One query over the column `run`; what comes back is as long as there are large runs and tasks, not runs.
    """
    by_run = events.groupBy("run").agg(fn.count("*").alias("events")).cache()
    try:
        [(runs, total)] = by_run.agg(fn.count("*"), fn.coalesce(fn.sum("events"), fn.lit(0))).collect()
        above = max(1, total // (tasks * _LARGE_SHARE))
        large = {row[0]: row[1] for row in by_run.where(fn.col("events") > above).collect() if row[0] is not None}
        draft = Plan(tasks, runs, total, {}, (), max(large.values(), default=above))
        small = by_run.where(fn.col("events") <= above).groupBy(draft.task_of().alias("task")).agg(fn.sum("events"))
        loads = dict.fromkeys(range(tasks), 0) | {row[0]: row[1] for row in small.collect()}
    finally:
        by_run.unpersist()
    heap = [(load, task) for task, load in loads.items()]
    heapq.heapify(heap)
    placed: dict[str, int] = {}
    for run, size in sorted(large.items(), key=lambda item: (-item[1], item[0])):
        load, task = heapq.heappop(heap)
        placed[run] = task
        heapq.heappush(heap, (load + size, task))
    ends = tuple(sorted((load for load, _ in heap), reverse=True))
    return Plan(tasks, runs, total, placed, ends, draft.largest)
