"""Work for several processes, ended cleanly at any moment: also if a signal kills the workers in the middle of a
task.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from viewproof.refinement.interrupts import ignore_interrupts, shielded_children

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 4
"""Tasks handed out per worker beyond those that are done, so that memory does not grow with their number."""

SIGNAL_SECONDS = 0.5
"""A signal to all processes may end the workers before this one has seen it: so long it is waited for."""


class WorkerDiedError(RuntimeError):
    """A worker process ended without an answer (killed, or out of memory)."""


def in_processes(
    task: Callable[[Item], Result], items: Iterable[Item], workers: int, *, in_order: bool = True
) -> Iterator[Result]:
    """`task` of each item, by `workers` processes; in the order of the items, or as they come.

    `task` must be importable by name. The processes are gone when the iterator ends, is closed or is interrupted.
    Raises what a task raises, and `WorkerDiedError`.
    """
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), ignore_interrupts)
    finished = False
    try:
        yield from _ahead(executor, task, iter(items), workers * AHEAD, in_order)
        finished = True
    except BrokenProcessPool as error:
        time.sleep(SIGNAL_SECONDS)
        raise WorkerDiedError("a worker process died; try again with fewer --workers") from error
    finally:
        if not finished:
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
        executor.shutdown(wait=True, cancel_futures=True)


def _ahead(
    executor: ProcessPoolExecutor, task: Callable[[Item], Result], items: Iterator[Item], limit: int, in_order: bool
) -> Iterator[Result]:
    waiting: list[Future[Result]] = []
    more = True
    while more or waiting:
        while more and len(waiting) < limit:
            item = next(items, None)
            more = item is not None
            if item is not None:
                with shielded_children():
                    waiting.append(executor.submit(task, item))
        if not waiting:
            return
        wait(waiting[:1] if in_order else waiting, return_when=FIRST_COMPLETED)
        done = waiting[:1] if in_order else [future for future in waiting if future.done()]
        waiting = [future for future in waiting if future not in done]
        for future in done:
            yield future.result()
