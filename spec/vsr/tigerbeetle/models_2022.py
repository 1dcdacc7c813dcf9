"""Bounded models of the June 2022 build: its steps in the runs in which a replica takes them.

Left out: headers asked for, torn writes, slots that rot while the process runs. Jumps ahead, and votes with fewer
headers than there are, are tried only where a mistake needs them.
"""

from __future__ import annotations

from viewproof.spec.lang.strides import Model, Stride, World
from viewproof.spec.vsr.tigerbeetle.config import Cluster
from viewproof.spec.vsr.tigerbeetle.june_2022 import spec_2022
from viewproof.spec.vsr.tigerbeetle.mistakes_2022 import GAPS, MISTAKES, STALE_PIPELINE
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT
from viewproof.spec.vsr.tigerbeetle.state_2022 import EQL, KIND, NIL, NORMAL, RECOVERING, SLOTS, VIEW_CHANGE, VSR
from viewproof.spec.vsr.tigerbeetle.strides import Sizes, Strides

HISTORY = frozenset({"canonical", "canonical_view", "prepared", "acked", "promise", "took_part", "promised"})
"""What only invariants read: guards that read it are claims."""
PASSING = ("current", "walk_of", "walk_top", "walk_left", "walked")
EMPTY_JOURNAL = frozenset({"recover_empty", "finish_recovery", "send_nack"})
"""Steps which the build takes where they are not safe, once a process that lost its memory takes part: conditions."""


