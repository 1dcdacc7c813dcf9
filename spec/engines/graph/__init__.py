"""The graph of all reachable states of a small model, as a networkx graph.

Built by the reference interpreter, so it is slow and obvious, and refuses a model above its bound by name: a graph is
whole or there is none. No fingerprints, no reduction: two nodes differ in at least one cell.
"""

from viewproof.spec.engines.graph.build import StateGraph, TooLargeError, build
from viewproof.spec.engines.graph.select import check_name, parse, shortest_path
from viewproof.spec.engines.graph.write import FORMATS, summary, write

__all__ = [
    "FORMATS",
    "StateGraph",
    "TooLargeError",
    "build",
    "check_name",
    "parse",
    "shortest_path",
    "summary",
    "write",
]
