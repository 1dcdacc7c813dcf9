"""Constraints of bounded search that leave out behaviours of which others are as good.

**Partial order**: two action instances are independent if neither writes a cell that the other reads or writes. A step
that is independent of all that happened since the position before at which its instance could have happened has to
happen there. Every behaviour of a number of rounds becomes one that obeys, of the same rounds and with the same last
state, by moving steps to earlier positions one after the other; so nothing is lost, and rounds cover the same states.

**Symmetry**: of a sort whose members no part of the specification tells apart, a member is first used after the one
before it. A violation stays one when members are exchanged. But an exchange may also turn the order of two steps of
one action in a round around, so that the other behaviour may need a round more: it is not used where rounds are said
to cover an instance.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from viewproof.spec.engines.explicit.symmetry import Check
from viewproof.spec.engines.smt.steps import StepTerms
from viewproof.spec.engines.smt.terms import Term, Terms
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.sorts import Sort


def exchangeable(spec: Spec) -> list[Sort]:
    """Sorts of action parameters with more than one member, none of which the specification tells apart."""
    found = []
    sorts = {p.sort.name: p.sort for ir in spec.action_irs for p in ir.params}
    for _, sort in sorted(sorts.items()):
        if len(spec.instance.members(sort)) > 1:
            try:
                Check(spec, sort)
            except SpecError:
                continue
            found.append(sort)
    return found


@dataclass(frozen=True)
class Touched:
    """Cells that a step reads and writes, as bit sets."""

    reads: int
    writes: int

    def depends(self, other: Touched) -> bool:
        """Does the order of the two matter, or may it?"""
        return bool(self.writes & (other.reads | other.writes) or other.writes & self.reads)


def touched(step: StepTerms) -> Touched:
    """What a step reads and writes."""
    reads, writes = step.guard.support, 0
    for number, value in step.changed.items():
        reads |= value.support
        writes |= 1 << number
    return Touched(reads, writes)


class Constraints:
    """Facts about the positions of a chain, made as they are appended."""

    def __init__(self, terms: Terms, spec: Spec, *, partial_order: bool, symmetry: bool) -> None:
        self.terms = terms
        self.partial_order = partial_order
        sorts = {sort.name: sort for sort in exchangeable(spec)} if symmetry else {}
        self.members = {
            ir.name: [(p.name, sorts[p.sort.name]) for p in ir.params if p.sort.name in sorts] for ir in spec.action_irs
        }
        self._touched: dict[str, Touched] = {}
        self._positions: list[tuple[str, Term]] = []
        self._last: dict[str, int] = {}
        self._used: dict[tuple[str, int], list[Term]] = {}

    def append(self, happens: Term, step: StepTerms) -> Iterator[Term]:
        """What must hold of the next position."""
        if self.partial_order:
            yield from self._not_sooner(happens, step)
        yield from self.in_order(happens, step)
        for key in self._uses(step):
            self._used.setdefault(key, []).append(happens)

    def _not_sooner(self, happens: Term, step: StepTerms) -> Iterator[Term]:
        own = self._touched.setdefault(step.label, touched(step))
        before = self._last.get(step.label)
        if before is not None:
            since = self._positions[before + 1 :]
            reasons = [flag for label, flag in since if own.depends(self._touched[label])]
            yield self.terms.implies(happens, self.terms.or_([self._positions[before][1], *reasons]))
        self._last[step.label] = len(self._positions)
        self._positions.append((step.label, happens))

    def _uses(self, step: StepTerms) -> list[tuple[str, int]]:
        return [(sort.name, step.args[name]) for name, sort in self.members[step.action]]

    def in_order(self, happens: Term, step: StepTerms) -> Iterator[Term]:
        """What symmetry asks of a step after all positions so far."""
        for name, sort in self.members[step.action]:
            member = step.args[name]
            if member > sort.lo:
                yield self.terms.implies(happens, self.terms.or_(self._used.get((sort.name, member - 1), ())))
