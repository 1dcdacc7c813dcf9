"""Votes, offers, the start of a view, and logs that are installed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as changed
from typing import Any

import pytest
from msgspec.structs import replace

from tests.impl.planted.stories import story
from viewproof.impl.interface.durable import Quorums, superblock_next
from viewproof.impl.interface.effects import WriteSuperblock
from viewproof.impl.interface.messages import DoViewChange, Prepare, PrepareHeader, StartView
from viewproof.impl.replica.boot import Boot
from viewproof.impl.replica.installation import Installation
from viewproof.impl.replica.normal import NormalOperation
from viewproof.impl.replica.start_views import StartViews
from viewproof.impl.replica.state import Status
from viewproof.impl.replica.target import InstallTarget
from viewproof.impl.replica.view_change import ViewChange
from viewproof.impl.replica.writes import Writes


def entering(patch: pytest.MonkeyPatch, then: Callable[[ViewChange, set[int]], None]) -> None:
    """A view is entered; `then`, with the votes of the view before, what it should have forgotten comes back."""
    right = ViewChange._enter

    def enter(self: ViewChange, view: int, trigger: Any) -> None:
        votes = set(self.start_view_changes)
        kept = self.__dict__.setdefault("kept", {})
        kept |= {node: offer for node, offer in self.do_view_changes.items() if node != self.state.node}
        self.__dict__["send_do_view_change"] = lambda: None
        right(self, view, trigger)
        del self.__dict__["send_do_view_change"]
        then(self, votes)
        self.send_do_view_change()

    patch.setattr(ViewChange, "_enter", enter)


@story("votes for an older view count in the next", "do_view_change", "storm")
def votes_survive(patch: pytest.MonkeyPatch) -> None:
    def keep(change: ViewChange, votes: set[int]) -> None:
        change.start_view_changes |= votes

    entering(patch, keep)


@story("logs that were offered for an older view start the next", "start_view", "storm")
def offers_survive(patch: pytest.MonkeyPatch) -> None:
    def keep(change: ViewChange, votes: set[int]) -> None:
        change.do_view_changes = dict(change.__dict__["kept"]) if change.state.is_primary else {}

    entering(patch, keep)


@story("a replica that came back in a view change offers its log a second time", "do_view_change", "storm")
def offers_again(patch: pytest.MonkeyPatch) -> None:
    right = ViewChange.__init__

    def init(self: ViewChange, *collaborators: Any) -> None:
        right(self, *collaborators)
        self.may_offer, self.start_view_changes = True, {self.state.node}

    patch.setattr(ViewChange, "__init__", init)


def one_short(patch: pytest.MonkeyPatch, method: str) -> None:
    """What waits for a view-change quorum waits for one replica less."""
    right = getattr(ViewChange, method)

    def early(self: ViewChange) -> None:
        quorums = self.state.quorums
        self.state.quorums = Quorums(quorums.replication, quorums.view_change - 1)
        right(self)
        self.state.quorums = quorums

    patch.setattr(ViewChange, method, early)


@story("a log is offered on one vote less than a quorum", "do_view_change", "storm", replicas=5)
def one_vote_short(patch: pytest.MonkeyPatch) -> None:
    one_short(patch, "send_do_view_change")


@story("a view starts on one log less than a quorum", "start_view", "storm")
def one_offer_short(patch: pytest.MonkeyPatch) -> None:
    one_short(patch, "_choose_log")


@story("a new primary trims its log to what is known to be committed (Elasticsearch)", "start_view", "storm")
def trims_at_promotion(patch: pytest.MonkeyPatch) -> None:
    right = ViewChange.best_offer

    def best(self: ViewChange) -> DoViewChange:
        offer = right(self)
        commit = max(1, self.state.commit_min, self.commit_offered(offer))
        if offer.op <= commit:
            return offer
        return replace(offer, op=commit, headers=tuple(h for h in offer.headers if h.op <= commit))

    patch.setattr(ViewChange, "best_offer", best)


@story("a new primary takes its whole log for committed", "start_view", "storm")
def starts_committed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ViewChange, "commit_offered", lambda self, best: best.op)


@story("logs that were offered count as acknowledgements (Raft, figure 8)", "commit", "storm")
def offers_are_acknowledgements(patch: pytest.MonkeyPatch) -> None:
    right = ViewChange.start_view

    def start(self: ViewChange, target: InstallTarget) -> None:
        offers = [offer for offer in self.do_view_changes.values() if offer.replica != self.state.node]
        self.__dict__["take_over"] = lambda: [
            self.acknowledgements.count(op, offer.replica)
            for offer in offers
            for op in range(self.state.commit_max + 1, min(offer.op, self.state.op) + 1)
        ]
        right(self, target)
        del self.__dict__["take_over"]
        self.take_over()

    patch.setattr(ViewChange, "start_view", start)


@story(
    "a primary stamps its prepares with a later view that it has seen (hashicorp/raft)", "on_request", "late-views", 7
)
def stamps_later_view(patch: pytest.MonkeyPatch) -> None:
    right, seen = NormalOperation.propose, StartViews.on_later_view

    def note(self: StartViews, view: int) -> None:
        self.state.__dict__["later"] = view
        seen(self, view)

    def propose(self: NormalOperation, proposal: Any, event: str) -> None:
        own = self.state.view
        self.state.view = max(own, self.state.__dict__.get("later", 0))
        right(self, proposal, event)
        self.state.view = own

    patch.setattr(StartViews, "on_later_view", note)
    patch.setattr(NormalOperation, "propose", propose)


@story("a start_view of an older view is installed", "on_start_view", "late-views")
def installs_older_view(patch: pytest.MonkeyPatch) -> None:
    right = StartViews.on_start_view

    def take(self: StartViews, message: StartView, on_installed: Any = None) -> None:
        state = self.state
        if state.log_view < message.view < state.view and state.status is Status.VIEW_CHANGE:
            state.view = message.view
        right(self, message, on_installed)

    patch.setattr(StartViews, "on_start_view", take)


@story("a late start_view of the own view takes the place of a newer log", "on_start_view", "late-views")
def installs_older_log(patch: pytest.MonkeyPatch) -> None:
    right, superseded = StartViews._on_start_view_again, Installation._is_superseded

    def again(self: StartViews, message: StartView) -> None:
        state = self.state
        if state.commit_min <= message.op < state.op and state.log.connects(message.headers):
            self.install(message, self.on_installed, with_snapshot=False)
        else:
            right(self, message)

    def is_superseded(self: Installation, target: InstallTarget) -> bool:
        own = target.view == self.state.view and self.state.status is Status.NORMAL
        return not (own and target.snapshot is None) and superseded(self, target)

    patch.setattr(StartViews, "_on_start_view_again", again)
    patch.setattr(Installation, "_is_superseded", is_superseded)


@story("a log is acknowledged before its bodies are in the journal (ZooKeeper)", "on_start_view", "storm")
def acknowledges_unflushed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Installation, "is_journaled", lambda self, prepare: True)


@story("who installs a log keeps its own entry where it has one at that op", "on_start_view", "storm")
def keeps_own_entries(patch: pytest.MonkeyPatch) -> None:
    right = Installation.body_of

    def body_of(self: Installation, header: PrepareHeader) -> Prepare | None:
        target, own = self.state.target, self.state.log.get(header.op)
        inside = target is not None and not target.as_primary and self.state.commit_min < header.op < target.op
        return own if inside and own is not None else right(self, header)

    patch.setattr(Installation, "body_of", body_of)


@story("a backup takes the op of a start_view for its commit number", "on_start_view", "storm")
def op_is_commit(patch: pytest.MonkeyPatch) -> None:
    right = StartViews.on_installed

    def installed(self: StartViews, target: InstallTarget, event: str = "on_start_view", **found: Any) -> None:
        right(self, changed(target, commit=target.op), event, **found)

    patch.setattr(StartViews, "on_installed", installed)


@story("the flush of a vote is ignored, and a crash takes it back (hashicorp/raft)", "restart", "lost-superblocks")
def vote_not_flushed(patch: pytest.MonkeyPatch) -> None:
    right, done = Writes.write_superblock, Writes.on_superblock_done

    def write(self: Writes, *, then: Callable[[], None], snapshot: Any = None, **block: Any) -> None:
        if snapshot is not None or self.checkpoint_writing is not None or block["view"] == self.state.superblock.view:
            right(self, then=then, snapshot=snapshot, **block)
            return
        self.state.superblock = superblock_next(self.state.superblock, clock=self.state.clock, checkpoint=None, **block)
        self.out.effects.append(WriteSuperblock(self.state.superblock))
        then()

    def written(self: Writes, superblock: Any) -> None:
        if superblock is self.superblock_writing:
            done(self, superblock)

    patch.setattr(Writes, "write_superblock", write)
    patch.setattr(Writes, "on_superblock_done", written)


@story("a normal backup answers who asks for a start_view", "send_start_view", "storm")
def backup_answers(patch: pytest.MonkeyPatch) -> None:
    right, ask = StartViews.on_request_start_view, StartViews.ask

    def answer(self: StartViews, message: Any) -> None:
        state = self.state
        if state.status is Status.NORMAL and message.view == state.view and not state.is_primary:
            self.out.emit("send_start_view", m_type="start_view", m_view=state.view, m_op=state.op)
        right(self, message)

    def ask_all(self: StartViews, to: int, question: Any) -> None:
        for node in self.state.others:
            ask(self, node, question)

    patch.setattr(StartViews, "on_request_start_view", answer)
    patch.setattr(StartViews, "ask", ask_all)


@story("a primary that comes back leads on in its view", "restart", "crashes")
def leads_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Boot, "goes_on", property(lambda self: self.state.log_view == self.state.view))
