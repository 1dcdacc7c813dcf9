"""The simulator's own checkers: they judge what clients and disks saw, without the spec."""

from impl.sim.checkers.agreement import AgreementChecker
from impl.sim.checkers.at_most_once import AtMostOnceChecker
from impl.sim.checkers.base import Checker, Failure, FinalState
from impl.sim.checkers.digests import DigestsChecker
from impl.sim.checkers.durability import DurabilityChecker
from impl.sim.checkers.fences import FencesChecker
from impl.sim.checkers.liveness import LivenessChecker
from impl.sim.checkers.replies import RepliesChecker
from impl.sim.checkers.tables import TablesChecker
from impl.sim.checkers.views import ViewsChecker

__all__ = [
    "AgreementChecker",
    "AtMostOnceChecker",
    "Checker",
    "DigestsChecker",
    "DurabilityChecker",
    "Failure",
    "FencesChecker",
    "FinalState",
    "LivenessChecker",
    "RepliesChecker",
    "TablesChecker",
    "ViewsChecker",
]
