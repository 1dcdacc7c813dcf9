"""A portfolio of shapes: several small instances of one model, chosen so that each place of it matters in one.

**Holds** means: every shape was searched, to its end or to its stated bound of states, no invariant broke in any, every
witness was reached in one, and every action was taken in one. What was complete and what was bounded is part of the
answer.
"""

from viewproof.spec.engines.portfolio.cover import Covered, cover
from viewproof.spec.engines.portfolio.digest import digest, digest_of_predicates, digest_of_steps
from viewproof.spec.engines.portfolio.outcome import Outcome, Shape, search

__all__ = ["Covered", "Outcome", "Shape", "cover", "digest", "digest_of_predicates", "digest_of_steps", "search"]
