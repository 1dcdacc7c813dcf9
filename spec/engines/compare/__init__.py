"""Two specifications side by side: is there a behaviour of one that the other has not, and which is the shortest?

A specification travels between processes, and between versions of this program, as plain data: variables, recorded
actions and predicates (`dump`, which stands alone, writes it; `load` reads it). Nothing here knows the protocol.
"""

from viewproof.spec.engines.compare.divergence import Divergence, diverging
from viewproof.spec.engines.compare.load import UnlikeError, load

__all__ = ["Divergence", "UnlikeError", "diverging", "load"]
