"""Bounded models of the July 2026 build: its steps in the runs in which a replica takes them.

The superblock is durable at once. Left out: checkpoints, jumps ahead, rot and torn writes, doubt about the head.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewproof.spec.lang.strides import Choice, Model, Stride, World
from viewproof.spec.vsr.tigerbeetle.config import Cluster
from viewproof.spec.vsr.tigerbeetle.july_2026 import spec_2026
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT
from viewproof.spec.vsr.tigerbeetle.state_2026 import EQL, KIND, NIL, SLOTS, VIEW_CHANGE
from viewproof.spec.vsr.tigerbeetle.strides import Lacks, Strides

HISTORY = frozenset({"canonical", "canonical_view", "prepared", "acked", "promise"})
"""What only invariants read: guards that read it are claims."""
PASSING = ("current", "outer", "asked", "sent_before", "sent_last", "sent_to", "opened", "seen", "agreed")
COMMITTED = ("request", "write", "on_prepare:0", "write:0", "on_prepare_ok", "commit")
"""The first primary executed a prepare that one backup holds, and the next primary lacks."""
FAULTS = {
    "acknowledges what is not durable": Lacks((("acknowledge", "is_clean"),), "I11", "join_view_bits"),
    "commits on one acknowledgement": Lacks((("commit", "oks("), ("prepare_quorum", "oks(")), "I2", "merge_log"),
    "merges one vote": Lacks((("merge_log", "count("),), "I2", "merge_log", COMMITTED),
    "cuts without nacks": Lacks((("merge_log", "h == top"),), "I2", "merge_log", COMMITTED),
    "view.solo_keeps_view": Lacks((), "I7", "on_request"),
}
"""Name → guards that steps lack. The last one lacks a step."""


class July(Strides):
    """The strides of the family."""

    keeps_view = False
    """Does a cluster of one start in the view that it was in?"""

    def start(self, w: World) -> None:
        """Data files are made, all replicas start, and view 1 begins with an empty log (alone: the next one)."""
        for r in range(self.n):
            w.do("format_disk", r=r, d=r + 1)
            self.boot(w, r)
            if self.n > 1 and r != 0:
                w.do("start_normal", r=r)
        if self.n == 1:
            self.start_alone(w, 0)
            return
        self.enter(w, 0, 1)
        self.on_join_view(w, 1, self.message("join_view", 1, 0))
        self.merge(w, 1, 0, 0)
        self.tell_view(w, 1)
        self.start_view(w, 1)
        for r in self.others(1):
            self.on_view(w, r, self.message("view", 1, 0, 0))

    def boot(self, w: World, r: int) -> None:
        """The process starts with its superblock; the slots are decided by what is on disk."""
        v, u = w.at("durable_view", r), w.at("durable_log_view", r)
        w.do("open_superblock", r=r, v=v, w=u, k=w.at("durable_commit", r), c=0)
        for o in range(SLOTS):
            e = w.at("kept", r, o)
            w.do("recover_slot", r=r, o=o, d=EQL if e else NIL, e=e)
        for step in ("journal_recovered", "fix_headers", "find_head"):
            w.do(step, r=r)

    def start_alone(self, w: World, r: int) -> None:
        """A cluster of one executes its journal, and is normal in a view of its own."""
        if w.at("op", r):
            w.do("replay", r=r, k=w.at("op", r))
        while w.at("commit_min", r) < w.at("op", r):
            self.execute(w, r)
        if not self.keeps_view:
            w.do("next_view_alone", r=r)
            self.make_durable(w, r)
        w.do("start_single", r=r)

    def make_durable(self, w: World, r: int) -> None:
        """View and log_view become durable."""
        w.do("ask_superblock", r=r)
        w.do("view_durable", r=r)

    def header(self, w: World, r: int, o: int) -> int:
        """The header in the slot, if it is that of the op."""
        e = w.at("header", r, o % SLOTS)
        return e if w.at("p_op", e) == o else 0

    def request(self, w: World, r: int, c: int) -> None:
        """The primary prepares a client's registration, and sends it to all."""
        w.need(self.leader(w, r) == r)
        e = self.ask(w, r, c)
        w.do("take_request", r=r, h=self.prepare("request", c), c=c)
        w.do("on_request", r=r, e=e)
        self.send_prepare(w, r, e, *self.others(r))

    def write(self, w: World, r: int, o: int) -> None:
        """A prepare that is at hand becomes durable, header and body, and is acknowledged."""
        e = self.at_hand(w, r, o)
        w.do("write_start", r=r, o=o, e=e)
        w.do("write_body", r=r, o=o)
        w.do("write_done", r=r, o=o, e=e)
        if w.can("acknowledge", r=r, o=o, e=e):
            self.acknowledge(w, r, o)

    def commit(self, w: World, r: int) -> None:
        """The primary executes the head of its pipeline, and tells its commit number."""
        o = w.at("commit_min", r) + 1
        e = w.at("pipeline", r, o)
        w.need(e != 0)
        w.do("prepare_quorum", r=r, o=o)
        w.do("commit", r=r, e=e)
        w.do("note_commit", r=r, o=o)
        self.tell_commit(w, r)

    # --- view change -------------------------------------------------------------------------------------------------

    def exit_view(self, w: World, r: int) -> None:
        """A replica wants to leave its view, and tells all, itself included."""
        v = w.at("view", r)
        m = self.message("exit_view", v, r)
        w.need(v < self.views and w.at("m_kind", m) == 0)
        w.do("exit_view", r=r, m=m)
        self.to(w, r, m, *range(self.n))
        self.on_exit_view(w, r, m)

    def on_exit_view(self, w: World, r: int, m: int) -> None:
        """Who wants to leave is counted; a quorum leaves."""
        w.need(w.at("m_view", m) == w.at("view", r) and not w.at("exit_from", r, w.at("m_from", m)))
        w.do("receive", r=r, m=m)
        w.do("on_exit_view", r=r, q=w.at("m_from", m))
        if w.can("exit_quorum", r=r, k=self.n // 2 + 1):
            self.leave(w, r)

    def leave(self, w: World, r: int) -> None:
        """A quorum wants to leave the view."""
        w.do("exit_quorum", r=r, k=self.n // 2 + 1)
        self.enter(w, r, w.at("view", r) + 1)

    def enter(self, w: World, r: int, v: int) -> None:
        """A replica enters a view, durably, and offers its log to the new primary."""
        w.do("start_view_change", r=r, v=v)
        self.make_durable(w, r)
        m, leader = self.message("join_view", v, r), self.leader(w, r)
        w.do("join_view", r=r, m=m, low=0)
        for o in range(w.at("list_op", r) + 1):
            e = w.at("list_header", r, o)
            held = e != 0 and w.at("body", r, o % SLOTS) == e
            b = int(w.at("m_nack", m, o))
            w.do("join_view_bits", r=r, m=m, o=o, b=b, p=int(held))
        self.to(w, r, m, leader)
        if leader == r:
            self.on_join_view(w, r, m)

    def on_join_view(self, w: World, r: int, m: int) -> None:
        """The new primary keeps a vote, which may make it enter the view."""
        w.need(not w.at("join_of", r, w.at("m_from", m)))
        w.do("receive", r=r, m=m)
        if w.at("m_view", m) > w.at("view", r):
            self.enter(w, r, w.at("m_view", m))
            w.do("receive", r=r, m=m)
        w.do("on_join_view", r=r, q=w.at("m_from", m))

    def decisions(self, w: World) -> Iterator[Choice]:
        """A new primary, the head of the merged log, and its commit number."""
        return (
            (r, h, k)
            for r in range(self.n)
            if w.at("status", r) == VIEW_CHANGE and not w.at("join_quorum", r)
            for h in range(self.ops + 1)
            for k in range(h + 1)
        )

    def merge(self, w: World, r: int, h: int, k: int) -> None:
        """On a quorum of votes it decides the log of its view."""
        w.do("merge_log", r=r, h=h, k=k)
        votes = [w.at("join_of", r, q) for q in range(self.n)]
        newest = max(w.at("m_log_view", m) for m in votes if m)
        for o in range(1, h + 1):
            e = max(w.at("m_header", m, o) for m in votes if m and w.at("m_log_view", m) == newest)
            if self.header(w, r, o) != e:
                w.do("replace_header", r=r, o=o, e=e)
        self.make_durable(w, r)

    def repair(self, w: World, r: int, o: int, q: int) -> None:
        """A replica that lacks a prepare of its log is sent it by one that has it."""
        e = self.header(w, r, o)
        w.need(q != r and e > ROOT and bool(w.at("dirty", r, o)) and not w.at("sent", self.message("prepare", e), r))
        w.need(w.at("body", q, o) == e or w.at("pipeline", q, o) == e)
        self.send_prepare(w, q, e, r)

    def gaps(self, w: World) -> Iterator[Choice]:
        """Any op of a replica's log, and any other replica."""
        return ((r, o, q) for r, o in self.slots(w) for q in range(self.n))

    def tell_view(self, w: World, r: int) -> None:
        """The primary tells the log of its view."""
        m = self.message("view", w.at("view", r), w.at("op", r), w.at("commit_max", r))
        w.need(w.at("m_kind", m) == 0)
        w.do("send_view", r=r, m=m, low=0, n=0)
        self.to(w, r, m, *self.others(r))

    def start_view(self, w: World, r: int) -> None:
        """The primary is normal in its view."""
        w.do("start_view", r=r)

    def on_view(self, w: World, r: int, m: int) -> None:
        """A backup takes the log of a view that its primary told."""
        v, h = w.at("m_view", m), w.at("m_op", m)
        w.need(w.at("log_view", r) < v)
        w.do("receive", r=r, m=m)
        if v > w.at("view", r):
            w.do("start_view_change", r=r, v=v)
        w.do("install_log", r=r, h=h, k=max(w.at("commit_max", r), w.at("m_commit", m)))
        for o in range(1, h + 1):
            if self.header(w, r, o) != w.at("m_header", m, o):
                w.do("replace_header", r=r, o=o, e=w.at("m_header", m, o))
        w.do("follow_view", r=r)
        self.make_durable(w, r)

    def crash(self, w: World, r: int) -> None:
        """A cluster of one dies, and starts again."""
        w.need(w.at("view", r) < self.views or self.keeps_view)
        w.do("crash", r=r)
        self.boot(w, r)
        self.start_alone(w, r)

    def strides(self) -> tuple[Stride, ...]:
        """All of them."""
        local = (
            Stride("request", self.askers, self.request),
            Stride("write", self.slots, self.write),
            Stride("acknowledge", self.slots, self.acknowledge),
            Stride("commit", self.replicas, self.commit),
        )
        if self.n == 1:
            return (*local, Stride("crash", self.replicas, self.crash))
        return (
            *local,
            self.on("prepare", self.on_prepare),
            self.on("prepare_ok", self.on_prepare_ok),
            self.on("commit", self.on_commit),
            Stride("execute", self.replicas, self.execute),
            Stride("exit_view", self.replicas, self.exit_view),
            self.on("exit_view", self.on_exit_view),
            self.on("join_view", self.on_join_view),
            Stride("merge", self.decisions, self.merge),
            Stride("repair", self.gaps, self.repair),
            Stride("tell_view", self.replicas, self.tell_view),
            Stride("start_view", self.replicas, self.start_view),
            self.on("view", self.on_view),
        )


def model_2026(n: int = 2, views: int = 2, ops: int = 1, clients: int = 1, fault: str = "") -> Model:
    """`n` replicas, views up to `views` (they begin in view 1), ops 1 .. `ops`; a fault is one of `FAULTS`."""
    quorum = n // 2 + 1
    strides = July(n, views, ops, clients, KIND)
    strides.keeps_view = fault == "view.solo_keeps_view"
    spec = spec_2026(Cluster(n, quorum, quorum, nodes=n))
    lacks = FAULTS[fault].guards if fault else ()
    return Model(spec, strides.start, strides.strides(), HISTORY, frozenset(), PASSING, lacks)
