"""The simulator's clients, and its checkers of tables, sessions and replies: each fails on what it is for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.impl.link import Link
from viewproof.impl.interface.durable import ClientTableConfig, ConfigurationError
from viewproof.impl.interface.messages import Eviction, Prepare, Reply, Request, make_header, register_result
from viewproof.impl.machine.state_machine import Put, encode_operation
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.sim.checkers import AtMostOnceChecker, FencesChecker, FinalState, RepliesChecker, TablesChecker
from viewproof.impl.sim.clients import Clients
from viewproof.impl.sim.network import Network
from viewproof.impl.sim.profile import CLIENT_PROFILES, SimProfile, client_profile_draw
from viewproof.impl.trace.events import TraceEvent

SESSIONS = ClientTableConfig(slots=2, sessions=True)
PUT = Put(b"k", b"v")


def event(name: str, **columns: Any) -> TraceEvent:
    return TraceEvent(run="r", node=0, seq=1, clock=1, event=name, **columns)


def register(op: int, client: int, incarnation: int, evicted: int = 0) -> TraceEvent:
    return event(
        "execute", m_op=op, m_client=client, m_session=0, m_request=0, m_incarnation=incarnation, m_evicted=evicted
    )


def request(op: int, client: int, session: int, number: int) -> TraceEvent:
    return event("execute", m_op=op, m_client=client, m_session=session, m_request=number, m_evicted=0)


def judged(*events: TraceEvent, config: ClientTableConfig = SESSIONS) -> str:
    """What the checker says of executions and drops in this order."""
    link = Link(1, clients=config)
    checker = AtMostOnceChecker()
    checker.on_boot(0, link[0])
    for one in events:
        (checker.on_execute if one.event == "execute" else checker.on_event)(0, link[0], one)
    return "; ".join(failure.message for failure in checker.failures)


# Checkers


def test_a_register_counts_only_above_the_incarnation_that_holds_the_session() -> None:
    assert judged(register(1, 5, 1), register(2, 5, 2), request(3, 5, 2, 1)) == ""
    assert "incarnation 1 at op 2, while 1 holds" in judged(register(1, 5, 1), register(2, 5, 1))
    assert "incarnation 1 at op 2, while 3 holds" in judged(register(1, 5, 3), register(2, 5, 1))
    assert judged(register(1, 5, 3), register(2, 6, 1, evicted=5), register(3, 5, 1)) == ""


def test_numbers_of_a_session_follow_each_other() -> None:
    begin = register(1, 5, 1)
    assert judged(begin, request(2, 5, 1, 1), request(3, 5, 1, 2), register(4, 5, 2), request(5, 5, 4, 1)) == ""
    assert "request 3 at op 3, after request 1" in judged(begin, request(2, 5, 1, 1), request(3, 5, 1, 3))
    assert "request 2 at op 2, after request 0" in judged(begin, request(2, 5, 1, 2))
    gaps = ClientTableConfig(slots=4, gaps=True)
    one, five, three = (event("execute", m_op=op, m_client=5, m_request=n) for op, n in ((1, 1), (2, 5), (3, 3)))
    assert judged(one, five, config=gaps) == ""
    assert "request 3 at op 3, after request 5" in judged(one, five, three, config=gaps)


def test_a_request_is_stale_only_behind_a_later_one() -> None:
    executed = (register(1, 5, 1), request(2, 5, 1, 1), request(3, 5, 1, 2))

    def stale(number: int) -> TraceEvent:
        return event("drop_request", m_client=5, m_session=1, m_request=number, m_outcome="stale")

    assert judged(*executed, stale(1)) == ""
    assert "took request 2 of client 5" in judged(*executed, stale(2))
    assert "took request 3 of client 5" in judged(*executed, stale(3))


def test_tables_fail_on_other_bytes_at_an_equal_commit_min() -> None:
    link = Link(clients=SESSIONS)
    link.request(0, 9, 1, PUT, link.register(0, 9))
    link.tick(20)
    checker = TablesChecker()
    for node in (0, 1):
        checker.on_execute(node, link[node], event("execute"))
    assert checker.failures == []
    link[2].state.client_table.record(9, 1, 2, 3, 0, b"another result")
    checker.on_event(2, link[2], event("on_start_view"))
    assert "replica 2 has another client table at commit_min 2 than replica 0" in checker.failures[0].message


def replies_of(*sent: Reply) -> RepliesChecker:
    checker = RepliesChecker()
    for node, reply in enumerate(sent):
        checker.on_answer(node, reply)
    return checker


def test_replies_of_one_request_have_the_same_bytes() -> None:
    first = Reply(5, 1, 1, 2, b"r", 0, 0, clock=3)
    assert replies_of(first, Reply(5, 1, 1, 2, b"r", 0, 0, clock=9)).failures == []
    for other in (Reply(5, 1, 1, 2, b"r", 1, 1), Reply(5, 1, 1, 3, b"r", 0, 0), Reply(5, 1, 1, 2, b"s", 0, 0)):
        assert "client 5 session 1 request 1: replica 1 replied" in replies_of(first, other).failures[0].message


def test_a_reply_is_that_of_its_prepare() -> None:
    body = encode_operation(PUT)
    begun = make_header(parent="", view=3, op=1, client=5, request=0, commit=0, body=b"", incarnation=7)
    made = make_header(parent=begun.checksum, view=3, op=2, client=5, request=1, commit=1, body=body, session=1)
    chain = {1: Prepare(begun, b""), 2: Prepare(made, body)}
    final = FinalState((), chain, (), True, (), 9)
    right = (Reply(5, 1, 0, 1, register_result(7), 3, 0), Reply(5, 1, 1, 2, b"\x91\xa4done", 3, 0))
    wrong = (
        Reply(5, 1, 0, 1, register_result(6), 3, 0),
        Reply(5, 2, 1, 2, b"\x91\xa4done", 3, 0),
        Reply(5, 1, 1, 2, b"\x91\xa4done", 4, 1),
        Reply(5, 1, 1, 3, b"\x91\xa4done", 3, 0),
    )
    checker = replies_of(*right)
    checker.finish(final)
    assert checker.failures == []
    for reply in wrong:
        checker = replies_of(reply)
        checker.finish(final)
        assert len(checker.failures) == 1


def test_fences_fail_on_a_client_that_was_fenced_for_nothing() -> None:
    checker = FencesChecker()
    checker.finish(FinalState((), {}, (), True, (), 9, fenced_wrongly=("client 5",)))
    assert [failure.message for failure in checker.failures] == ["client 5"]


# Clients


class Cluster:
    """A world whose replicas are a function of the test: it sees what arrives, in the order of ticks."""

    def __init__(self, answer: Callable[[Request], Reply | Eviction | None], requests: int, **profile: Any) -> None:
        self.now = 0
        self.profile = SimProfile(loss=0.0, repeat=0.0, **profile)
        self.config = ReplicaConfig()
        self.statistics: dict[str, int] = defaultdict(int)
        self.random = Random(1)
        self.network = Network(self.profile, self.random, self.statistics)
        self.arrived: list[Request] = []
        self.calls: dict[int, list[Callable[[], None]]] = defaultdict(list)
        self.answer = answer
        self.clients = Clients(1, 3, requests, self, self.random, self.statistics)
        self.clients.start()
        while not self.clients.settled and self.now < 5_000:
            self.now += 1
            for call in self.calls.pop(self.now, []):
                call()

    def at(self, tick: int, call: Callable[[], None]) -> None:
        self.calls[tick].append(call)

    def deliver_request(self, to: int, request: Request) -> None:
        self.arrived.append(request)
        answer = self.answer(request)
        if answer is not None:
            self.clients.on_message(to, answer)


def answers(request: Request) -> Reply:
    if request.request == 0:
        session = 10 * request.incarnation
        return Reply(request.client, session, 0, session, register_result(request.incarnation), 0, 0)
    return Reply(request.client, request.session, request.request, 50 + request.request, b"r", 0, 0)


def test_a_client_registers_and_numbers_its_requests() -> None:
    cluster = Cluster(answers, 3, client_sessions=True)
    assert [(r.session, r.request, r.incarnation) for r in cluster.arrived] == [
        (0, 0, 1),
        (10, 1, 0),
        (10, 2, 0),
        (10, 3, 0),
    ]
    assert [(answer.session, answer.request) for answer in cluster.clients.answers] == [(10, 1), (10, 2), (10, 3)]


def test_an_evicted_client_abandons_its_request_and_registers_anew() -> None:
    def evicting(request: Request) -> Reply | Eviction | None:
        if request.session == 10:
            return Eviction(request.client, 10, request.request, "no_session")
        return answers(request)

    cluster = Cluster(evicting, 3, client_sessions=True)
    assert [(r.session, r.request, r.incarnation) for r in cluster.arrived] == [
        (0, 0, 1),
        (10, 1, 0),
        (0, 0, 2),
        (20, 1, 0),
        (20, 2, 0),
    ]
    assert (cluster.clients.abandoned, cluster.clients.completed) == (1, 3)
    assert cluster.clients.fenced_wrongly == []


def test_a_client_notes_a_newer_instance_that_it_never_had() -> None:
    def fencing(request: Request) -> Reply | Eviction | None:
        if request.session == 10:
            return Eviction(request.client, 10, request.request, "fenced", 9)
        return answers(request)

    (text,) = Cluster(fencing, 2, client_sessions=True).clients.fenced_wrongly
    assert "client 1 of incarnation 1" in text


def test_a_client_that_restarts_uses_the_next_incarnation() -> None:
    cluster = Cluster(answers, 12, client_sessions=True, client_restart=0.5)
    incarnations = [r.incarnation for r in cluster.arrived if r.request == 0]
    assert len(set(incarnations)) == len(incarnations) > 3
    assert incarnations == sorted(incarnations)


def test_a_client_skips_numbers_only_where_it_may() -> None:
    assert [r.request for r in Cluster(answers, 9).arrived] == list(range(1, 10))
    skipping = [r.request for r in Cluster(answers, 9, client_gaps=True, client_skip=0.5).arrived]
    assert skipping == sorted(set(skipping))
    assert skipping[-1] > 9


def test_late_copies_and_requests_sent_ahead_arrive() -> None:
    cluster = Cluster(answers, 20, client_sessions=True, client_echo=1.0, client_ahead=0.5)
    kinds = {(r.session, r.request, r.incarnation) for r in cluster.arrived}
    assert cluster.statistics["client_echoes"] >= len(kinds) == 21
    assert len(cluster.arrived) > len(kinds)
    assert cluster.statistics["requests_sent_ahead"] > 3


@pytest.mark.parametrize("name", CLIENT_PROFILES)
def test_a_drawn_profile_is_of_its_kind(name: str) -> None:
    for seed in range(30):
        profile = client_profile_draw(SimProfile(), name, 6, Random(seed))
        table = profile.client_table
        assert table.sessions == (name in ("sessions", "evictions"))
        assert table.gaps == (name == "iggy-3023")
        assert table.slots == {"paper": 0, "iggy-3023": 6, "sessions": 64}.get(name, table.slots)
        if name == "evictions":
            assert 1 <= table.slots < 6
        assert profile.client_restart == profile.client_echo == 0.0 or table.sessions


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="iggy-3023"):
        client_profile_draw(SimProfile(), "iggy", 6, Random(1))
