"""The deterministic simulator: `simulate(seed)` runs a cluster with faults on a virtual clock and judges it."""

from impl.sim.checkers import Failure
from impl.sim.profile import SimProfile
from impl.sim.run import SimResult, simulate

__all__ = ["Failure", "SimProfile", "SimResult", "simulate"]
