"""Mistakes in view changes."""

from __future__ import annotations

from msgspec.structs import replace

from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.durable import Quorums
from viewproof.impl.interface.messages import DoViewChange, Prepare, PrepareHeader
from viewproof.impl.replica.acknowledgements import Acknowledgements
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.target import InstallTarget
from viewproof.impl.replica.view_change import ViewChange


def halved_quorums(quorums: Quorums, replica_count: int) -> Quorums:
    """Both are (n-1)//2+1, whatever is configured; the only way round the validation."""
    broken = (replica_count - 1) // 2 + 1
    return Quorums(replication=broken, view_change=broken)


class ChoosesOwnLog(ViewChange):
    """Of an offer only the numbers are read; the log is the own one, up to the offer's op or where it ends itself."""

    def best_offer(self) -> DoViewChange:
        best, state = super().best_offer(), self.state
        end = max(state.commit_min, min(best.op, state.op))
        headers = tuple(header for header in state.log.headers(state.commit_min + 1) if header.op <= end)
        return replace(best, op=end, headers=headers)


class InstallsBlindly(Installation):
    """Bodies that are missing are taken for empty, and for written."""

    def body_of(self, header: PrepareHeader) -> Prepare | None:
        return super().body_of(header) or Prepare(header, b"")

    def is_journaled(self, prepare: Prepare) -> bool:
        return prepare.header.size != len(prepare.body) or super().is_journaled(prepare)


class RaisesLogViewAtMerge(ViewChange):
    """log_view rises when the log is chosen, with the replica's own log head."""

    def install(self, target: InstallTarget) -> None:
        state = self.state
        if state.log_view >= state.view:
            super().install(target)
            return

        def then() -> None:
            state.log_view = state.view
            self.installation.advance()

        state.target = target
        self.writes.write_superblock(
            view=state.view, log_view=state.view, head_op=state.op, head_checksum=state.head, then=then
        )


class ForgetsTail(ViewChange):
    """The uncommitted tail is neither acknowledged nor counted."""

    def take_over(self) -> None:
        self.acknowledgements.pipeline.reset(self.state.view, self.state.op)
        self.commit_path.execute_committed()


class CountsOldAcks(Acknowledgements):
    """What was counted in a view counts in later ones."""

    def forget_view(self) -> None:
        counted = self.counted
        super().forget_view()
        self.counted = counted


class KeepsOwnPrepares(Installation):
    """A new primary takes what it holds above the commit point, also where the log that it chose has another entry."""

    def body_of(self, header: PrepareHeader) -> Prepare | None:
        state, target = self.state, self.state.target
        if target is not None and target.as_primary and header.op > max(state.commit_max, target.commit):
            stale = state.log.get(header.op)
            if stale is not None:
                return stale
        return super().body_of(header)


class ChoosesShortestLog(ViewChange):
    """The smallest offer is chosen."""

    def best_offer(self) -> DoViewChange:
        return min(self.do_view_changes.values(), key=lambda offer: (offer.log_view, offer.op, offer.replica))


class TakesContradictions(Installation):
    """What is executed is not looked at."""

    def require_executed(self, what: str, view: int, op: int, headers: tuple[PrepareHeader, ...]) -> None:
        """Nothing is required."""


class GoesOnAlone(Boot):
    """The only replica goes on in its view."""

    @property
    def goes_on(self) -> bool:
        alone = self.state.replica_count == 1 and self.state.log_view == self.state.view
        return alone or super().goes_on


STAND_INS: StandIns = {
    "view.even_quorum": {"quorums": halved_quorums},
    "view.scalar_dvc_truncates_hole": {"view_change": ChoosesOwnLog},
    "view.blind_start_view_head": {"installation": InstallsBlindly},
    "view.log_view_at_merge": {"view_change": RaisesLogViewAtMerge},
    "view.pipeline_not_rebuilt": {"view_change": ForgetsTail},
    "view.acks_survive_view": {"acknowledgements": CountsOldAcks},
    "view.pipeline_after_repair": {"installation": KeepsOwnPrepares},
    "replica.contradicts_executed": {"view_change": ChoosesShortestLog, "installation": TakesContradictions},
    "view.solo_keeps_view": {"boot": GoesOnAlone},
}
