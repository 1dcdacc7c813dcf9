"""The simulator's own checkers: they judge what clients and disks saw, without the spec."""

from viewproof.impl.sim.checkers.acknowledgements import AcknowledgementsChecker
from viewproof.impl.sim.checkers.agreement import AgreementChecker
from viewproof.impl.sim.checkers.at_most_once import AtMostOnceChecker
from viewproof.impl.sim.checkers.base import Checker, Failure, FinalState
from viewproof.impl.sim.checkers.bounds import BoundsChecker
from viewproof.impl.sim.checkers.digests import DigestsChecker
from viewproof.impl.sim.checkers.durability import DurabilityChecker
from viewproof.impl.sim.checkers.features import FeaturesChecker
from viewproof.impl.sim.checkers.fences import FencesChecker
from viewproof.impl.sim.checkers.later_views import LaterViewsChecker
from viewproof.impl.sim.checkers.liveness import LivenessChecker
from viewproof.impl.sim.checkers.offsets import OffsetsChecker
from viewproof.impl.sim.checkers.promises import PromisesChecker
from viewproof.impl.sim.checkers.replies import RepliesChecker
from viewproof.impl.sim.checkers.snapshots import SnapshotsChecker
from viewproof.impl.sim.checkers.stalls import StallsChecker
from viewproof.impl.sim.checkers.tables import TablesChecker
from viewproof.impl.sim.checkers.views import ViewsChecker

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
    "LaterViewsChecker",
    "LivenessChecker",
    "OffsetsChecker",
    "PromisesChecker",
    "RepliesChecker",
    "SnapshotsChecker",
    "StallsChecker",
    "TablesChecker",
    "ViewsChecker",
]
