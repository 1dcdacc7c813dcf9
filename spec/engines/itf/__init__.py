"""Behaviours in the Informal Trace Format (ITF) of Apalache and Quint: `write` and `read`."""

from viewproof.spec.engines.itf.read import from_itf, steps_between
from viewproof.spec.engines.itf.write import to_itf

__all__ = ["from_itf", "steps_between", "to_itf"]
