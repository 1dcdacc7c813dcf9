"""The simulator's own checkers: they judge what clients and disks saw, without the spec."""

from impl.sim.checkers.acknowledgements import AcknowledgementsChecker
from impl.sim.checkers.agreement import AgreementChecker
from impl.sim.checkers.at_most_once import AtMostOnceChecker
from impl.sim.checkers.base import Checker, Failure, FinalState
from impl.sim.checkers.bounds import BoundsChecker
from impl.sim.checkers.digests import DigestsChecker
from impl.sim.checkers.durability import DurabilityChecker
from impl.sim.checkers.features import FeaturesChecker
from impl.sim.checkers.fences import FencesChecker
from impl.sim.checkers.liveness import LivenessChecker
from impl.sim.checkers.offsets import OffsetsChecker
from impl.sim.checkers.promises import PromisesChecker
from impl.sim.checkers.replies import RepliesChecker
from impl.sim.checkers.snapshots import SnapshotsChecker
from impl.sim.checkers.tables import TablesChecker
from impl.sim.checkers.views import ViewsChecker

__all__ = [
    "AcknowledgementsChecker",
    "AgreementChecker",
    "AtMostOnceChecker",
    "BoundsChecker",
    "Checker",
    "DigestsChecker",
    "DurabilityChecker",
    "Failure",
    "FeaturesChecker",
    "FencesChecker",
    "FinalState",
    "LivenessChecker",
    "OffsetsChecker",
    "PromisesChecker",
    "RepliesChecker",
    "SnapshotsChecker",
    "TablesChecker",
    "ViewsChecker",
]
