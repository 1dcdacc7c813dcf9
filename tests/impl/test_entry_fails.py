"""An entry that cannot be applied on one replica: it stops before the entry counts, and comes back from the others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.impl.damage import CONFIG, DamagedLink
from tests.refinement.traces import load
from viewproof.impl.interface.messages import Prepare
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
from viewproof.refinement.checker import check_run
from viewproof.refinement.verdict import AuditOptions

VICTIM = 2
BAD = 9
RIGHT = UserRequest.apply


@pytest.fixture
def link(monkeypatch: pytest.MonkeyPatch) -> DamagedLink:
    """Three replicas with a checkpoint at 6; the victim's state machine cannot apply op 9, halfway through."""

    def apply(request: UserRequest, executed: State, op: int) -> bytes:
        result = RIGHT(request, executed, op)
        if (executed.node, op) == (VICTIM, BAD):
            raise MemoryError("no room for it")
        return result

    monkeypatch.setattr(proposals.UserRequest, "apply", apply)
    return DamagedLink(VICTIM)


def stop(link: DamagedLink) -> None:
    """The victim's process ends by itself, as the server does with what a handler raises."""
    while True:
        try:
            link.ask(1)
            link.settle()
        except EntryFailedError as error:
            assert f"applying op {BAD} (request, client 1, request {BAD}, checksum " in str(error)
            assert "MemoryError('no room for it')" in str(error)
            assert f"--entry-fails {BAD}" in str(error)
            link.stop(VICTIM)
            link.queue = type(link.queue)(item for item in link.queue if item[0] != VICTIM)
            return


def test_it_stops_before_the_entry_counts_and_fails_at_each_start(link: DamagedLink) -> None:
    stop(link)
    executed = [event.m_op for event in link.events if event.event == "execute" and event.node == VICTIM]
    assert executed == list(range(1, BAD))
    for _ in range(2):
        link.start(VICTIM)
        with pytest.raises(EntryFailedError):
            for _ in range(40):
                link.tick(4)
        assert link[VICTIM].state.commit_min == BAD - 1
        link.stop(VICTIM)
    assert diagnose("d", link.file_storages[VICTIM].files).starts


def test_it_comes_back_from_a_checkpoint_of_the_others_beyond_it(link: DamagedLink, tmp_path: Path) -> None:
    stop(link)
    files = link.file_storages[VICTIM].files
    files._locked.clear()
    found = diagnose("d", files)

    def answers() -> list[object]:
        told = [replace_status(link, node) for node in (0, 1)]
        return [*told, None]

    with pytest.raises(
        TooFewAnswersError, match=r"no other replica has a checkpoint there yet \(replica 0: 6, replica 1"
    ):
        with_entry_that_fails(found, BAD, answers())  # type: ignore[arg-type]
    with pytest.raises(RecoveryError, match="the checkpoint is 6, so that entry is not applied at a start"):
        with_entry_that_fails(found, 6, answers())  # type: ignore[arg-type]
    while link[0].state.checkpoint < 12 or link[1].state.checkpoint < 12:
        link.ask(1)
        for _ in range(10):
            link.tick(4)
    found = with_entry_that_fails(found, BAD, answers())  # type: ignore[arg-type]
    assert found.recoverable
    state = recovery_superblock(answers(), VICTIM, 1, 0, found.copies)  # type: ignore[arg-type]
    reset_for_recovery(found, state, files)
    link.start(VICTIM)
    link.settle()
    assert link[VICTIM].state.digest == link[0].state.digest
    verdict = check_run("test", load(link.write_trace(tmp_path)), AuditOptions())
    assert verdict.verdict == "conforms", (verdict.missing, [str(item) for item in verdict.violations])


def replace_status(link: DamagedLink, node: int) -> object:
    """What a replica says of itself, with its checkpoint."""
    import msgspec

    return msgspec.structs.replace(link._status(node), checkpoint=link[node].state.checkpoint)


def test_no_operation_of_a_client_is_an_entry_that_fails(link: DamagedLink) -> None:
    assert replace(CONFIG, run="x").checkpoint_interval == 6
    header = link[0].state.log[1].header
    for body in (b"", b"\xc1", b"\x93" * 500, bytes(range(256)), link[0].state.log[1].body[:-1]):
        assert proposals.apply_entry(link[0].state, Prepare(header, body))
