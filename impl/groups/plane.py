"""The planes: what kind of operations a consensus group executes."""

from __future__ import annotations

from enum import StrEnum


class Plane(StrEnum):
    """`SINGLE` is a cluster of one group that takes every operation."""

    SINGLE = "single"
    METADATA = "metadata"
    PARTITIONS = "partitions"
