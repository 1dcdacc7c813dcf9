"""Features: negotiated by what every member supports, proposed once, enabled at one op on every replica."""

from __future__ import annotations

import pytest

from tests.impl.link import Link
from viewproof.impl.interface.messages import Commit, Message, PrepareOk, Supports
from viewproof.impl.machine.snapshot import Contents, encode_snapshot
from viewproof.impl.machine.state_machine import Put
from viewproof.impl.replica import ReplicaConfig
from viewproof.impl.replica.features import DATABASE_CHECKSUM, FEATURE_MAX
from viewproof.impl.replica.proposals import UnknownEntryError
from viewproof.impl.replica.restore import Restorer

HEARTBEAT_TICKS = 11


def enabled(link: Link) -> list[dict[int, int]]:
    return [link[node].state.enabled.ops for node in sorted(link.replicas)]


def test_a_feature_that_every_member_supports_is_proposed_once_and_active_at_one_op_everywhere() -> None:
    link = Link(supports=(1, 1, 1))
    link.request(0, 1, 1, Put(b"k", b"v"))
    link.tick(3 * HEARTBEAT_TICKS)
    link.request(0, 1, 2, Put(b"k", b"w"))
    link.tick(HEARTBEAT_TICKS)
    assert enabled(link) == [{DATABASE_CHECKSUM: 2}] * 3
    assert len({(link[node].state.digest, link[node].state.enabled.checksum) for node in range(3)}) == 1
    assert [event.m_feature for event in link.of(0, "propose_feature")] == [1]
    proposed = link.of(0, "propose_feature")[0]
    assert (proposed.m_client, proposed.m_request, proposed.m_op, proposed.features) == (0, 0, 2, 0)
    executed = [event for event in link.events if event.event == "execute" and event.m_feature]
    assert sorted((event.node, event.features) for event in executed) == [(0, 1), (1, 1), (2, 1)]
    assert [(event.m_from, event.m_features) for event in link.of(0, "on_features")] == [(1, 1), (2, 1)]
    assert all(event.m_reply is None and event.m_type is None for event in link.of(0, "execute") if event.m_feature)


def test_the_commit_number_advances_for_a_control_entry() -> None:
    link = Link(supports=(1, 1, 1))
    link.tick(3 * HEARTBEAT_TICKS)
    assert [(link[node].state.op, link[node].state.commit_min) for node in range(3)] == [(1, 1)] * 3


def test_nothing_is_proposed_while_one_member_lacks_the_feature_until_it_comes_back_with_it() -> None:
    link = Link(supports=(1, 1, 0))
    link.tick(4 * HEARTBEAT_TICKS)
    assert link.of(0, "propose_feature") == []
    link.crash(2)
    link.supports[2] = 1
    link.boot(2)
    link.tick(3 * HEARTBEAT_TICKS)
    assert enabled(link) == [{1: 1}] * 3


def test_what_a_member_supports_is_said_again_if_it_was_lost_and_not_once_it_is_known() -> None:
    link = Link(supports=(1, 1, 1))
    lost: list[Message] = []

    def lose(source: int, to: int, message: Message) -> bool:
        if isinstance(message, Supports) and len(lost) < 3:
            lost.append(message)
            return True
        return False

    link.lose = lose
    link.tick(5 * HEARTBEAT_TICKS)
    assert len(lost) == 3
    assert enabled(link) == [{1: 1}] * 3
    said = len(link.messages(Supports))
    link.tick(5 * HEARTBEAT_TICKS)
    assert len(link.messages(Supports)) == said == 5


def test_what_a_member_said_before_it_came_back_without_the_feature_does_not_count() -> None:
    """Member 1 says yes and withdraws; member 2 says yes later. Round 1 has both answers, but has ended by then."""
    link = Link(supports=(1, 1, 1))
    link.lose = lambda source, to, message: 2 in (source, to)
    link.tick(2 * HEARTBEAT_TICKS)
    assert (link[0].control.round, link[0].control.member_supports) == (1, {1: 1})
    link.crash(1)
    link.supports[1] = 0
    link.boot(1)
    link.lose = lambda source, to, message: source == 1 or 2 in (source, to)
    link.tick(link[0].state.config.normal_timeout_ticks)
    assert (link[0].control.round, link[0].control.member_supports) == (2, {})
    link.lose = lambda source, to, message: False
    link.deliver(0, Supports(0, 1, 1, 1))
    assert link[0].out.ignored["supports: an answer to another round"] == 1
    link.tick(3 * HEARTBEAT_TICKS)
    assert link[0].control.member_supports == {2: 1}
    assert link.of(0, "propose_feature") == []


def test_a_cluster_without_features_says_nothing_of_them() -> None:
    link = Link(supports=(0, 1, 1))
    link.tick(3 * HEARTBEAT_TICKS)
    assert link.messages(Supports) == []
    assert {message.supports for message in link.messages(Commit) if isinstance(message, Commit)} == {()}


