"""The operations that simulated clients draw, for each plane."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from viewproof.impl.groups.plane import Plane
from viewproof.impl.machine.namespaces import NamespaceLayout
from viewproof.impl.machine.partitions import AppendMessages, Poll, ReadOffset, StoreOffset
from viewproof.impl.machine.state_machine import Append, CompareAndSet, Delete, Get, Operation, Put

KEYS = tuple(b"key-%d" % number for number in range(8))

_LAYOUT = NamespaceLayout()
NAMESPACES = tuple(_LAYOUT.pack(*parts) for parts in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (3, 1, 2)))


GROUP = 2
"""The reader that is a consumer group."""


def draw_operation(random: Random, plane: Plane, value: bytes, namespace: int | None = None) -> Operation:
    """An operation of the plane that carries `value`, if it writes; of the partition `namespace`, if one is given."""
    if plane is not Plane.PARTITIONS:
        return _draw_key_operation(random, value)
    return _draw_partition_operation(random, value, NAMESPACES if namespace is None else (namespace,))


def _draw_key_operation(random: Random, value: bytes) -> Operation:
    key = KEYS[random.randrange(len(KEYS))]
    kind = random.randrange(10)
    if kind < 3:
        return Put(key, value)
    if kind < 5:
        return Get(key)
    if kind < 8:
        return Append(key, value) if random.random() < 0.8 else Put(key, b"")
    if kind < 9:
        return Delete(key)
    return CompareAndSet(key, None if random.random() < 0.5 else value, value)


def _draw_partition_operation(random: Random, value: bytes, namespaces: Sequence[int]) -> Operation:
    namespace = namespaces[random.randrange(len(namespaces))]
    kind = random.randrange(10)
    if kind < 6:
        count = random.randint(1, 3)
        return AppendMessages(namespace, tuple(b"%b/%d" % (value, number) for number in range(count)))
    if kind < 8:
        return Poll(namespace, random.randrange(20), 5)
    if kind < 9:
        consumer = random.randrange(3)
        return StoreOffset(namespace, consumer, random.randrange(40), consumer == GROUP)
    consumer = random.randrange(3)
    return ReadOffset(namespace, consumer, consumer == GROUP)
