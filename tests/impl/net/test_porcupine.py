"""Our history checker and Porcupine, a well-kept library with a search of its own, give the same verdicts."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.impl.net.porcupine import verdict_of_porcupine
from viewproof.impl.net.history import Kind, Operation, apply, check_history


def drawn(rng: random.Random) -> list[Operation]:
    """A history of some clients on two keys: mostly as one store would answer, sometimes with one answer changed."""
    times = iter(sorted(rng.sample(range(10_000), 200)))
    store: dict[bytes, bytes | None] = {}
    busy: dict[int, tuple[int, Kind, bytes, bytes, bytes | None]] = {}
    history: list[Operation] = []
    for number in range(rng.randint(5, 30)):
        client = rng.randrange(4)
        if client not in busy:
            kind = rng.choice(["get", "put", "append", "cas", "delete"])
            busy[client] = (next(times), kind, rng.choice([b"a", b"b"]), b"%d;" % number, rng.choice([None, b"0;"]))
            continue
        called, kind, key, argument, expected = busy.pop(client)
        op = Operation(client, kind, key, called, None, argument, expected)
        before = store.get(key)
        _, after = apply(op, before)
        success = {"cas": before == expected, "delete": before is not None}.get(kind, True)
        store[key] = after
        if rng.random() < 0.1:
            history.append(op)
            continue
        value = before if kind == "get" else None
        if rng.random() < 0.03:
            value, success = b"x" if kind == "get" else None, not success if kind in ("cas", "delete") else True
        history.append(Operation(client, kind, key, called, next(times), argument, expected, value, success))
    return history


@pytest.mark.long
def test_both_give_the_same_verdict_on_drawn_histories() -> None:
    rng = random.Random(5)
    verdicts: Counter[str] = Counter()
    for _ in range(500):
        history = drawn(rng)
        verdict = check_history(history).verdict
        assert verdict_of_porcupine(history) == verdict, history
        verdicts[verdict] += 1
    assert min(verdicts["ok"], verdicts["violation"]) > 50, verdicts
