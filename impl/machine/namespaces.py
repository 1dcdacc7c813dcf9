"""Namespaces: stream, topic and partition packed into one number of at most 64 bits (seed 003).

The stream takes the highest bits, so that the numbers of one stream, and within it of one topic, are neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.impl.interface.durable import ConfigurationError

NAMESPACE_BITS = 64
NAMESPACE_MAX = (1 << NAMESPACE_BITS) - 1


class NamespaceError(ValueError):
    """A stream, topic, partition or packed number does not fit; the text names it and its range."""


@dataclass(frozen=True, slots=True)
class Namespace:
    """One partition of one topic of one stream; the numbers start at 0."""

    stream: int
    topic: int
    partition: int


@dataclass(frozen=True, slots=True, order=True)
class NamespaceLayout:
    """How many bits each part has. All replicas and clients of a cluster use the same layout."""

    stream_bits: int = 20
    topic_bits: int = 20
    partition_bits: int = 24

    def __post_init__(self) -> None:
        """Raises `ConfigurationError` for a width below 1, or more than 64 bits in all."""
        for name in self.__slots__:
            bits = getattr(self, name)
            if bits < 1:
                raise ConfigurationError(f"{name} must be at least 1, got {bits}")
        if self.bits > NAMESPACE_BITS:
            raise ConfigurationError(
                f"stream_bits {self.stream_bits} + topic_bits {self.topic_bits} + partition_bits {self.partition_bits}"
                f" are {self.bits} bits; a namespace has {NAMESPACE_BITS}: lower one of them"
            )

    @property
    def bits(self) -> int:
        """Width of a packed namespace."""
        return self.stream_bits + self.topic_bits + self.partition_bits

    def pack(self, stream: int, topic: int, partition: int) -> int:
        """The packed number. Raises `NamespaceError` for a part that does not fit its width."""
        packed = 0
        for name, value in (("stream", stream), ("topic", topic), ("partition", partition)):
            bits = getattr(self, f"{name}_bits")
            if not 0 <= value < 1 << bits:
                raise NamespaceError(f"{name} must be in 0..{(1 << bits) - 1} ({name}_bits is {bits}), got {value}")
            packed = packed << bits | value
        return packed

    def unpack(self, packed: int) -> Namespace:
        """The parts of a packed number. Raises `NamespaceError` if it has more bits than the layout."""
        if not 0 <= packed < 1 << self.bits:
            raise NamespaceError(f"namespace must be in 0..{(1 << self.bits) - 1} ({self.bits} bits), got {packed}")
        partition = packed & (1 << self.partition_bits) - 1
        topic = packed >> self.partition_bits & (1 << self.topic_bits) - 1
        return Namespace(packed >> self.partition_bits + self.topic_bits, topic, partition)


def bits_required(largest: int) -> int:
    """The width of numbers in 0..largest: at least 1."""
    return max(1, largest.bit_length())