class June(Strides):
    """The strides of the family."""

    def start(self, w: World) -> None:
        """All replicas have started for the first time: normal in view 0, with an empty log."""
        for r in range(self.n):
            w.do("set_up", r=r)
            self.boot(w, r)
            w.do("recover_empty", r=r)

    def boot(self, w: World, r: int, rot: int = 0) -> None:
        """The slots of r's journal are decided by what is on disk; that of op `rot` is broken."""
        for o in range(SLOTS):
            held = w.at("disk_body", r, o) != 0
            broken = o == rot != 0
            w.do("recover_slot", r=r, o=o, d=VSR if broken else EQL if held else NIL, b=int(held and not broken))
        w.do("journal_recovered", r=r)

    def header(self, w: World, r: int, o: int) -> int:
        """The header of the slot."""
        return w.at("entry", r, o)

    def headers(self, w: World, r: int, low: int = 0) -> int:
        """How many headers r's journal has from an op up to its head."""
        return sum(self.header(w, r, o) != 0 for o in range(low, w.at("op", r) + 1))

    def tells(self, w: World, r: int, kind: str, *more: int) -> int:
        """The number of a message that tells r's log as it is."""
        log = [self.header(w, r, o) for o in range(1, w.at("op", r) + 1)]
        return self.message(kind, r, *(w.at(name, r) for name in ("view", "log_view", "commit_max")), *more, *log)

    def request(self, w: World, r: int, c: int) -> None:
        """The primary prepares a client's registration, and sends it to all."""
        w.need(self.leader(w, r) == r)
        e = self.ask(w, r, c)
        w.do("on_request", r=r, e=e)
        self.send_prepare(w, r, e, *self.others(r))

    def write(self, w: World, r: int, o: int) -> None:
        """A prepare that is at hand becomes durable, header and body, and is acknowledged."""
        e = self.at_hand(w, r, o)
        if w.at("nack_op", r) == o:
            w.do("stop_nacks", r=r)
        w.do("write_start", r=r, o=o, e=e)
        w.do("write_body", r=r, o=o)
        w.do("write_headers_start", r=r, lo=0, o=o)
        w.do("write_headers_done", r=r, lo=0)
        w.do("write_done", r=r, o=o, e=e)
        if w.can("acknowledge", r=r, o=o, e=e):
            self.acknowledge(w, r, o)

    def commit(self, w: World, r: int) -> None:
        """The primary executes the head of its pipeline, and tells its commit number."""
        w.do("commit", r=r, e=w.at("pipeline", r, w.at("commit_min", r) + 1))
        self.executed(w, r)
        self.tell_commit(w, r)

    # --- view change -------------------------------------------------------------------------------------------------

    def enter(self, w: World, r: int, v: int) -> None:
        """A replica enters a view, and says so."""
        w.do("start_view_change", r=r, v=v)
        m = self.message("start_view_change", v, r)
        w.do("send_start_view_change", r=r, m=m)
        self.to(w, r, m, *self.others(r))

    def timeout(self, w: World, r: int) -> None:
        """A replica leaves its view."""
        w.need(w.at("view", r) < self.views)
        self.enter(w, r, w.at("view", r) + 1)

    def on_start_view_change(self, w: World, r: int, m: int) -> None:
        """A start_view_change is counted; on a quorum the replica offers its log. More of them change nothing."""
        w.need(w.at("m_view", m) > w.at("view", r) or not w.at("svc_quorum", r))
        w.do("receive", r=r, m=m)
        if w.at("m_view", m) > w.at("view", r):
            self.enter(w, r, w.at("m_view", m))
        w.do("on_start_view_change", r=r, q=w.at("m_from", m))
        if not w.can("start_view_change_quorum", r=r):
            return
        w.do("start_view_change_quorum", r=r)
        top, leader = w.at("op", r), self.leader(w, r)
        low = top if self.mistake == "nack.below_window" else 0
        vote = self.tells(w, r, "do_view_change", low)
        w.do("do_view_change", r=r, m=vote, low=low, h=self.headers(w, r, low))
        self.to(w, r, vote, leader)
        if leader == r:
            self.on_do_view_change(w, r, vote)

    def on_do_view_change(self, w: World, r: int, m: int) -> None:
        """The new primary keeps a vote; once it has merged, it needs no more."""
        w.need(not w.at("dvc_quorum", r))
        w.do("receive", r=r, m=m)
        w.do("on_do_view_change", r=r, q=w.at("m_from", m))

    def merge(self, w: World, r: int, b: int) -> None:
        """On a quorum of votes it takes the log of the largest, b's, and the headers below its head."""
        w.do("do_view_change_quorum", r=r)
        votes = [w.at("dvc_of", r, q) for q in range(self.n)]
        w.do("merge_log", r=r, b=b, k=max(w.at("m_commit", m) for m in votes if m))
        self.repair_headers(w, r)

    def repair_headers(self, w: World, r: int) -> None:
        """Headers below the head are those that it is linked to, as far as messages brought them."""
        for o in range(w.at("op", r) - 1, w.at("commit_min", r), -1):
            e, here = w.at("p_parent", self.header(w, r, o + 1)), self.header(w, r, o)
            if here != e and w.can("repair_header", r=r, o=o, e=e, g=2 if here else 0):
                w.do("repair_header", r=r, o=o, e=e, g=2 if here else 0)

    def fetch(self, w: World, r: int, o: int) -> None:
        """A replica asks for a prepare of its log that it has not got; the new primary then waits for nacks, too."""
        e = self.header(w, r, o)
        m = self.message("request_prepare", w.at("view", r), r, o, e)
        w.need(e > ROOT and bool(w.at("dirty", r, o)) and w.at("m_kind", m) == 0)
        if w.at("status", r) == VIEW_CHANGE:
            w.do("await_nacks", r=r, o=o)
        w.do("ask_prepare", r=r, m=m, o=o, e=e)
        self.to(w, r, m, *self.others(r))

    def on_request_prepare(self, w: World, r: int, m: int) -> None:
        """Asked for a prepare a replica sends it, or says that it never had it."""
        e, o, asker = w.at("m_prepare", m), w.at("m_op", m), w.at("m_from", m)
        w.do("receive", r=r, m=m)
        if w.at("body", r, o) == e:
            self.send_prepare(w, r, e, asker)
            return
        nack = self.message("nack_prepare", w.at("view", r), r, o, e)
        w.do("send_nack", r=r, m=nack, o=o, e=e)
        self.to(w, r, nack, asker)

    def on_nack_prepare(self, w: World, r: int, m: int) -> None:
        """A nack is counted."""
        w.do("receive", r=r, m=m)
        w.do("on_nack", r=r, q=w.at("m_from", m))

    def discard(self, w: World, r: int, o: int) -> None:
        """What enough others never had is dropped from the merged log."""
        if self.n > 2:
            w.do("nack_quorum", r=r, o=o)
        w.do("discard_ops", r=r, o=o)

    def start_view(self, w: World, r: int) -> None:
        """The new primary starts its view, and tells its log; the uncommitted tail is its pipeline."""
        if self.mistake != STALE_PIPELINE:
            w.do("pipeline_diff", r=r)
        for o in range(max(w.at("pipeline_hi", r), w.at("commit_max", r)) + 1, w.at("op", r) + 1):
            w.do("pipeline_push", r=r, o=o, e=self.header(w, r, o))
        w.do("start_view", r=r)
        k = w.at("commit_max", r)
        m = self.tells(w, r, "start_view")
        w.do("send_start_view", r=r, m=m, low=0, h=self.headers(w, r), k=k)
        self.to(w, r, m, *self.others(r))

    def on_start_view(self, w: World, r: int, m: int) -> None:
        """A backup takes the log of a started view."""
        w.do("receive", r=r, m=m)
        if w.at("m_view", m) > w.at("view", r):
            w.do("start_view_change", r=r, v=w.at("m_view", m))
        w.do("install_log", r=r)
        self.repair_headers(w, r)
        w.do("follow_view", r=r)

    def jump(self, w: World, r: int, m: int) -> None:
        """A backup takes a prepare further ahead: its log has a gap."""
        w.do("receive", r=r, m=m)
        w.do("jump_ahead", r=r, o=w.at("m_op", m) - 1)
        w.do("on_prepare", r=r)

    def discard_gap(self, w: World, r: int, o: int) -> None:
        """What enough votes never had, although they have what is below it, is dropped from the merged log."""
        w.do("discard_header", r=r, o=o)

    # --- crashes -----------------------------------------------------------------------------------------------------

    def crash(self, w: World, r: int) -> None:
        """A cluster of one dies, and starts again with what is on disk, all of which it executes."""
        w.do("crash", r=r)
        w.do("restart", r=r)
        self.boot(w, r)
        top = max(o for o in range(self.ops + 1) if self.header(w, r, o))
        if not top:
            w.do("recover_empty", r=r)
            return
        w.do("replay", r=r, k=top)
        for _ in range(top):
            self.execute(w, r)
        w.do("recover_single", r=r)

    def lose_memory(self, w: World, r: int, rot: int) -> None:
        """A replica of several dies, and starts again: as new if its journal is empty, else it asks the others."""
        w.count("crashes", self.sizes.crashes)
        if rot:
            w.count("rots", self.sizes.rots)
        w.do("crash", r=r)
        w.do("restart", r=r)
        self.boot(w, r, rot)
        if w.can("recover_empty", r=r):
            w.do("recover_empty", r=r)
            return
        nonce = w.at("crashes")
        m = self.message("recovery", r, nonce)
        w.do("start_recovery", r=r, n=nonce)
        w.do("send_recovery", r=r, m=m)
        self.to(w, r, m, *self.others(r))

    def on_recovery(self, w: World, r: int, m: int) -> None:
        """A normal replica answers with its log, unless it did so, or it is too late."""
        asker, n = w.at("m_from", m), w.at("m_nonce", m)
        answer = self.tells(w, r, "recovery_response", n)
        w.need(w.at("status", r) == NORMAL and w.at("nonce", asker) == n and not w.at("sent", answer, asker))
        w.do("receive", r=r, m=m)
        w.do("answer_recovery", r=r, m=answer, n=n, low=0, h=self.headers(w, r))
        self.to(w, r, answer, asker)

    def on_recovery_response(self, w: World, r: int, m: int) -> None:
        """An answer is kept; with enough of them the replica takes the log of the newest view's primary."""
        w.need(w.at("status", r) == RECOVERING and w.at("response_of", r, w.at("m_from", m)) != m)
        w.do("receive", r=r, m=m)
        w.do("on_answer", r=r, q=w.at("m_from", m))
        for b in self.others(r):
            if w.can("recover_log", r=r, b=b):
                w.do("recover_log", r=r, b=b)
                self.repair_headers(w, r)
                w.do("finish_recovery", r=r, b=b)
                return

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
            self.on("recovery", self.on_recovery, every=True),
            self.on("recovery_response", self.on_recovery_response),
        )
        gaps = (
            Stride("jump", self.arrivals("prepare"), self.jump),
            Stride("discard_gap", self.slots, self.discard_gap),
        )
        return (
            *local,
            self.on("prepare", self.on_prepare),
            self.on("prepare_ok", self.on_prepare_ok),
            self.on("commit", self.on_commit),
            Stride("execute", self.replicas, self.execute),
            Stride("timeout", self.replicas, self.timeout),
            self.on("start_view_change", self.on_start_view_change),
            self.on("do_view_change", self.on_do_view_change),
            Stride("merge", self.pairs, self.merge),
            Stride("fetch", self.slots, self.fetch),
            self.on("request_prepare", self.on_request_prepare),
            self.on("nack_prepare", self.on_nack_prepare),
            Stride("discard", self.slots, self.discard),
            Stride("start_view", self.replicas, self.start_view),
            self.on("start_view", self.on_start_view),
            *(crashes if self.sizes.crashes else ()),
            *(gaps if self.mistake in GAPS else ()),
        )


def model_2022(mistake: str = "", **sizes: int) -> Model:
    """The model of a size (`Sizes`; views 0 .. `views`, ops 1 .. `ops`), with one of `MISTAKES` or none."""
    how, size = MISTAKES.get(mistake), Sizes(**sizes)
    quorum = size.n // 2 + 1
    strides = June(size, KIND, mistake)
    spec = spec_2022(Cluster(size.n, quorum, quorum, nodes=size.n))
    unsafe = {"on_request"} | (EMPTY_JOURNAL if size.crashes else set())
    return Model(
        spec, strides.start, strides.strides(), HISTORY, frozenset(unsafe - ({how.at} if how else set())), PASSING,
        how.guards if how else (), how.instead if how else (), ("crashes", "rots"),
    )  # fmt: skip
