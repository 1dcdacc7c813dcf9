"""A replica whose promises are lost takes part in nothing until a start_view answers its own question."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.impl.damage import DamagedLink
from tests.impl.power import isolate
from viewproof.impl.interface.messages import PreVote, RequestStartView, StartView
from viewproof.impl.replica import Status

VICTIM = 2


def lost() -> tuple[DamagedLink, list[StartView]]:
    """Three replicas in view 1, of which the victim lost all and hears nothing; the start_views it got before."""
    link = DamagedLink(VICTIM)
    link.ask(1)
    link.change_view(1)
    link.settle()
    old = [message for _, to, message in link.sent if to == VICTIM and isinstance(message, StartView)]
    assert old
    for _ in range(3):
        link.ask(1)
    link.settle()
    link.stop(VICTIM)
    link.lose = isolate(VICTIM)
    for copy in range(4):
        link.file("superblock").content[copy * 4096] ^= 1
    link.file("superblock").durable = bytearray(link.file("superblock").content)
    link.file_storages[VICTIM].files._locked.clear()
    link._recover()
    return link, old


def test_it_is_silent_whatever_it_hears() -> None:
    link, old = lost()
    known = len(link.sent)
    heard = [message for _, to, message in link.sent if to == VICTIM]
    for message in (*heard, *old):
        link.deliver(VICTIM, message)
        link.run()
        assert link[VICTIM].state.status is Status.RECOVERING
    link.tick(200, VICTIM)
    said = {type(message) for source, _, message in link.sent[known:] if source == VICTIM}
    assert said == {RequestStartView, PreVote}
    assert link[VICTIM].state.superblock.recovery


@pytest.mark.parametrize("nonce", ["none", "another", "its own"])
def test_only_an_answer_to_its_question_brings_it_back(nonce: str) -> None:
    link, _ = lost()
    superblock = link[VICTIM].state.superblock
    primary = link[link[0].state.view % 3]
    answer = primary.start_views._message(primary.state.log.headers(1), 1)
    number = {"none": 0, "another": superblock.recovery + 2, "its own": superblock.recovery}[nonce]
    link.lose = lambda source, to, message: isinstance(message, StartView)
    link.deliver(VICTIM, replace_nonce(answer, number))
    link.run()
    link.tick(60)
    back = link[VICTIM].state.status is Status.NORMAL
    assert back == (nonce == "its own")
    assert bool(link[VICTIM].state.superblock.recovery) != back


def replace_nonce(message: StartView, nonce: int) -> StartView:
    fields = {name: getattr(message, name) for name in message.__struct_fields__}
    return StartView(**fields | {"nonce": nonce})


def test_it_stays_silent_over_restarts() -> None:
    link, _ = lost()
    nonce = link[VICTIM].state.superblock.recovery
    link.config = replace(link.config, nonce=77)
    for _ in range(3):
        link.stop(VICTIM)
        link.start(VICTIM)
        assert (link[VICTIM].state.status, link[VICTIM].state.superblock.recovery) == (Status.RECOVERING, nonce)
    link.lose = lambda source, to, message: False
    link.settle()
    assert link[VICTIM].state.superblock.recovery == 0
    assert link.replicas[VICTIM].state.view >= 1
