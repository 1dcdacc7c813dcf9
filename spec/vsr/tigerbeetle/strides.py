"""What bounded models of both families share: who may do what when, and normal operation, one message at a time.

Clients register, no more; op 0 is the root. Of a cluster of one crashes are tried, of others view changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from viewproof.spec.lang import Action
from viewproof.spec.lang.strides import Choice, Names, Stride, World
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT


@dataclass(frozen=True)
class Mistake:
    """A mistake: steps without a guard (action, what the guard's text has), or actions in place of those of their
    names, or what the strides do otherwise (`Strides.mistake`). The invariant that breaks, the step whose claim shows
    it; `lead` are strides taken before what is searched, `sizes` those of the model.
    """

    guards: tuple[tuple[str, str], ...]
    breaks: str
    at: str
    lead: tuple[str, ...] = ()
    instead: tuple[Action, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=lambda: {"n": 3})


@dataclass(frozen=True)
class Sizes:
    """How far a model reaches: replicas, the last view, ops, clients, crashes, slots that rot in a crash, and entries
    in the client table (0: as many as there are clients).
    """

    n: int = 2
    views: int = 1
    ops: int = 1
    clients: int = 1
    crashes: int = 0
    rots: int = 0
    table: int = 0


class Strides:
    """The strides of a cluster, up to a size; `kinds` are those of messages, `mistake` names what they do wrong."""

    header: Callable[[World, int, int], int]
    """The prepare that r's journal has at op o."""
    said: tuple[str, ...] = ()
    """Kinds of messages in which a replica says its view."""

    def __init__(self, sizes: Sizes, kinds: Mapping[str, object], mistake: str = "") -> None:
        self.sizes, self.mistake = sizes, mistake
        self.n, self.views, self.ops, self.clients = sizes.n, sizes.views, sizes.ops, sizes.clients
        self.kinds = {name: int(kind) for name, kind in kinds.items()}  # type: ignore[call-overload]
        self.message, self.prepare = Names(), Names(first=ROOT + 1)

    # --- what a stride may be tried for ------------------------------------------------------------------------------

    def replicas(self, w: World) -> Iterator[Choice]:
        """Any replica."""
        return ((r,) for r in range(self.n))

    def pairs(self, w: World) -> Iterator[Choice]:
        """Any two replicas, or one twice."""
        return ((r, q) for r in range(self.n) for q in range(self.n))

    def slots(self, w: World) -> Iterator[Choice]:
        """Any replica and op of its log."""
        return ((r, o) for r in range(self.n) for o in range(1, w.at("op", r) + 1))

    def askers(self, w: World) -> Iterator[Choice]:
        """A primary with room, and a client of its view (alone, or with more ops: any)."""
        every = self.n == 1 or self.ops > 1
        for r in range(self.n):
            for c in range(1, self.clients + 1):
                if w.at("op", r) < self.ops and (every or c == 1 + w.at("view", r) % self.clients):
                    yield r, c

    def crashes(self, w: World) -> Iterator[Choice]:
        """Any replica, and the slot of its journal that is found broken when it starts again; 0 = none."""
        rots = range(self.ops + 1 if w.at("rots") < self.sizes.rots else 1)
        return ((r, o) for r in range(self.n) for o in rots)

    def arrivals(self, kind: str, every: bool = False) -> Callable[[World], Iterator[Choice]]:
        """Any message of a kind that was sent to a replica, of its view or a later one, or (`every`) of any."""

        def found(w: World) -> Iterator[Choice]:
            for m in list(self.message.kinds.get(kind, ())):
                for r in range(self.n):
                    if w.at("sent", m, r) and (every or w.at("m_view", m) >= w.at("view", r)):
                        yield r, m

        return found

    def on(self, kind: str, take: Callable[[World, int, int], None], every: bool = False) -> Stride:
        """The stride of receiving a message of that kind."""
        return Stride(f"on_{kind}", self.arrivals(kind, every), take)

    # --- sending -----------------------------------------------------------------------------------------------------

    def others(self, r: int) -> list[int]:
        """All replicas but r."""
        return [q for q in range(self.n) if q != r]

    def to(self, w: World, r: int, m: int, *whom: int) -> None:
        """A composed message is sent."""
        for q in whom:
            w.do("address", r=r, m=m, q=q)

    def leader(self, w: World, r: int) -> int:
        """The primary of r's view."""
        return w.at("view", r) % self.n

    # --- normal operation --------------------------------------------------------------------------------------------

    def ask(self, w: World, r: int, c: int) -> int:
        """A client's registration reaches r; the number of what is prepared of it there. None comes late."""
        late = any(w.at("p_client", w.at("canonical", o)) == c for o in range(1, self.ops + 1))
        w.need(not late or self.mistake == "table.replayed_register")
        m, h = self.message("request", c), self.prepare("request", c)
        w.do("ask", m=m, h=h, c=c, s=0, x=0, u=1, register=1)
        w.do("client_send", m=m, q=r, k=self.kinds["request"])
        w.do("receive", r=r, m=m)
        return self.prepare("prepare", w.at("view", r), w.at("op", r) + 1, c)

    def send_prepare(self, w: World, r: int, e: int, *whom: int) -> None:
        """A prepare is sent."""
        m = self.message("prepare", e)
        w.do("send_prepare", r=r, m=m, e=e)
        self.to(w, r, m, *whom)

    def on_prepare(self, w: World, r: int, m: int) -> None:
        """A backup takes the next prepare of its view, and its commit number."""
        w.do("receive", r=r, m=m)
        w.do("on_prepare", r=r)
        if w.at("m_commit", m) > w.at("commit_max", r):
            w.do("learn_commit", r=r, k=w.at("m_commit", m))

    def at_hand(self, w: World, r: int, o: int) -> int:
        """The prepare at o that r has, and that is not durable there. The stride is not enabled if there is none."""
        e = self.header(w, r, o)
        w.need(e > ROOT and bool(w.at("dirty", r, o)))
        w.need(bool(w.at("sent", self.message("prepare", e), r)) or w.at("pipeline", r, o) == e)
        return e

    def acknowledge(self, w: World, r: int, o: int) -> None:
        """A prepare is acknowledged to the primary of the view, once in it."""
        e, leader = self.header(w, r, o), self.leader(w, r)
        m = self.message("prepare_ok", w.at("view", r), r, e)
        w.need(e > ROOT and w.at("m_kind", m) == 0)
        w.do("acknowledge", r=r, o=o, e=e)
        w.do("send_prepare_ok", r=r, m=m, e=e)
        self.to(w, r, m, leader)
        if leader == r:
            self.on_prepare_ok(w, r, m)

    def on_prepare_ok(self, w: World, r: int, m: int) -> None:
        """The primary counts an acknowledgement."""
        w.need(not w.at("ok_from", r, w.at("m_op", m), w.at("m_from", m)))
        w.do("receive", r=r, m=m)
        w.do("on_prepare_ok", r=r, q=w.at("m_from", m), e=w.at("m_prepare", m))

    def tell_commit(self, w: World, r: int) -> None:
        """The primary tells its commit number."""
        k = w.at("commit_max", r)
        e = self.header(w, r, k)
        m = self.message("commit", w.at("view", r), k, e)
        w.do("send_commit", r=r, m=m, e=e)
        self.to(w, r, m, *self.others(r))

    def on_commit(self, w: World, r: int, m: int) -> None:
        """A backup learns a commit number, and executes what it can."""
        w.do("receive", r=r, m=m)
        w.do("learn_commit", r=r, k=w.at("m_commit", m))
        while w.can("execute", r=r, e=self.header(w, r, w.at("commit_min", r) + 1)):
            self.execute(w, r)

    def execute(self, w: World, r: int) -> None:
        """A replica executes the next op that it knows to be committed."""
        w.do("execute", r=r, e=self.header(w, r, w.at("commit_min", r) + 1))
        self.executed(w, r)

    def executed(self, w: World, r: int) -> None:
        """A client that has no room loses its session; what was executed is no request that was executed before."""
        o = w.at("commit_min", r)
        sessions = [c for c in range(1, self.clients + 1) if w.at("session", r, c)]
        if self.sizes.table and len(sessions) > self.sizes.table:
            w.do("evict", r=r, c=min(sessions, key=lambda c: w.at("replied", r, c)))
        asked = [w.at("p_asked", w.at("canonical", p)) for p in range(1, o + 1)]
        w.claim(asked[-1] not in asked[:-1], "commit", "a request is executed at one op (I8)")
