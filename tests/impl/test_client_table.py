"""The client table: slots, sessions, eviction by the lowest op, canonical bytes (docs/clients-and-control.md)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewproof.impl.interface.checks import InvariantError
from viewproof.impl.interface.durable import CLIENTS_PAPER, CLIENTS_SESSIONS, ClientTableConfig, ConfigurationError
from viewproof.impl.replica.client_table import ClientTable, Slot, TableError

TWO_SESSIONS = ClientTableConfig(slots=2, sessions=True)
TWO_GAPS = ClientTableConfig(slots=2, gaps=True)


def registered(table: ClientTable, client: int, op: int, incarnation: int = 1) -> int | None:
    return table.register(client, op, incarnation, op, 0, b"")


def clients(table: ClientTable) -> list[int | None]:
    return [None if slot is None else slot.client for slot in table.slots]


def test_without_a_number_of_slots_every_client_has_one() -> None:
    table = ClientTable(CLIENTS_PAPER)
    for client in range(1, 41):
        assert table.record(client, 0, 1, client, 0, b"r") is None
    assert clients(table) == list(range(1, 41))
    table.record(7, 0, 2, 41, 3, b"s")
    assert table.get(7) == Slot(7, 0, 0, 2, 41, 3, b"s")
    assert table.get(41) is None


def test_a_register_opens_a_session_with_its_op_and_fences_the_older_one() -> None:
    table = ClientTable(CLIENTS_SESSIONS)
    registered(table, 9, 4)
    table.record(9, 4, 1, 5, 0, b"r")
    registered(table, 9, 6, incarnation=2)
    assert table.get(9) == Slot(9, 6, 2, 0, 6, 0, b"")
    before = table.to_bytes()
    assert table.record(9, 4, 2, 7, 0, b"of the older session") is None
    assert table.to_bytes() == before


@pytest.mark.parametrize("config", [TWO_SESSIONS, TWO_GAPS])
def test_the_lowest_op_is_evicted_and_its_place_taken(config: ClientTableConfig) -> None:
    table = ClientTable(config)

    def enter(client: int, op: int) -> int | None:
        return registered(table, client, op) if config.sessions else table.record(client, 0, 1, op, 0, b"")

    assert enter(1, 1) is None
    assert enter(2, 2) is None
    table.record(1, 1 if config.sessions else 0, 2, 3, 0, b"")
    assert enter(3, 4) == 2
    assert clients(table) == [1, 3]
    assert enter(2, 5) == 1
    assert clients(table) == [2, 3]


def test_a_tie_goes_to_the_lowest_slot() -> None:
    table = ClientTable(TWO_SESSIONS)
    table.register(8, 1, 1, 5, 0, b"")
    table.register(3, 2, 1, 5, 0, b"")
    assert registered(table, 4, 6) == 8


def test_a_request_whose_session_is_gone_leaves_the_table_alone() -> None:
    table = ClientTable(TWO_SESSIONS)
    for client, op in ((1, 1), (2, 2), (3, 3)):
        registered(table, client, op)
    before = (table.to_bytes(), table.digest)
    assert table.record(1, 1, 1, 4, 0, b"r") is None
    assert (table.to_bytes(), table.digest) == before


def test_without_sessions_an_evicted_client_begins_anew() -> None:
    table = ClientTable(TWO_GAPS)
    for client in (1, 2, 3):
        table.record(client, 0, 5, client, 0, b"")
    assert table.record(1, 0, 5, 4, 0, b"again") == 2
    assert table.get(1) == Slot(1, 0, 0, 5, 4, 0, b"again")


@pytest.mark.parametrize(
    ("client", "request_number", "op", "error"),
    [
        (0, 5, 3, "client 0 is below 1"),
        (1, 3, 3, "request 3 executed after 4"),
        (1, 4, 3, "request 4 executed after 4"),
        (1, 5, 2, "op 2 executed after 2"),
        (1, 4, 1, "op 1 executed after 2"),
    ],
)
def test_a_reply_that_no_log_can_give_is_not_recorded(client: int, request_number: int, op: int, error: str) -> None:
    table = ClientTable(CLIENTS_PAPER)
    table.record(1, 0, 4, 2, 0, b"right")
    before = table.to_bytes()
    with pytest.raises(InvariantError, match=error):
        table.record(client, 0, request_number, op, 0, b"wrong")
    assert table.to_bytes() == before


@pytest.mark.parametrize(
    ("session", "incarnation", "op", "error"),
    [
        (9, 3, 4, "op 4 executed after 4"),
        (4, 3, 9, "session 4 opened after 4"),
        (9, 2, 9, "incarnation 2 registered after 2"),
        (3, 1, 3, "op 3 executed after 4"),
    ],
)
def test_a_session_that_no_log_can_open_is_not_recorded(session: int, incarnation: int, op: int, error: str) -> None:
    table = ClientTable(CLIENTS_SESSIONS)
    registered(table, 7, 4, incarnation=2)
    before = table.to_bytes()
    with pytest.raises(InvariantError, match=error):
        table.register(7, session, incarnation, op, 0, b"")
    assert table.to_bytes() == before


def test_a_slot_in_the_place_of_another_client_is_an_error() -> None:
    table = ClientTable(CLIENTS_PAPER)
    table.record(1, 0, 1, 1, 0, b"")
    table.places[2] = table.places[1]
    with pytest.raises(InvariantError, match="client 2: its place is that of client 1"):
        table.record(2, 0, 1, 2, 0, b"")


def test_impossible_configurations_are_refused() -> None:
    for slots in (-1, 1 << 17):
        with pytest.raises(ConfigurationError, match="slots"):
            ClientTableConfig(slots)
    with pytest.raises(ConfigurationError, match="gaps"):
        ClientTableConfig(4, sessions=True, gaps=True)


CONFIGS = st.sampled_from([CLIENTS_PAPER, TWO_GAPS, TWO_SESSIONS, ClientTableConfig(3, sessions=True)])
STEPS = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.binary(max_size=3)), max_size=40)


def executed(config: ClientTableConfig, steps: list[tuple[int, int, bytes]]) -> ClientTable:
    """The table after a log: at each op a client registers (kind 0) or makes the next request of its session."""
    table = ClientTable(config)
    for op, (client, kind, body) in enumerate(steps, start=1):
        slot = table.get(client)
        if config.sessions and kind == 0:
            table.register(client, op, op, op, kind, body)
        else:
            session, number = (0, 1) if slot is None else (slot.session, slot.request + 1)
            table.record(client, session, number, op, kind, body)
    return table


@given(CONFIGS, STEPS)
def test_bytes_and_digest_are_those_of_the_log(config: ClientTableConfig, steps: list[tuple[int, int, bytes]]) -> None:
    table = executed(config, steps)
    data = table.to_bytes()
    again = ClientTable.from_bytes(data, config)
    assert (again.to_bytes(), again.digest, again.slots, again.places) == (
        data,
        table.digest,
        table.slots,
        table.places,
    )
    for client in range(1, 6):
        evicted = [
            copy.register(client, 99, 99, 99, 0, b"") if config.sessions else copy.record(client, 0, 99, 99, 0, b"")
            for copy in (table, again)
        ]
        assert evicted[0] == evicted[1]
        assert table.to_bytes() == again.to_bytes()


@given(CONFIGS, STEPS, STEPS)
def test_tables_that_differ_have_other_bytes_and_digests(
    config: ClientTableConfig, first: list[tuple[int, int, bytes]], second: list[tuple[int, int, bytes]]
) -> None:
    one, other = executed(config, first), executed(config, second)
    assert (one.slots == other.slots) == (one.to_bytes() == other.to_bytes()) == (one.digest == other.digest)


@given(st.data())
def test_damaged_bytes_are_refused_or_read_back_unchanged(data: st.DataObject) -> None:
    table = executed(TWO_SESSIONS, [(1, 0, b"abc"), (1, 1, b"def"), (2, 0, b"")])
    good = table.to_bytes()
    position = data.draw(st.integers(0, len(good) - 1))
    bad = bytearray(good)
    bad[position] ^= data.draw(st.integers(1, 255))
    for damaged in (bytes(bad), good[:position], good + b"\0"):
        try:
            assert ClientTable.from_bytes(damaged, TWO_SESSIONS).to_bytes() == damaged
        except TableError:
            continue


def test_bytes_of_another_configuration_are_refused() -> None:
    data = ClientTable(TWO_SESSIONS).to_bytes()
    with pytest.raises(TableError, match="another configuration"):
        ClientTable.from_bytes(data, CLIENTS_SESSIONS)
    twice = executed(TWO_SESSIONS, [(1, 0, b""), (2, 0, b"")]).to_bytes()
    size = (len(twice) - 16) // 2
    with pytest.raises(TableError, match="place 1: client 1"):
        ClientTable.from_bytes(twice[: 16 + size] + twice[16 : 16 + size], TWO_SESSIONS)
