"""The deterministic simulator: `simulate(seed)` runs a cluster with faults on a virtual clock and judges it."""

from viewproof.impl.sim.checkers import Failure
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import SimResult, simulate

__all__ = ["Failure", "SimProfile", "SimResult", "simulate"]
