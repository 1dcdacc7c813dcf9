"""Put the records of several processes into an order that their messages allow.

Each process's own order stands. Between processes the lines' times order them, but clocks differ a little and a line is
printed a little before or after what it tells of: a record that needs what another process gives (a message) waits for
it, if it comes within `slack` seconds of log time. Of records that wait for each other the earliest goes on.
"""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

Key = tuple[Any, ...]
"""A message: its kind, and what tells it from others of that kind."""
SLACK = 2.0
"""By so many seconds clocks of several processes may differ."""


@dataclass(slots=True)
class Record:
    """A line as a typed record: `event` with `columns`, of `node` (-1: of nobody), at `time` in seconds.

    `needs` are the messages that it uses, `gives` those that it sends; `text` is the line. `about` is the node that the
    event is about, where it is nobody's.
    """

    event: str
    node: int
    file: str
    line: int
    time: float
    columns: dict[str, int | None]
    text: str = ""
    needs: tuple[Key, ...] = ()
    gives: tuple[Key, ...] = ()
    about: int = 0


def in_order(records: Iterable[Record], slack: float = SLACK) -> Iterator[Record]:
    """The records in an order of their messages; sorted by time where those say nothing."""
    waiting = sorted(records, key=lambda r: r.time)
    given_at: dict[Key, float] = {}
    for record in waiting:
        for key in record.gives:
            given_at.setdefault(key, record.time)
    given: set[Key] = set()
    held: dict[int, deque[Record]] = defaultdict(deque)

    def free(record: Record) -> bool:
        return all(key in given or given_at.get(key, math.inf) > record.time + slack for key in record.needs)

    def release(now: float) -> Iterator[Record]:
        """Those that wait no longer, the earliest first."""
        while going := [queue for queue in held.values() if queue and (free(queue[0]) or now > queue[0].time + slack)]:
            yield next_of(going)

    def next_of(queues: Iterable[deque[Record]]) -> Record:
        record = min(queues, key=lambda queue: queue[0].time).popleft()
        given.update(record.gives)
        return record

    for record in waiting:
        if held[record.node] or not free(record):
            held[record.node].append(record)
        else:
            given.update(record.gives)
            yield record
        if any(held.values()):
            yield from release(record.time)
    while any(held.values()):
        yield from release(waiting[-1].time)
        if stuck := [queue for queue in held.values() if queue]:
            yield next_of(stuck)
