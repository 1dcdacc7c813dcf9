"""An entry that cannot be applied on one replica: it stops before the entry counts, and comes back from the others."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import msgspec
import pytest

from tests.impl.damage import DamagedLink
from tests.impl.test_power_cuts import require_conforms
from viewproof.impl.interface.messages import Prepare
from viewproof.impl.net.framing import Status
from viewproof.impl.net.recovery import (
    RecoveryError,
    TooFewAnswersError,
    recovery_superblock,
    with_entry_that_fails,
)
from viewproof.impl.replica import proposals
from viewproof.impl.replica.proposals import EntryFailedError, UserRequest
from viewproof.impl.replica.state import State
from viewproof.impl.storage.recover import diagnose, reset_for_recovery

VICTIM = 2
BAD = 9
RIGHT = UserRequest.apply


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> DamagedLink:
    """Three replicas with a checkpoint at 6; the victim's state machine fails at op 9, when it is done with half."""

    def apply(request: UserRequest, executed: State, op: int) -> bytes:
        result = RIGHT(request, executed, op)
        if (executed.node, op) == (VICTIM, BAD):
            raise MemoryError("no room for it")
        return result

    monkeypatch.setattr(proposals.UserRequest, "apply", apply)
    return DamagedLink(VICTIM)


def run_until_failure(link: DamagedLink, requests: int) -> None:
    """Requests, and time that passes; raises what a handler raises."""
    for _ in range(requests):
        link.ask(1)
        link.settle()
    for _ in range(40):
        link.tick(4)


def stop(link: DamagedLink) -> None:
    """The victim's process ends by itself, as the server does with what a handler raises."""
    with pytest.raises(EntryFailedError) as raised:
        run_until_failure(link, BAD)
    for text in (
        f"applying op {BAD} (request, client 1, request {BAD}",
        "MemoryError('no room",
        f"--entry-fails {BAD}",
    ):
        assert text in str(raised.value)
    link.stop(VICTIM)
    link.queue = deque(item for item in link.queue if item[0] != VICTIM)


def answers(link: DamagedLink) -> list[Status | None]:
    """What the replicas say of themselves."""
    told = (msgspec.structs.replace(link._status(node), checkpoint=link[node].state.checkpoint) for node in (0, 1))
    return [*told, None]


def test_it_stops_before_the_entry_counts_and_fails_at_each_start(link: DamagedLink) -> None:
    stop(link)
    executed = [event.m_op for event in link.events if event.event == "execute" and event.node == VICTIM]
    assert executed == list(range(1, BAD))
    for _ in range(2):
        link.start(VICTIM)
        with pytest.raises(EntryFailedError):
            run_until_failure(link, 0)
        assert link[VICTIM].state.commit_min == BAD - 1
        link.stop(VICTIM)
    assert diagnose("d", link.file_storages[VICTIM].files).starts


def test_it_comes_back_from_a_checkpoint_of_the_others_beyond_it(link: DamagedLink, tmp_path: Path) -> None:
    stop(link)
    files = link.file_storages[VICTIM].files
    files._locked.clear()
    found = diagnose("d", files)
    with pytest.raises(TooFewAnswersError, match=r"no other replica has a checkpoint there yet \(replica 0: 6, "):
        with_entry_that_fails(found, BAD, answers(link))
    with pytest.raises(RecoveryError, match="the checkpoint is 6, so that entry is not applied at a start"):
        with_entry_that_fails(found, 6, answers(link))
    while link[0].state.checkpoint < 12 or link[1].state.checkpoint < 12:
        link.ask(1)
        for _ in range(10):
            link.tick(4)
    found = with_entry_that_fails(found, BAD, answers(link))
    assert found.recoverable
    reset_for_recovery(found, recovery_superblock(answers(link), VICTIM, 1, 0, found.copies), files)
    link.start(VICTIM)
    link.settle()
    assert link[VICTIM].state.digest == link[0].state.digest
    require_conforms(link, tmp_path)


def test_no_operation_of_a_client_is_an_entry_that_fails(link: DamagedLink) -> None:
    header = link[0].state.log[1].header
    for body in (b"", b"\xc1", b"\x93" * 500, bytes(range(256)), link[0].state.log[1].body[:-1]):
        assert proposals.apply_entry(link[0].state, Prepare(header, body))
