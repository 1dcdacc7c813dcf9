"""Mistakes in the client table, and in what becomes of requests."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from viewproof.impl.faults.stand_ins import AtNode, StandIns
from viewproof.impl.interface.messages import Prepare, PrepareHeader, Reply, Request
from viewproof.impl.replica.client_table import ClientTable, Slot
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.proposals import Proposal
from viewproof.impl.replica.replies import Replies
from viewproof.impl.replica.requests import RequestOutcome, Requests


class StampsCommitMax(Replies):
    """A slot is as old as commit_max was."""

    def stamp(self, header: PrepareHeader) -> tuple[int, int]:
        return self.state.commit_max, super().stamp(header)[1]


class StampsCurrentView(Replies):
    """A reply is of the view in which it is executed."""

    def stamp(self, header: PrepareHeader) -> tuple[int, int]:
        return super().stamp(header)[0], self.state.view


class RecordsAsPrimary(Replies):
    """A backup's client table stays as it is."""

    def record_executed(self, header: PrepareHeader, result: bytes) -> tuple[Reply | None, int | None]:
        return super().record_executed(header, result) if self.state.is_primary else (None, None)


class RepliesFromThePlaceBefore(Replies):
    """A reply is made of the place before the client's own: who gives the place counts from 1."""

    def record_executed(self, header: PrepareHeader, result: bytes) -> tuple[Reply | None, int | None]:
        reply, evicted = super().record_executed(header, result)
        table = self.state.client_table
        place = table.places.get(header.client)
        before = table.slots[place - 1] if place else None
        return reply if reply is None or before is None else self.reply_of(before), evicted


class EvictsInHashOrder(AtNode, ClientTable):
    """The victim is the first in the order of a hash map that each replica seeds in its own way."""

    def eviction_rank(self, slot: Slot) -> int:
        seeded = struct.pack("<QQ", self.node, slot.client)
        return int.from_bytes(hashlib.blake2b(seeded, digest_size=8).digest(), "little")


class RecordsAnySlot(ClientTable):
    """A slot may be replaced by an older one."""

    def require_newer(self, before: Slot, slot: Slot) -> None:
        """Nothing is required."""


class TakesUnknownClients(ClientTable):
    """Whoever has no slot begins."""

    @property
    def takes_unknown(self) -> bool:
        return True


class TakesSessionless(Requests):
    """A client whose session is gone begins anew."""

    def outcome_of(self, message: Request) -> RequestOutcome:
        outcome = super().outcome_of(message)
        return RequestOutcome.NEW if outcome is RequestOutcome.NO_SESSION else outcome


class TakesGaps(Requests):
    """A number above the next one is taken."""

    def outcome_of(self, message: Request) -> RequestOutcome:
        outcome = super().outcome_of(message)
        return RequestOutcome.NEW if outcome is RequestOutcome.GAP else outcome


class TakesOldRegisters(Requests):
    """Incarnations are not compared."""

    def outcome_of(self, message: Request) -> RequestOutcome:
        outcome = super().outcome_of(message)
        return outcome if message.request or outcome is RequestOutcome.IN_PROGRESS else RequestOutcome.NEW


class RecordsPrepared(NormalOperation):
    """Request numbers are recorded from their prepare on; `recorded`: (client, session) → the highest."""

    def __init__(self, *collaborators: Any) -> None:
        super().__init__(*collaborators)
        self.recorded: dict[tuple[int, int], int] = {}

    def propose(self, proposal: Proposal, event: str) -> None:
        super().propose(proposal, event)
        self._record(self.state.log[self.state.op].header)

    def accept(self, prepare: Prepare) -> bool:
        accepted = super().accept(prepare)
        if accepted:
            self._record(prepare.header)
        return accepted

    def _record(self, header: PrepareHeader) -> None:
        key = (header.client, header.session)
        self.recorded[key] = max(header.request, self.recorded.get(key, 0))


class AsksRecorded(Requests):
    """A request whose number was recorded is stale."""

    def outcome_of(self, message: Request) -> RequestOutcome:
        outcome = super().outcome_of(message)
        known = self.normal.recorded if isinstance(self.normal, RecordsPrepared) else {}
        recorded = known.get((message.client, message.session), 0)
        prepared = outcome is RequestOutcome.NEW and 0 < message.request <= recorded
        return RequestOutcome.STALE if prepared else outcome


STAND_INS: StandIns = {
    "table.evict_by_commit_max": {"replies": StampsCommitMax, "client_table": RecordsAnySlot},
    "table.evict_hash_order": {"client_table": EvictsInHashOrder},
    "table.primary_only": {"replies": RecordsAsPrimary},
    "table.evict_forgets": {"client_table": TakesUnknownClients, "requests": TakesSessionless},
    "table.gap_accepted": {"requests": TakesGaps},
    "table.record_uncommitted": {"normal": RecordsPrepared, "requests": AsksRecorded},
    "table.replayed_register": {"requests": TakesOldRegisters, "client_table": RecordsAnySlot},
    "table.reply_from_current_view": {"replies": StampsCurrentView},
    "table.reply_of_another": {"replies": RepliesFromThePlaceBefore},
}
