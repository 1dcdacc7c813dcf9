"""Bounded models of the July 2026 build: its steps in the runs in which a replica takes them.

The superblock is durable at once. Left out: checkpoints, jumps ahead, torn writes, slots that rot while the process
runs.
"""

from __future__ import annotations

from collections.abc import Iterator

from viewproof.spec.lang.strides import Choice, Model, Stride, World
from viewproof.spec.vsr.tigerbeetle.config import Cluster
from viewproof.spec.vsr.tigerbeetle.july_2026 import spec_2026
from viewproof.spec.vsr.tigerbeetle.mistakes_2026 import MISTAKES
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT
from viewproof.spec.vsr.tigerbeetle.state_2026 import EQL, KIND, NIL, RECOVERING_HEAD, SLOTS, VIEW_CHANGE, VSR
from viewproof.spec.vsr.tigerbeetle.strides import Sizes, Strides

HISTORY = frozenset({"canonical", "canonical_view", "prepared", "acked", "promise"})
"""What only invariants read: guards that read it are claims."""
PASSING = ("current", "outer", "asked", "sent_before", "sent_last", "sent_to", "opened", "seen", "agreed")


class July(Strides):
    """The strides of the family."""

    said = ("join_view", "prepare_ok", "view")

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
        self.on_join_view(w, 1, self.message.kinds["join_view"][-1])
        self.merge(w, 1, 0, 0)
        self.tell_view(w, 1)
        self.start_view(w, 1)
        for r in self.others(1):
            self.on_view(w, r, self.message("view", 1, 0, 0))

    def boot(self, w: World, r: int, rot: int = 0) -> None:
        """The process starts with its superblock and the headers in it; the slots are decided by what is on disk, that
        of op `rot` is broken.
        """
        v, u, k = (w.at(f"durable_{name}", r) for name in ("view", "log_view", "commit"))
        listed = [(o, w.at("list_header", r, o)) for o in range(w.at("list_op", r), w.at("list_low", r) - 1, -1)]
        w.do("open_superblock", r=r, v=v, w=u, k=k, c=0)
        for o, e in listed:
            w.do("read_list", r=r, o=o, e=e, low=o)
        for o in range(SLOTS):
            e, broken = w.at("kept", r, o), o == rot != 0
            w.do("recover_slot", r=r, o=o, d=VSR if broken else EQL if e else NIL, e=0 if broken else e)
        for step in ("journal_recovered", "fix_headers", "find_head"):
            w.do(step, r=r)

    def start_alone(self, w: World, r: int) -> None:
        """A cluster of one executes its journal, and is normal in a view of its own."""
        if w.at("op", r):
            w.do("replay", r=r, k=w.at("op", r))
        while w.at("commit_min", r) < w.at("op", r):
            self.execute(w, r)
        if self.mistake != "view.solo_keeps_view":
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
        self.executed(w, r)
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
        if self.mistake != "votes before its view is durable":
            self.make_durable(w, r)
        log = [w.at("list_header", r, o) for o in range(w.at("list_op", r) + 1)]
        held = [e != 0 and w.at("body", r, o % SLOTS) == e for o, e in enumerate(log)]
        lost = [bool(w.at("faulty", r, o % SLOTS)) for o in range(len(log))]
        m, leader = self.message("join_view", v, r, w.at("log_view", r), *log, *held, *lost), self.leader(w, r)
        w.do("join_view", r=r, m=m, low=0)
        for o, here in enumerate(held):
            w.do("join_view_bits", r=r, m=m, o=o, b=int(w.at("m_nack", m, o)), p=int(here))
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
        for o in range(w.at("commit_max", r) + 1, h + 1):
            e = self.header(w, r, o)
            held = any(w.at("m_header", m, o) == e and w.at("m_present", m, o) for m in votes if m)
            w.claim(held, "merge_log", "what a merge keeps is held by a voter (L1)")
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

    def on_get_view(self, w: World, r: int, m: int) -> None:
        """Asked for it, a primary tells the log of its view, under the nonce of the question."""
        asker, n = w.at("m_from", m), w.at("m_nonce", m)
        answer = self.message("view", w.at("view", r), w.at("op", r), w.at("commit_max", r), n)
        w.need(w.at("nonce", asker) == n and not w.at("sent", answer, asker))
        w.do("receive", r=r, m=m)
        w.do("send_view", r=r, m=answer, low=0, n=n)
        self.to(w, r, answer, asker)

    def start_view(self, w: World, r: int) -> None:
        """The primary is normal in its view, which it told before."""
        told = self.message.kinds.get("view", ())
        w.need(any(w.at("m_from", m) == r and w.at("m_view", m) == w.at("view", r) for m in told))
        w.do("start_view", r=r)

    def on_view(self, w: World, r: int, m: int) -> None:
        """A backup takes the log of a view that its primary told."""
        v, h = w.at("m_view", m), w.at("m_op", m)
        doubt = w.at("status", r) == RECOVERING_HEAD
        w.need(w.at("log_view", r) < v or doubt)
        w.do("receive", r=r, m=m)
        if v > w.at("view", r) and not doubt:
            w.do("start_view_change", r=r, v=v)
        w.do("install_log", r=r, h=h, k=max(w.at("commit_max", r), w.at("m_commit", m)))
        for o in range(1, h + 1):
            if self.header(w, r, o) != w.at("m_header", m, o):
                w.do("replace_header", r=r, o=o, e=w.at("m_header", m, o))
        w.do("follow_view", r=r)
        self.make_durable(w, r)

    def crash(self, w: World, r: int) -> None:
        """A cluster of one dies, and starts again."""
        w.need(w.at("view", r) < self.views or self.mistake == "view.solo_keeps_view")
        w.do("crash", r=r)
        self.boot(w, r)
        self.start_alone(w, r)

    def lose_memory(self, w: World, r: int, rot: int) -> None:
        """A replica of several dies, and starts again with its superblock: it goes on with the view change that it was
        in, or is normal, or leaves the view that it led; unsure of its head, it asks for the log.
        """
        w.count("crashes", self.sizes.crashes)
        if rot:
            w.count("rots", self.sizes.rots)
        w.do("crash", r=r)
        self.boot(w, r, rot)
        o, v = w.at("op", r), w.at("view", r)
        mine = [m for kind in self.said for m in self.message.kinds.get(kind, ()) if w.at("m_from", m) == r]
        w.claim(all(w.at("m_view", m) <= v for m in mine), "open_superblock", "views that were said are kept (I6)")
        if o and not self.header(w, r, o):
            w.do("put_listed_header", r=r, o=o, e=w.at("list_header", r, o))
        if w.at("log_view", r) < v:
            self.enter(w, r, v)
        elif w.can("start_normal", r=r):
            w.do("start_normal", r=r)
        elif w.can("start_view_change", r=r, v=v + 1):
            w.need(v < self.views)
            self.enter(w, r, v + 1)
        else:
            self.ask_view(w, r)

    def ask_view(self, w: World, r: int) -> None:
        """In doubt about its head a replica asks the primary of its view."""
        nonce = w.at("crashes")
        m = self.message("get_view", r, nonce)
        w.do("doubt_head", r=r)
        w.do("ask_view", r=r, m=m, v=w.at("view", r), n=nonce)
        self.to(w, r, m, *self.others(r))

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
        crashes = (
            Stride("crash", self.crashes, self.lose_memory),
            self.on("get_view", self.on_get_view, every=True),
        )
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
            *(crashes if self.sizes.crashes else ()),
        )


def model_2026(mistake: str = "", **sizes: int) -> Model:
    """The model of a size (`Sizes`; they begin in view 1, of two if `views` is not said), with one of `MISTAKES`."""
    how, size = MISTAKES.get(mistake), Sizes(**{"views": 2, **sizes})
    quorum = size.n // 2 + 1
    strides = July(size, KIND, mistake)
    spec = spec_2026(Cluster(size.n, quorum, quorum, nodes=size.n))
    return Model(
        spec, strides.start, strides.strides(), HISTORY, frozenset(), PASSING,
        how.guards if how else (), how.instead if how else (), ("crashes", "rots"),
    )  # fmt: skip
