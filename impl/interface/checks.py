"""Assertions that `python -O` cannot strip, and the errors that stop a replica."""

from __future__ import annotations


class InvariantError(AssertionError):
    """The replica contradicts itself: a bug (or a fault that was switched on), never a bad message."""


class ContradictionError(Exception):
    """Others say that the log is another than what the replica has executed: somebody broke the protocol, or lied."""


def check(condition: bool, message: str) -> None:
    """Raises `InvariantError` with `message` unless `condition` holds."""
    if not condition:
        raise InvariantError(message)
