"""Assertions that `python -O` cannot strip, and the errors that stop a replica."""

from __future__ import annotations

from collections.abc import Mapping


class InvariantError(AssertionError):
    """The replica contradicts itself: a bug (or a fault that was switched on), never a bad message."""


class ContradictionError(Exception):
    """Others say that the log is another than what the replica has executed: somebody broke the protocol, or lied.

    `evidence`: what was offered, and what was executed, as JSON takes it.
    """

    def __init__(self, text: str, evidence: Mapping[str, object]) -> None:
        super().__init__(text)
        self.evidence = evidence


def check(condition: bool, message: str) -> None:
    """Raises `InvariantError` with `message` unless `condition` holds."""
    if not condition:
        raise InvariantError(message)
