"""What becomes of requests and registers: outcomes, sessions, waiters, replies that any replica can send again."""

from __future__ import annotations

import itertools

import pytest

from tests.impl.link import Link
from viewproof.impl.interface.durable import CLIENTS_PAPER, ClientTableConfig
from viewproof.impl.interface.messages import Prepare, Reply, Request, register_result
from viewproof.impl.machine.state_machine import Append, Get, Put
from viewproof.impl.replica.client_table import ClientTable
from viewproof.impl.replica.requests import RequestOutcome, register_outcome, request_outcome
from viewproof.impl.sim.checkers.replies import reply_fields

PUT = Put(b"k", b"v")
SESSIONS = ClientTableConfig(slots=2, sessions=True)
IGGY = ClientTableConfig(slots=2, gaps=True)

SESSION, NUMBER = 10, 5
"""Of the slot in the tables below."""


def table_of(config: ClientTableConfig) -> ClientTable:
    table = ClientTable(config)
    if config.sessions:
        table.register(1, SESSION, 3, SESSION, 0, register_result(3))
    table.record(1, SESSION if config.sessions else 0, NUMBER, 20, 0, b"r")
    return table


def outcome(config: ClientTableConfig, request: Request, *, unexecuted: bool = False, commit_min: int = 30) -> str:
    if request.request == 0:
        return register_outcome(table_of(config), request, unexecuted=unexecuted).value
    return request_outcome(table_of(config), request, unexecuted=unexecuted, commit_min=commit_min).value


@pytest.mark.parametrize(
    ("number", "paper", "iggy", "sessions"),
    [
        (NUMBER - 1, "stale", "stale", "stale"),
        (NUMBER, "duplicate", "duplicate", "duplicate"),
        (NUMBER + 1, "new", "new", "new"),
        (NUMBER + 2, "gap", "new", "gap"),
    ],
)
def test_the_outcome_by_the_request_number(number: int, paper: str, iggy: str, sessions: str) -> None:
    assert outcome(CLIENTS_PAPER, Request(1, number, b"")) == paper
    assert outcome(IGGY, Request(1, number, b"")) == iggy
    assert outcome(SESSIONS, Request(1, number, b"", SESSION)) == sessions


def test_the_outcome_by_the_session() -> None:
    for number in (NUMBER - 1, NUMBER, NUMBER + 1, NUMBER + 2):
        assert outcome(SESSIONS, Request(1, number, b"", SESSION - 1)) == "fenced"
        assert outcome(SESSIONS, Request(1, number, b"", SESSION + 1)) == "in_progress"
    assert outcome(SESSIONS, Request(2, 1, b"", 30)) == "no_session"
    assert outcome(SESSIONS, Request(2, 1, b"", 31)) == "in_progress"
    assert outcome(CLIENTS_PAPER, Request(2, 9, b"")) == outcome(IGGY, Request(2, 9, b"")) == "new"


def test_the_outcome_of_a_register_by_its_incarnation() -> None:
    by_incarnation = {2: "stale", 3: "duplicate", 4: "new"}
    for incarnation, expected in by_incarnation.items():
        assert outcome(SESSIONS, Request(1, 0, b"", 0, incarnation)) == expected
    assert outcome(SESSIONS, Request(2, 0, b"", 0, 1)) == "new"


def test_an_unexecuted_entry_comes_first() -> None:
    requests = [Request(client, number, b"", SESSION) for client in (1, 2) for number in range(NUMBER - 1, NUMBER + 3)]
    registers = [Request(client, 0, b"", 0, incarnation) for client in (1, 2) for incarnation in (2, 3, 4)]
    for config, request in itertools.product((CLIENTS_PAPER, IGGY, SESSIONS), requests + registers):
        assert outcome(config, request, unexecuted=True) == "in_progress"


def test_the_outcomes_are_those_of_the_contract() -> None:
    assert [str(outcome) for outcome in RequestOutcome] == [
        "in_progress",
        "no_session",
        "fenced",
        "stale",
        "duplicate",
        "new",
        "gap",
    ]


# Sessions


def test_a_client_registers_and_the_session_is_the_op_of_its_register() -> None:
    link = Link(clients=SESSIONS)
    link.request(0, 9, 1, PUT)
    assert [(e.client, e.session, e.request, e.reason, e.incarnation) for e in link.evictions] == [
        (9, 0, 1, "no_session", 0)
    ]
    assert link.register(0, 8) == 1
    assert link.register(0, 9, incarnation=4) == 2
    link.request(0, 9, 1, PUT, session=2)
    assert link.replies[-1].op == 3
    event = link.of(1, "execute")[1] if len(link.of(1, "execute")) > 1 else link.of(0, "execute")[1]
    assert (event.m_client, event.m_session, event.m_request, event.m_incarnation) == (9, 0, 0, 4)


def test_a_higher_incarnation_fences_and_a_lower_one_is_stale() -> None:
    link = Link(clients=SESSIONS)
    first = link.register(0, 9, incarnation=1)
    link.request(0, 9, 1, PUT, session=first)
    second = link.register(0, 9, incarnation=2)
    assert second == 3
    link.request(0, 9, 2, PUT, session=first)
    assert (link.evictions[-1].reason, link.evictions[-1].incarnation) == ("fenced", 2)
    assert link.register(0, 9, incarnation=1) == 0
    assert link.of(0, "drop_request")[-1].m_outcome == "stale"
    told = [(e.session, e.request, e.reason, e.incarnation) for e in link.evictions[-1:]]
    assert told == [(0, 0, "stale", 2)]
    assert link.register(0, 9, incarnation=2) == second
    assert link[0].state.op == 3
    link.request(0, 9, 1, PUT, session=second)
    assert link.register(0, 9, incarnation=2) == 0
    assert link[0].out.ignored["register: its session has made requests"] == 1
    assert (link.evictions[-1].reason, link.evictions[-1].incarnation) == ("duplicate", 2)


