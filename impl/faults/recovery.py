"""Mistakes in mending a damaged log."""

from __future__ import annotations

from viewproof.impl.faults.stand_ins import StandIns
from viewproof.impl.interface.messages import Nack, Prepare, RequestPrepare, StartView
from viewproof.impl.replica.log_recovery import LogRecovery
from viewproof.impl.replica.prepare_service import PrepareService
from viewproof.impl.replica.state import LogRepair, Status


class NacksDrained(PrepareService):
    """What is drained is nacked, too."""

    def may_nack(self, message: RequestPrepare, op: int, view: int) -> bool:
        return self.state.status is Status.VIEW_CHANGE and self.state.view > message.view and view >= 0


class EndsBelowDamage(LogRecovery):
    """The log ends below what is lost."""

    def begin(self) -> None:
        repair, base = self.state.log_repair, self.state.log
        if repair is None:
            super().begin()
            return
        whole: list[Prepare] = []
        for prepare in sorted(repair.held.values(), key=lambda each: (each.header.op, -each.header.view)):
            before = whole[-1].header.checksum if whole else base.base_checksum
            if prepare.header.op == base.base + len(whole) + 1 and prepare.header.parent == before:
                whole.append(prepare)
        self.boot_whole(whole)


class IgnoresNacks(LogRecovery):
    """What is asked for must be somewhere."""

    def on_nack(self, message: Nack) -> None:
        self.out.ignore("nack: not counted")


class BootsEmptyAsNew(LogRecovery):
    """A journal that holds nothing is that of a new replica."""

    def begin(self) -> None:
        state, repair = self.state, self.state.log_repair
        if repair is not None and not repair.held:
            state.log_repair = None
            state.view = state.log_view = 0
        super().begin()


class TakesAnyAnswer(LogRecovery):
    """An answer to an earlier process of this replica counts."""

    def answers(self, nonce: int) -> bool:
        return True


class TakesAnyStartView(LogRecovery):
    """A start_view may end below the own log."""

    def covers(self, repair: LogRepair, message: StartView) -> bool:
        return True


STAND_INS: StandIns = {
    "nack.below_window": {"prepare_service": NacksDrained},
    "nack.clears_faulty": {"log_recovery": EndsBelowDamage},
    "nack.not_nacked_is_present": {"log_recovery": IgnoresNacks},
    "recover.empty_journal_is_new": {"log_recovery": BootsEmptyAsNew},
    "recover.stale_nonce": {"log_recovery": TakesAnyAnswer},
    "recover.head_from_old_start_view": {"log_recovery": TakesAnyStartView},
}
