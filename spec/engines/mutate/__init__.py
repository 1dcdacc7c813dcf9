"""Mutation of recorded actions: which guard, update and order does which bounded search need?

A mutant is a specification that differs from the given one in one place. It is *killed* by a shape (a bounded
instance) in which an invariant breaks or a step leaves its range, or over all shapes if a witness is no longer reached
or an action no longer taken. A mutant that is not killed says that no shape needs that place. Nothing here knows the
protocol.
"""

from viewproof.spec.engines.mutate.hunt import Death, Ground, Report, all_mutants, hunt, survey
from viewproof.spec.engines.mutate.mutants import Mutant, mutants

__all__ = ["Death", "Ground", "Mutant", "Report", "all_mutants", "hunt", "mutants", "survey"]