def test_a_session_evicted_while_its_request_was_prepared_is_answered_all_the_same() -> None:
    link = Link(clients=ClientTableConfig(slots=1, sessions=True))
    first = link.register(0, 1)
    link.lose = lambda source, to, message: isinstance(message, Prepare)
    link.register(0, 2)
    link.request(0, 1, 1, Append(b"k", b"x"), session=first)
    assert (link[0].state.op, link[0].state.commit_max) == (3, 1)
    link.lose = lambda source, to, message: False
    link.tick(40)
    assert link[0].state.commit_min == 3
    assert (link.replies[-1].client, link.replies[-1].request) == (1, 1)
    assert [slot.client for slot in link[0].state.client_table.slots if slot] == [2]
    link.request(0, 1, 1, Append(b"k", b"x"), session=first)
    assert link.evictions[-1].reason == "no_session"
    assert len({link[node].state.client_table.to_bytes() for node in range(3)}) == 1
    assert len({event.m_evicted for event in link.events if event.event == "execute" and event.m_op == 2}) == 1


def test_what_no_client_sends_is_ignored() -> None:
    sessions, paper = Link(clients=SESSIONS), Link()
    bad = [
        Request(0, 1, b""),
        Request(1, -1, b""),
        Request(1, 1 << 63, b"", 1),
        Request(1, 0, b"", 0, 0),
        Request(1, 0, b"", 1, 1),
        Request(1, 0, b"body", 0, 1),
        Request(1, 1, b"", 1, 1),
        Request(1, 1, b"", -1),
    ]
    for request in bad:
        sessions.deliver(0, request)
    for request in [*bad, Request(1, 0, b"", 0, 1), Request(1, 1, b"", 1)]:
        paper.deliver(0, request)
    for link, count in ((sessions, len(bad)), (paper, len(bad) + 2)):
        assert sum(link[0].out.ignored.values()) == count
        assert link[0].state.op == 0
        assert not link.replies
        assert not link.evictions


# Replies and waiters


def test_any_replica_in_any_view_sends_the_same_reply() -> None:
    link = Link(clients=SESSIONS)
    session = link.register(0, 5)
    link.request(0, 5, 1, Append(b"k", b"x"), session=session)
    first = link.replies[-1]
    for node in (1, 2, 0):
        link.change_view(node)
        link.tick(30)
        assert link[node].state.is_normal_primary
        link.request(node, 5, 1, Append(b"k", b"x"), session=session)
        assert reply_fields(link.replies[-1]) == reply_fields(first)
    assert [reply.op for reply in link.replies] == [1, 2, 2, 2, 2]
    assert (first.view, first.replica) == (0, 0)


def test_the_fault_stamps_a_reply_with_the_current_view() -> None:
    link = Link(faults=["table.reply_from_current_view"])
    link.lose = lambda source, to, message: isinstance(message, Prepare) and source == 0 and to == 2
    link.request(0, 5, 1, PUT)
    link.change_view(1)
    link.lose = lambda source, to, message: False
    link.tick(60)
    shown = {event.m_reply for event in link.events if event.event == "execute"}
    assert len(shown) == 2


def test_waiters_are_forgotten_with_the_view_and_found_again_by_the_retry() -> None:
    link = Link()
    link.lose = lambda source, to, message: to == 0
    link.request(0, 1, 1, Get(b"k"))
    assert link.replies == []
    assert link[0].replies.waiters == {(1, 0, 1, 0)}
    link.lose = lambda source, to, message: 0 in (source, to)
    link.change_view(1)
    link.tick(5, 1, 2)
    executed = link.of(1, "execute")
    assert executed
    assert executed[0].m_type is None
    assert link.replies == []
    link.request(1, 1, 1, Get(b"k"))
    assert [reply.op for reply in link.replies] == [1]


def test_a_retry_of_the_entry_in_progress_waits_for_its_reply() -> None:
    link = Link()
    link.lose = lambda source, to, message: source == 0
    link.request(0, 1, 1, PUT)
    link[0].replies.waiters.clear()
    link.request(0, 1, 2, PUT)
    assert link[0].replies.waiters == set()
    link.request(0, 1, 1, PUT)
    assert link[0].replies.waiters == {(1, 0, 1, 0)}
    assert [event.m_outcome for event in link.of(0, "drop_request")] == ["in_progress"] * 2
    link.lose = lambda source, to, message: False
    link.tick(40)
    assert [(reply.request, reply.op) for reply in link.replies] == [(1, 1)]
    assert link[0].replies.waiters == set()


def test_another_body_under_an_executed_number_gets_the_reply_of_the_first() -> None:
    link = Link(clients=SESSIONS)
    session = link.register(0, 3)
    link.request(0, 3, 1, Put(b"k", b"first"), session)
    before, digest = link.replies[-1], link[0].state.state_machine.digest
    link.request(0, 3, 1, Put(b"k", b"other"), session)
    assert reply_fields(link.replies[-1]) == reply_fields(before)
    assert (link[0].state.op, link[0].state.state_machine.digest) == (2, digest)


def test_a_reply_has_the_numbers_of_its_prepare() -> None:
    link = Link(clients=SESSIONS)
    session = link.register(0, 3, incarnation=7)
    register = link.replies[-1]
    assert reply_fields(register) == (3, session, 0, session, register_result(7), 0, 0)
    assert reply_fields(Reply(3, 1, 0, 1, register_result(7), 0, 0, clock=99)) == reply_fields(register)
