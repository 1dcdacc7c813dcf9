"""Named mistakes that can be switched on in the replica, to measure the checkers and the audit.

All are off by default. A switch makes the replica do the wrong thing; its trace still says honestly what it did. The
story of each is in docs/faults.md.
"""

from __future__ import annotations

from viewproof.faults import records

FAULTS: dict[str, str] = {fault.id: fault.replica for fault in records().values() if fault.replica}
"""Fault id → what the replica does wrong."""


class FaultError(ValueError):
    """A fault id that the implementation does not know."""


def validate_faults(faults: frozenset[str]) -> frozenset[str]:
    """Returns `faults`; raises `FaultError` naming those that are unknown."""
    unknown = sorted(faults - FAULTS.keys())
    if unknown:
        raise FaultError(f"unknown fault {', '.join(unknown)}; known: {', '.join(sorted(FAULTS))}")
    return faults
