"""Jobs that are done ahead by other threads; who waits for one does jobs, too, so that all cores have work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

Job = Callable[[], None]


class Ahead:
    """Does jobs in the order that they are given, by so many threads beside the one that waits. A context manager: at
    its end the threads are gone, and jobs that were not begun are not done.
    """

    def __init__(self, threads: int) -> None:
        self.jobs: deque[Job] = deque()
        self.changed = threading.Condition()
        self.failed: BaseException | None = None
        self.ended = False
        self.threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def __enter__(self) -> Ahead:
        return self

    def __exit__(self, *_: object) -> None:
        with self.changed:
            self.ended = True
            self.jobs.clear()
            self.changed.notify_all()
        for thread in self.threads:
            thread.join()

    def put(self, job: Job) -> None:
        """Have a job done."""
        with self.changed:
            self.jobs.append(job)
            self.changed.notify()

    def wait(self, until: Callable[[], bool]) -> None:
        """Do jobs until something is so, which a job makes so. Raises what a job raised."""
        while (job := self._next(until)) is not None:
            self._do(job)

    def _next(self, until: Callable[[], bool]) -> Job | None:
        with self.changed:
            while True:
                if self.failed is not None:
                    raise self.failed
                if until():
                    return None
                if self.jobs:
                    return self.jobs.popleft()
                self.changed.wait()

    def _do(self, job: Job) -> None:
        try:
            job()
        except BaseException as error:
            with self.changed:
                self.failed = self.failed or error
        with self.changed:
            self.changed.notify_all()

    def _serve(self) -> None:
        while (job := self._next_of_all()) is not None:
            self._do(job)

    def _next_of_all(self) -> Job | None:
        with self.changed:
            while not self.jobs and not self.ended:
                self.changed.wait()
            return None if self.ended else self.jobs.popleft()