def test_a_proposal_that_survives_a_view_change_is_not_made_again() -> None:
    link = Link(supports=(1, 1, 1))
    link.lose = lambda source, to, message: isinstance(message, PrepareOk)
    link.tick(3 * HEARTBEAT_TICKS)
    assert [link[node].state.op for node in range(3)] == [1, 1, 1]
    link.change_view(1)
    link.lose = lambda source, to, message: False
    link.tick(6 * HEARTBEAT_TICKS)
    assert (link[1].state.status, link[1].state.is_normal_primary) == ("normal", True)
    assert enabled(link) == [{1: 1}] * 3
    assert link.of(1, "propose_feature") == []


def test_a_proposal_that_a_view_change_drops_is_made_by_the_next_primary() -> None:
    link = Link(supports=(1, 1, 1))
    link.lose = lambda source, to, message: source == 0 and not isinstance(message, Commit)
    link.tick(3 * HEARTBEAT_TICKS)
    assert [link[node].state.op for node in range(3)] == [1, 0, 0]
    link.crash(0)
    link.lose = lambda source, to, message: False
    link.change_view(1)
    link.tick(2 * HEARTBEAT_TICKS)
    assert link.of(1, "propose_feature") == []
    link.boot(0)
    link.tick(6 * HEARTBEAT_TICKS)
    assert len(link.of(1, "propose_feature")) == 1
    assert enabled(link) == [{1: 1}] * 3


def test_a_cluster_of_one_enables_what_it_supports() -> None:
    link = Link(1, supports=(1,))
    link.tick(2 * HEARTBEAT_TICKS)
    assert enabled(link) == [{1: 1}]


def test_features_and_checksum_come_back_with_a_restart() -> None:
    link = Link(supports=(1, 1, 1))
    link.tick(3 * HEARTBEAT_TICKS)
    link.request(0, 1, 1, Put(b"k", b"v"))
    link.crash(2)
    link.boot(2)
    link.tick(HEARTBEAT_TICKS)
    link.request(0, 1, 2, Put(b"k", b"w"))
    link.tick(HEARTBEAT_TICKS)
    assert link[2].state.commit_min == 3
    assert len({(link[node].state.digest, link[node].state.enabled.checksum) for node in range(3)}) == 1


def test_a_member_restarted_without_an_enabled_feature_stops_and_names_the_op() -> None:
    link = Link(supports=(1, 1, 1))
    link.tick(3 * HEARTBEAT_TICKS)
    link.crash(2)
    link.supports[2] = 0
    link.boot(2)
    with pytest.raises(UnknownEntryError, match="op 1 enables feature 1"):
        link.tick(2 * HEARTBEAT_TICKS)


def test_numbers_above_the_largest_feature_are_ignored() -> None:
    link = Link(supports=(1, 1, 1))
    link.lose = lambda source, to, message: isinstance(message, Supports)
    link.tick(HEARTBEAT_TICKS)
    link.deliver(0, Supports(0, 1, 1 << FEATURE_MAX, 1))
    link.deliver(1, Supports(0, 1, 1, 2))
    assert "supports: features are numbered 1..63" in link[0].out.ignored
    assert "supports: not the normal primary of its view" in link[1].out.ignored
    assert link.of(0, "on_features") == []


def test_the_faults_of_control_requests_do_what_they_say() -> None:
    link = Link(supports=(1, 1, 1), faults=("control.applied_on_leader_only",))
    link.tick(3 * HEARTBEAT_TICKS)
    assert enabled(link) == [{1: 1}, {}, {}]
    assert link.of(0, "propose_feature")[0].features == 1

    link = Link(supports=(1, 1, 1), faults=("control.no_offset_advance",))
    link.tick(3 * HEARTBEAT_TICKS)
    assert [(link[node].state.commit_max, link[node].state.commit_min) for node in range(3)] == [(1, 0)] * 3

    link = Link(supports=(1, 0, 1), faults=("control.unsupported_member",))
    with pytest.raises(UnknownEntryError, match="op 1 enables feature 1"):
        link.tick(3 * HEARTBEAT_TICKS)

    link = Link(supports=(1, 1, 1), faults=("control.map_order_digest",))
    link.tick(3 * HEARTBEAT_TICKS)
    assert len({link[node].state.digest for node in range(3)}) == 3


def test_a_snapshot_with_a_feature_that_is_not_supported_is_refused_by_the_op_that_enabled_it() -> None:
    link = Link(1, supports=(1,))
    link.tick(2 * HEARTBEAT_TICKS)
    header = link[0].state.log[1].header
    parts = (
        link[0].state.state_machine.to_bytes(),
        link[0].state.client_table.to_bytes(),
        link[0].state.enabled.to_bytes(),
    )
    snapshot = encode_snapshot(1, Contents(header, *parts))
    superblock = link[0].state.superblock
    assert Restorer(superblock, ReplicaConfig(supports=1)).snapshot(snapshot).enabled.ops == {1: 1}
    with pytest.raises(UnknownEntryError, match=r"op 1 enables feature 1 \(database_checksum\).*does not support"):
        Restorer(superblock, ReplicaConfig(supports=0)).snapshot(snapshot)
