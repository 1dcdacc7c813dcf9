"""Work for several processes, or threads, ended cleanly at any moment: also if a signal kills the workers in the middle
of a task.
"""

from __future__ import annotations

import multiprocessing
import queue
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from itertools import islice
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


def in_threads(
    task: Callable[[Item, threading.Event], Result], items: Iterable[Item], workers: int
) -> Iterator[tuple[Item, Result]]:
    """Each item with `task` of it, as they come, by `workers` threads: for tasks that seldom hold Python's lock.

    The threads are gone when the iterator ends, is closed or is interrupted: a task is given an event that is set then,
    which long ones look at. Raises what a task raises.
    """
    left, taking, stopped = iter(items), threading.Lock(), threading.Event()
    found: queue.SimpleQueue[tuple[Item, Result] | BaseException | None] = queue.SimpleQueue()

    def serve() -> None:
        try:
            while not stopped.is_set():
                with taking:
                    some = list(islice(left, 1))
                if not some:
                    break
                found.put((some[0], task(some[0], stopped)))
        except BaseException as error:
            found.put(error)
        found.put(None)

    threads = [threading.Thread(target=serve) for _ in range(workers)]
    try:
        for thread in threads:
            thread.start()
        ended = 0
        while ended < workers:
            one = found.get()
            if isinstance(one, BaseException):
                raise one
            if one is None:
                ended += 1
            else:
                yield one
    finally:
        stopped.set()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
