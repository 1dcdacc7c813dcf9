"""Is what the clients saw linearizable? A search per key over a recorded history.

A history is the list of operations as the *clients* saw them: when each was called, when its answer came, and what it
said. The store behaves as one copy exactly if, for every key on its own (linearizability is a local property: Herlihy
and Wing 1990, theorem 1), the operations can be put in an order in which each takes effect between its call and its
answer and each answer is the one a sequential store would give. The search is Wing and Gong's (1993) with the
configurations already tried remembered (Lowe 2017).

What the verdicts mean. ``ok``: such an order was found for every key, so no acknowledged write is missing from a later
answer and no answer is wrong. ``violation``: for the named key no order exists. ``inconclusive``: the bound on
configurations was hit first. An operation without an answer may have taken effect at any time after its call, or never.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

__all__ = ["CheckResult", "HistoryError", "KeyFailure", "Operation", "check_history"]

Kind = Literal["get", "put", "append", "cas", "delete"]
Verdict = Literal["ok", "violation", "inconclusive"]


class HistoryError(ValueError):
    """The history itself is malformed: an answer before its call, or an unknown kind of operation."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation as its client saw it.

    ``called`` and ``returned`` are nanoseconds of one monotonic clock shared by all clients of the history;
    ``returned`` is None if no answer was received. ``argument`` is the value to write (put, append, cas), ``expected``
    the value a cas compares with (None: the key is absent). ``value`` is what a get answered, ``success`` what a cas
    or a delete answered (for a delete: the key was there).
    """

    client: int
    kind: Kind
    key: bytes
    called: int
    returned: int | None = None
    argument: bytes | None = None
    expected: bytes | None = None
    value: bytes | None = None
    success: bool = True

    def __str__(self) -> str:
        answer = "no answer"
        if self.returned is not None:
            answer = repr(self.value) if self.kind == "get" else str(self.success)
        detail = "" if self.kind in ("get", "delete") else f" {self.argument!r}"
        if self.kind == "cas":
            detail = f" {self.expected!r} ->{detail}"
        return f"client {self.client}: {self.kind} {self.key!r}{detail} = {answer} [{self.called}..{self.returned}]"


@dataclass(frozen=True, slots=True)
class KeyFailure:
    """Why one key has no order: the longest explained prefix and the operations none of which could come next."""

    key: bytes
    explained: int
    total: int
    state: bytes | None
    candidates: tuple[Operation, ...]

    def __str__(self) -> str:
        shown = "; ".join(str(operation) for operation in self.candidates[:6])
        return (
            f"key {self.key!r}: at most {self.explained} of {self.total} operations can be explained; "
            f"with the value {self.state!r} none of these can come next: {shown}"
        )


@dataclass(frozen=True, slots=True)
class CheckResult:
    """The verdict over all keys, with counts (operations, keys, configurations tried)."""

    verdict: Verdict
    operations: int
    keys: int
    configurations: int
    failures: tuple[KeyFailure, ...] = field(default=())
    inconclusive_keys: tuple[bytes, ...] = field(default=())

    @property
    def ok(self) -> bool:
        """True only if every key was explained and at least one operation was looked at."""
        return self.verdict == "ok"


def check_history(
    history: Iterable[Operation],
    initial: dict[bytes, bytes] | None = None,
    configurations_max: int = 2_000_000,
) -> CheckResult:
    """Check every key of ``history`` on its own; ``initial`` holds the values before the first operation.

    ``configurations_max`` bounds the search per key. An empty history is inconclusive: nothing was checked.
    Raises HistoryError if an operation is malformed.
    """
    by_key: dict[bytes, list[Operation]] = defaultdict(list)
    count = 0
    for operation in history:
        _validate(operation)
        by_key[operation.key].append(operation)
        count += 1
    failures: list[KeyFailure] = []
    unknown: list[bytes] = []
    tried = 0
    for key in sorted(by_key):
        search = _Search(key, by_key[key], (initial or {}).get(key), configurations_max)
        outcome = search.run()
        tried += search.configurations
        if outcome == "violation":
            failures.append(search.failure())
        elif outcome == "inconclusive":
            unknown.append(key)
    verdict: Verdict = "ok"
    if failures:
        verdict = "violation"
    elif unknown or count == 0:
        verdict = "inconclusive"
    return CheckResult(verdict, count, len(by_key), tried, tuple(failures), tuple(unknown))


def _validate(operation: Operation) -> None:
    if operation.kind not in ("get", "put", "append", "cas", "delete"):
        raise HistoryError(f"unknown kind of operation {operation.kind!r}")
    if operation.kind in ("put", "append", "cas") and operation.argument is None:
        raise HistoryError(f"a {operation.kind} needs an argument: {operation}")
    if operation.returned is not None and operation.returned < operation.called:
        raise HistoryError(f"answered before it was called: {operation}")


def apply(operation: Operation, state: bytes | None) -> tuple[bool, bytes | None]:
    """The sequential store for one key: (the answer fits, the value afterwards). No answer fits anything."""
    answered = operation.returned is not None
    if operation.kind == "get":
        return (not answered or operation.value == state), state
    if operation.kind == "put":
        return True, operation.argument
    if operation.kind == "append":
        assert operation.argument is not None
        return True, (state or b"") + operation.argument
    if operation.kind == "delete":
        return (not answered or operation.success == (state is not None)), None
    matches = state == operation.expected
    if answered and operation.success != matches:
        return False, state
    return True, (operation.argument if matches else state)


@dataclass(frozen=True, slots=True)
class _Configuration:
    """Answered operations 0..base-1 are placed, and base+i for every bit i of mask; pending ones by their own mask."""

    base: int
    mask: int
    pending: int
    state: bytes | None

    def key(self) -> tuple[int, int, int, bytes | None]:
        state = self.state
        if state is not None and len(state) > 32:
            state = hashlib.blake2b(state, digest_size=32).digest() + b"#"
        return self.base, self.mask, self.pending, state


class _Search:
    """Depth-first search over configurations of one key."""

    def __init__(
        self, key: bytes, operations: Sequence[Operation], initial: bytes | None, configurations_max: int
    ) -> None:
        self.key = key
        self.answered = sorted((o for o in operations if o.returned is not None), key=lambda o: (o.called, o.client))
        # An unanswered get has no effect and no answer to explain.
        self.pending = [o for o in operations if o.returned is None and o.kind != "get"]
        self.initial = initial
        self.configurations_max = configurations_max
        self.configurations = 0
        self.best: _Configuration | None = None
        self.best_count = -1

    def run(self) -> Verdict:
        start = _Configuration(0, 0, 0, self.initial)
        seen = {start.key()}
        stack = [start]
        while stack:
            configuration = stack.pop()
            self.configurations += 1
            placed = configuration.base + configuration.mask.bit_count()
            if placed > self.best_count:
                self.best, self.best_count = configuration, placed
            if placed == len(self.answered):
                return "ok"
            if self.configurations >= self.configurations_max:
                return "inconclusive"
            for follower in reversed(self._followers(configuration)):
                identity = follower.key()
                if identity not in seen:
                    seen.add(identity)
                    stack.append(follower)
        return "violation"

    def _window(self, configuration: _Configuration) -> tuple[list[int], int]:
        """Answered operations that may come next, and the earliest answer among all that are not placed."""
        candidates: list[int] = []
        earliest: int | None = None
        index = configuration.base
        while index < len(self.answered):
            operation = self.answered[index]
            if earliest is not None and operation.called > earliest:
                break
            if not configuration.mask >> (index - configuration.base) & 1:
                candidates.append(index)
                assert operation.returned is not None
                if earliest is None or operation.returned < earliest:
                    earliest = operation.returned
            index += 1
        assert earliest is not None
        return [i for i in candidates if self.answered[i].called <= earliest], earliest

    def _followers(self, configuration: _Configuration) -> list[_Configuration]:
        candidates, earliest = self._window(configuration)
        followers: list[_Configuration] = []
        for index in sorted(candidates, key=lambda i: self.answered[i].returned or 0):
            fits, state = apply(self.answered[index], configuration.state)
            if fits:
                followers.append(self._place(configuration, index, state))
        for index, operation in enumerate(self.pending):
            if configuration.pending >> index & 1 or operation.called > earliest:
                continue
            _, state = apply(operation, configuration.state)
            if state != configuration.state:
                pending = configuration.pending | 1 << index
                followers.append(_Configuration(configuration.base, configuration.mask, pending, state))
        return followers

    @staticmethod
    def _place(configuration: _Configuration, index: int, state: bytes | None) -> _Configuration:
        mask = configuration.mask | 1 << (index - configuration.base)
        base = configuration.base
        while mask & 1:
            mask >>= 1
            base += 1
        return _Configuration(base, mask, configuration.pending, state)

    def failure(self) -> KeyFailure:
        """The furthest configuration reached, for the report of a violation."""
        assert self.best is not None
        candidates, _ = self._window(self.best)
        return KeyFailure(
            self.key,
            self.best_count,
            len(self.answered),
            self.best.state,
            tuple(self.answered[i] for i in candidates),
        )
