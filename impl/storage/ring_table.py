"""The recovery decision table of the ring journal (seed 002): header ring and prepare ring → decision, per slot.

The header of a prepare is written once the prepare is durable, and it is acknowledged once both are. So a valid header
that is reserved, or of an op at or below the checkpoint, says that a broken prepare in its slot was being written and
never acknowledged: it is cut. (§4 has `vsr` there. With that, a power loss of the whole cluster in an append would
leave it without any head.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from viewproof.impl.interface.messages import PrepareHeader


class Decision(StrEnum):
    """What a slot holds: nothing; a clean prepare; one whose header is to be rewritten; something that is to be
    repaired from the cluster (dirty and faulty); something that counts for nothing.
    """

    NIL = "nil"
    EQL = "eql"
    FIX = "fix"
    VSR = "vsr"
    CUT = "cut"


@dataclass(frozen=True, slots=True)
class Found:
    """What one ring has in a slot: a header, nothing (reserved), or bytes that are broken."""

    header: PrepareHeader | None = None
    broken: bool = False

    @property
    def reserved(self) -> bool:
        """True if nothing was ever written there, or it was erased."""
        return self.header is None and not self.broken


RESERVED = Found()
BROKEN = Found(broken=True)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Checkpoint, largest op that the ring can hold above it, and the highest op that is known: of any valid header or
    prepare, or the checkpoint.
    """

    checkpoint: int
    op_max: int
    op_highest: int


Rule = Callable[[Found, Found, Bounds], bool]


def _op(found: Found) -> int:
    return 0 if found.header is None else found.header.op


def _name(found: Found) -> str:
    return "" if found.header is None else found.header.checksum


def is_beyond(header: Found, prepare: Found, bounds: Bounds) -> bool:
    """Is one of them of an op that the ring has no room for above the checkpoint, that is, of a log to install?"""
    return max(_op(header), _op(prepare)) > bounds.op_max


TABLE: tuple[tuple[str, Decision, Rule], ...] = (
    ("both reserved", Decision.NIL, lambda h, p, b: h.reserved and p.reserved),
    ("op beyond the largest possible", Decision.CUT, is_beyond),
    ("both broken", Decision.VSR, lambda h, p, b: h.broken and p.broken),
    ("header broken, prepare the highest op", Decision.FIX, lambda h, p, b: h.broken and _op(p) == b.op_highest > 0),
    ("header broken, prepare reserved or not the highest", Decision.VSR, lambda h, p, b: h.broken),
    ("header reserved or drained, prepare broken", Decision.CUT, lambda h, p, b: p.broken and _op(h) <= b.checkpoint),
    ("header ok, prepare broken", Decision.VSR, lambda h, p, b: p.broken),
    ("header reserved, prepare valid", Decision.FIX, lambda h, p, b: h.reserved),
    ("header valid, prepare reserved", Decision.VSR, lambda h, p, b: p.reserved),
    ("header older than prepare", Decision.FIX, lambda h, p, b: _op(h) < _op(p)),
    ("header newer than prepare", Decision.VSR, lambda h, p, b: _op(h) > _op(p)),
    ("same op, different checksums", Decision.VSR, lambda h, p, b: _name(h) != _name(p)),
    ("equal and valid", Decision.EQL, lambda h, p, b: True),
)
"""(row, decision, condition over header ring, prepare ring, bounds); the first row that applies counts."""


def decide(header: Found, prepare: Found, bounds: Bounds) -> tuple[str, Decision]:
    """The row that applies to a slot, and its decision."""
    for row, decision, applies in TABLE:
        if applies(header, prepare, bounds):
            return row, decision
    raise AssertionError("the last row of the table always applies")
