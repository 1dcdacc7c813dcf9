"""One search at a time, in a thread of its own, while the page is used."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from viewproof.refinement.explorer.subject import Goal, Subject, specification
from viewproof.spec.lang import SpecError


class StoppedError(Exception):
    """The search was asked to end."""


class Search:
    """The search of a server: begun, asked how it stands, and ended, by any thread."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()
        self._standing: dict[str, Any] = {"running": False}

    def begin(self, faults: tuple[str, ...], goal: Goal) -> None:
        """Search for a goal. Raises `SpecError` while another search runs, and for an unknown id."""
        if not self._subject.searches:
            raise SpecError("nothing is searched for from a state of a trace")
        spec = specification(self._subject, faults)
        known = {p.id for p in (spec.invariants if goal.breaks else spec.witnesses)}
        if goal.id not in known:
            raise SpecError(f"no {'invariant' if goal.breaks else 'witness'} {goal.id}; there are: {', '.join(known)}")
        with self._lock:
            if self._thread is not None and self._thread.is_alive():
                raise SpecError("a search is running; stop it first")
            self._stop.clear()
            self._standing = {"running": True, "goal": goal.id, "states": 0}
            self._thread = threading.Thread(target=self._run, args=(faults, goal), daemon=True)
            self._thread.start()

    def standing(self) -> Mapping[str, Any]:
        """`running`, and `states` met so far; then `walk` (None: a bound came first, []: there is none), or `error`."""
        return dict(self._standing)

    def stop(self) -> Mapping[str, Any]:
        """End the search, if one runs; it has ended on return. How it stands then."""
        self._stop.set()
        if (thread := self._thread) is not None:
            thread.join()
        return self.standing()

    def _run(self, faults: tuple[str, ...], goal: Goal) -> None:
        result: dict[str, Any]
        try:
            steps = self._subject.search(specification(self._subject, faults), goal, self._tell)
            result = {"walk": None if steps is None else [[step.action, step.args] for step in steps]}
        except StoppedError:
            result = {"error": "stopped"}
        except Exception as problem:
            result = {"error": f"{type(problem).__name__}: {problem}"}
        self._standing = {**self._standing, **result, "running": False}

    def _tell(self, states: int) -> None:
        if self._stop.is_set():
            raise StoppedError
        self._standing = {**self._standing, "states": states}
