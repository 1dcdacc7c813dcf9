"""TLA+ export: a module and a configuration for TLC, so that an independent tool can judge the same model.

**Agreement** means: for the same bounded instance, TLC's distinct states, depth and verdict are those of the reference
interpreter. TLC counts the initial state as depth 1, so its depth is one more than the number of steps that `interp`
and `explicit` report. Differences that remain, by construction: TLC ignores an update at an index outside its set
(the interpreter refuses it), and does not judge a transition invariant over a step that changes nothing.
"""

from viewproof.spec.engines.tla.module import Module, export

__all__ = ["Module", "export"]
