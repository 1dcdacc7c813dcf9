"""Mistakes with control entries and features."""

from __future__ import annotations

from collections.abc import Iterable

from viewproof.impl.faults.stand_ins import AtNode, StandIns
from viewproof.impl.interface.messages import PrepareHeader
from viewproof.impl.replica.commit_path import CommitPath
from viewproof.impl.replica.control import Control
from viewproof.impl.replica.features import FeatureState


class KeepsCommitMin(CommitPath):
    """A control entry is executed, and not counted."""

    def raise_commit_min(self, header: PrepareHeader) -> None:
        if not header.feature:
            super().raise_commit_min(header)


class NeverEnables(FeatureState):
    """Entries enable nothing."""

    def enable(self, feature: int, op: int) -> None:
        """Nothing."""


class EnablesAtProposal(Control):
    """The primary enables what it proposes."""

    def propose(self, feature: int) -> None:
        FeatureState.enable(self.state.enabled, feature, self.state.op + 1)
        super().propose(feature)


class HashesInMapOrder(AtNode, FeatureState):
    """The order of what is hashed is this process's own, as that of a map is where hashes are seeded."""

    def hashing_order(self, fields: Iterable[str]) -> list[str]:
        names = super().hashing_order(fields)
        start = self.node % len(names)
        return names[start:] + names[:start]


class NeverChains(FeatureState):
    """No checksum is ever computed."""

    def on_executed(self, header: PrepareHeader, state_digest: int) -> None:
        """Nothing."""


class ChainsTooEarly(FeatureState):
    """The checksum runs from the first entry on, before the feature is enabled."""

    @property
    def chains(self) -> bool:
        return True


class SkipsControlEntries(FeatureState):
    """Control entries are not part of the chain."""

    def on_executed(self, header: PrepareHeader, state_digest: int) -> None:
        if not header.feature:
            super().on_executed(header, state_digest)


class RemembersAnswers(Control):
    """What a member said once counts in every round of every view."""

    def forget_view(self) -> None:
        self.round = 0

    def ask(self) -> None:
        answers = self.member_supports
        super().ask()
        self.member_supports = answers
        self.propose_features()


class AsksNobody(Control):
    """What this replica supports, all do."""

    def supported_by_all(self) -> int:
        return self.supports


STAND_INS: StandIns = {
    "control.no_offset_advance": {"commit_path": KeepsCommitMin},
    "control.applied_on_leader_only": {"features": NeverEnables, "control": EnablesAtProposal},
    "control.map_order_digest": {"features": HashesInMapOrder},
    "control.checksum_never": {"features": NeverChains},
    "control.checksum_too_early": {"features": ChainsTooEarly},
    "control.checksum_skips": {"features": SkipsControlEntries},
    "control.stale_support": {"control": RemembersAnswers},
    "control.unsupported_member": {"control": AsksNobody},
}
