"""A replay that is begun: its state after some events of a run, as a value that can be kept, and gone on from.

It is that of the plain replay, of which everything was shown: where evidence is missing, the run is gone on from its
last complete point, and judged from there each time.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import msgspec

from viewproof.refinement.checker.state import RunState
from viewproof.refinement.schema import Row
from viewproof.refinement.verdict import AllowedUse
from viewproof.spec.engines.replay import Store

_GIVEN = ("replicas", "schema", "system", "observed")
"""What a `RunState` is made with."""


_LARGE = 1 << 63


class Begun(msgspec.Struct, frozen=True):
    """The state after the first `events` events of a run, in replay order.

    `first` is the run's first event, `boots` are all boots so far; `store`, `state` and `judged` are those of the plain
    replay, as data.
    """

    first: Row
    events: int
    last_seq: tuple[int, ...]
    store: Mapping[str, Any]
    state: Mapping[str, Any]
    judged: Mapping[str, int]
    uses: tuple[AllowedUse, ...] = ()
    boots: tuple[Row, ...] = ()

    def restore(self, store: Store, state: RunState) -> None:
        """Overwrite a fresh store and state with those that were kept."""
        for name, value in self.store.items():
            setattr(store, name, from_data(value))
        for name, value in self.state.items():
            found, fresh = from_data(value), getattr(state, name)
            if isinstance(fresh, Counter):
                found = Counter(found)
            elif isinstance(fresh, defaultdict):
                found = defaultdict(fresh.default_factory, found)
            elif isinstance(fresh, frozenset):
                found = frozenset(found)
            setattr(state, name, found)


def data_of(store: Store, state: RunState) -> tuple[dict[str, Any], dict[str, Any]]:
    """Store and state as data: numbers, texts, lists, and tables in order of their keys."""
    kept = {name: value for name, value in vars(state).items() if name not in _GIVEN}
    return {n: to_data(v) for n, v in vars(store).items()}, {n: to_data(v) for n, v in kept.items()}


def to_data(value: Any) -> Any:
    """Numbers, texts and None as they are; containers as {kind: content}, tables and sets in order of their keys; a
    number of more than 64 bits, as sets of partitions and consumers have them, as its digits.
    """
    match value:
        case int() if not -_LARGE <= value < _LARGE:
            return {"i": hex(value)}
        case bool() | int() | str() | None:
            return value
        case tuple():
            return {"t": [to_data(v) for v in value]}
        case list():
            return [to_data(v) for v in value]
        case set() | frozenset():
            return {"s": [to_data(v) for v in sorted(value, key=_order)]}
        case Mapping():
            return {"d": [[to_data(k), to_data(v)] for k, v in sorted(value.items(), key=lambda item: _order(item[0]))]}
    raise TypeError(f"{type(value).__name__} is no data")


def from_data(value: Any) -> Any:
    """What `to_data` was given."""
    if isinstance(value, list):
        return [from_data(v) for v in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "i":
        return int(content, 16)
    if kind == "t":
        return tuple(from_data(v) for v in content)
    if kind == "s":
        return {from_data(v) for v in content}
    return {from_data(k): from_data(v) for k, v in content}


def _order(key: Any) -> Any:
    """Keys of one table have one shape, but names may stand beside numbers."""
    return (0, key) if isinstance(key, int) else (1, key) if isinstance(key, str) else (2, tuple(map(_order, key)))
