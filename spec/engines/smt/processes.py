"""Spreads numbered pieces of work over processes."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Any, TypeVar

Found = TypeVar("Found")
_STOPS = frozenset((signal.SIGINT, signal.SIGTERM))
_work: Callable[[int], Any] | None = None
"""The work of this process; the processes that share it inherit it, without a solver, when they are forked."""


def _do(number: int) -> Any:
    assert _work is not None
    return _work(number)


def _leave_signals_to_the_parent() -> None:
    """A worker ends when the executor says so, without a word; an interrupt is the parent's business."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _STOPS)


@contextmanager
def _blocked() -> Iterator[None]:
    """Processes started inside get no signal before they have left the handlers of their parent."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _STOPS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def spread(work: Callable[[int], Found], numbers: Sequence[int], workers: int) -> Iterator[Iterator[Found]]:
    """What the work finds for each number, as it is found; with one worker in this process, in order."""
    global _work
    if workers == 1:
        yield map(work, numbers)
        return
    _work = work
    before = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("fork"), _leave_signals_to_the_parent)
    futures: list[Future[Found]] = []
    finished = False
    try:
        with _blocked():
            futures = [executor.submit(_do, number) for number in numbers]
        yield (future.result() for future in as_completed(futures))
        finished = True
    finally:
        _work = None
        if not finished or any(not future.done() for future in futures):
            for child in set(multiprocessing.active_children()) - before:
                child.terminate()
        executor.shutdown(wait=True, cancel_futures=True)
