"""Mistakes that break no promise: the replicas stand still, or leave what is healthy."""

from __future__ import annotations

from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.effects import IoEffect, WriteSuperblock
from viewproof.impl.interface.messages import Request, StartViewChange
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.pace import Pace
from viewproof.impl.replica.pre_votes import PreVotes
from viewproof.impl.replica.requests import RequestOutcome, Requests
from viewproof.impl.replica.scrub import Scrub
from viewproof.impl.replica.snapshot_recovery import SnapshotRecovery
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.state import Status
from viewproof.impl.replica.writes import Writes


class MovesAlone(PreVotes):
    """One that wants to leave is enough."""

    def quorum_wants(self) -> bool:
        return True


class FollowsNobody(PreVotes):
    """The votes of others are no reason to go."""

    def follows(self, message: StartViewChange) -> bool:
        return False


class HoldsOn(PreVotes):
    """The vote of the own primary is one like any other."""

    def follows(self, message: StartViewChange) -> bool:
        return self.state.status is not Status.NORMAL or self.quorum_wants()


class OverhearsViews(StartViews):
    """Nobody is asked for the log of a view that has begun meanwhile."""

    def on_later_view(self, view: int) -> None:
        self.out.ignore("later view: not looked at")


class HearsItself(NormalOperation):
    """A primary takes it that it is heard."""

    @property
    def hears_quorum(self) -> bool:
        return True


class StaysSlow(Pace):
    """The pace of the own journal is not looked at."""

    @property
    def is_slow(self) -> bool:
        return False


class DropsLateRegisters(Requests):
    """A register that comes too late has no answer."""

    def _send_eviction(self, message: Request, outcome: RequestOutcome) -> None:
        if message.request:
            super()._send_eviction(message, outcome)


class ForgetsSuperblocks(Writes):
    """A superblock write that failed is not made again."""

    def retry_later(self, io: IoEffect) -> None:
        if not isinstance(io, WriteSuperblock):
            super().retry_later(io)


class WantsOwnSnapshot(SnapshotRecovery):
    """No snapshot but the own is taken, though nobody has it any more."""

    def take_any(self) -> None:
        """Asks again."""
        if self.lost is not None:
            self.lost.unanswered = 0


class NeverScrubs(Scrub):
    """What nobody reads is not looked at."""

    def on_tick(self) -> None:
        return


STAND_INS: StandIns = {
    "view.one_vote_moves": {"pre_votes": MovesAlone},
    "view.follows_nobody": {"pre_votes": FollowsNobody},
    "view.overhears": {"start_views": OverhearsViews},
    "view.holds_on": {"pre_votes": HoldsOn},
    "view.deaf_primary": {"normal": HearsItself},
    "view.slow_primary": {"pace": StaysSlow},
    "table.late_register": {"requests": DropsLateRegisters},
    "recover.own_snapshot_only": {"snapshot_recovery": WantsOwnSnapshot},
    "storage.forgets_superblock": {"writes": ForgetsSuperblocks},
    "storage.never_scrubs": {"scrub": NeverScrubs},
}
