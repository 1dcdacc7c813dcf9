"""Assertions that `python -O` cannot strip, and the error they raise."""

from __future__ import annotations


class InvariantError(AssertionError):
    """The replica contradicts itself: a bug (or a fault that was switched on), never a bad message."""


def check(condition: bool, message: str) -> None:
    """Raises `InvariantError` with `message` unless `condition` holds."""
    if not condition:
        raise InvariantError(message)
