"""Healthy views are kept, sick ones are left: static partial partitions, a primary that is deaf, or slow."""

from __future__ import annotations

from itertools import combinations
from random import Random

import pytest

from tests.impl.link import Link
from viewproof.impl.interface.durable import Quorums
from viewproof.impl.interface.messages import HeartbeatOk, PrepareOk, PreVote, StartViewChange
from viewproof.impl.machine.state_machine import Put
from viewproof.impl.sim.cluster import SimCluster
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile
from viewproof.impl.sim.run import simulate

Links = set[tuple[int, int]]

TICKS = 1_500
PUT = Put(b"k", b"v")


def cluster(count: int) -> SimCluster:
    """A cluster that goes on without faults, once its clients are at work."""
    made = started(count, cut=set())
    run(made, 200)
    return made


def started(count: int, *faults: str, cut: Links, quorums: Quorums | None = None) -> SimCluster:
    """A cluster whose clients begin, its links cut from the start."""
    profile = SimProfile().without_faults()
    made = SimCluster(
        config=profile.replica_config("liveness"),
        replica_count=count,
        quorums=quorums,
        client_count=3,
        requests=10**9,
        profile=profile,
        random=Random(1),
        record=False,
        faults=frozenset(faults),
    )
    made.network.cut = set(cut)
    made.start()
    return made


def run(made: SimCluster, ticks: int) -> tuple[int, int]:
    """Requests answered meanwhile, and the longest pause in ticks."""
    before = last = made.clients.completed
    since = longest = 0
    for _ in range(ticks):
        made.step()
        since = since + 1 if made.clients.completed == last else 0
        last = made.clients.completed
        longest = max(longest, since)
    assert [failure for checker in made.checkers for failure in checker.failures] == []
    return last - before, longest


def views(made: SimCluster) -> list[int]:
    return [replica.state.view for replica in made.replicas if replica is not None]


def cut_but(count: int, *kept: tuple[int, int]) -> Links:
    """All links but these, which work in both directions."""
    good = {*kept, *((b, a) for a, b in kept)}
    return {(a, b) for a in range(count) for b in range(count) if a != b and (a, b) not in good}


HEALTHY: dict[str, tuple[int, Links]] = {
    "one sends to all and hears nobody": (3, {(0, 2), (1, 2)}),
    "a backup has no link to the primary": (3, {(0, 2), (2, 0)}),
    "one of five is alone": (5, cut_but(5, *combinations(range(4), 2))),
    "one of five sends to all and hears nobody": (5, {(a, 4) for a in range(4)}),
    "two of five are each behind another one": (5, cut_but(5, (0, 1), (0, 2), (1, 2), (3, 0), (4, 1))),
    "five in a ring": (5, cut_but(5, (0, 1), (1, 2), (2, 3), (3, 4), (4, 0))),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_primary_with_a_quorum_keeps_its_view_whatever_the_others_hear(name: str) -> None:
    count, links = HEALTHY[name]
    made = cluster(count)
    whole, _ = run(made, TICKS)
    made.network.cut = links
    answered, longest = run(made, TICKS)
    assert views(made) == [0] * count
    assert longest < 50
    assert answered > 0.8 * whole
    made.network.heal()
    run(made, 200)
    assert views(made) == [0] * count


def test_a_primary_that_loses_its_quorum_makes_way_for_one_that_has_one() -> None:
    made = cluster(5)
    made.network.cut = cut_but(5, (0, 1), *combinations((1, 2, 3), 2))
    run(made, 400)
    answered, longest = run(made, TICKS)
    assert answered > 0
    assert longest < 50
    assert views(made)[:4] == [1] * 4


def test_an_idle_primary_that_can_send_and_hears_nobody_steps_down() -> None:
    made = cluster(3)
    deliver = made.deliver_request
    made.deliver_request = lambda to, request: None if to == 0 else deliver(to, request)  # type: ignore[method-assign]
    run(made, 60)
    primary = made.replicas[0]
    assert primary is not None
    assert primary.state.op == primary.state.commit_max
    made.network.cut = {(1, 0), (2, 0)}
    run(made, 400)
    answered, longest = run(made, TICKS)
    assert answered > 0
    assert longest < 50
    assert min(views(made)) >= 1


def test_a_new_primary_of_view_0_waits_longer_for_its_first_answer() -> None:
    link = Link(booted=False)
    link.boot(0)
    link.tick(link.config.abdicate_timeout_ticks + 1, 0)
    assert link[0].state.status == "normal"
    link.tick(link.config.first_answer_timeout_ticks, 0)
    assert (link[0].state.status, link[0].state.view) == ("view_change", 1)
    link.boot(1)
    link.tick(30)
    assert (link[1].state.status, link[1].state.view) == ("normal", 1)


def test_the_wait_of_the_first_primary_for_its_first_answer_is_no_stall_and_no_view_left_for_nothing() -> None:
    result = simulate(25_124, profile=NAMED_PROFILES["links"], features="all")
    assert result.ok, result.failures
    assert result.statistics["start_view"] == 1


DEAF = {(1, 0), (2, 0), (-1, 0), (-2, 0), (-3, 0)}


@pytest.mark.parametrize(("seed", "replicas"), [(41_001_629, 4), (41_003_204, 3)])
def test_who_waits_by_the_timeouts_of_before_the_calm_is_no_stall(seed: int, replicas: int) -> None:
    result = simulate(seed, replicas=replicas, requests=60, profile=NAMED_PROFILES["deaf"])
    assert result.ok, result.failures


def test_a_view_whose_primary_was_heard_late_was_not_left_for_nothing() -> None:
    """One replica is deaf and wants to leave for ever; the other missed its primary, whose heartbeat took 14 ticks."""
    result = simulate(42_001_859, requests=60, profile=NAMED_PROFILES["deaf"])
    assert result.ok, result.failures


def test_a_view_that_has_not_begun_is_left_for_something() -> None:
    """A backup missed its primary, whose heartbeat was held; the next view cannot begin, as its primary is deaf."""
    result = simulate(69_038_435, requests=60, profile=NAMED_PROFILES["deaf"])
    assert result.ok, result.failures


def test_while_no_client_asks_nothing_is_left_unanswered() -> None:
    """All three paused for two thousand ticks; then one had waited for eight."""
    result = simulate(64_041_002, requests=60, profile=NAMED_PROFILES["deaf"])
    assert result.ok, result.failures


def test_a_first_primary_that_hears_nobody_goes_on_after_its_longer_wait() -> None:
    made = started(3, cut=DEAF)
    answered, _ = run(made, 4_000)
    assert answered > 0
    assert views(made) == [1, 1, 1]


def test_a_first_primary_that_keeps_its_view_although_it_hears_nobody_is_a_stall() -> None:
    made = started(3, "view.deaf_primary", cut=DEAF)
    with pytest.raises(AssertionError, match="nothing answered for"):
        run(made, 4_000)


def test_one_vote_moves_nobody_who_hears_the_primary() -> None:
    link = Link()
    link.deliver(1, StartViewChange(7, 2))
    link.run()
    assert link[1].state.view == 0
    link.deliver(0, StartViewChange(7, 2))
    link.run()
    assert link[0].state.view == 0
    assert link.messages(StartViewChange) == []


def test_the_vote_of_the_own_primary_moves_its_backups_at_once() -> None:
    link = Link()
    link.deliver(1, StartViewChange(1, 0))
    link.run()
    assert link[1].state.view == 1


def test_votes_and_wishes_of_a_quorum_are_what_moves_a_replica() -> None:
    link = Link(5)
    link.deliver(1, PreVote(1, 2))
    link.deliver(1, StartViewChange(1, 3))
    link.deliver(1, PreVote(1, 4))
    link.tick(1, 1)
    assert link[1].state.view == 0  # it hears its primary
    link.deliver(1, StartViewChange(1, 4))
    link.run()
    assert link[1].state.view == 1


def test_wishes_grow_old() -> None:
    link = Link()
    link.deliver(1, PreVote(1, 2))
    lasts = link.config.normal_timeout_ticks
    link.lose = lambda source, to, message: True
    link.tick(lasts + 30, 1)
    assert link[1].state.view == 0
    assert link.messages(PreVote, 1) != []
    link.deliver(1, PreVote(1, 2))
    link.tick(1, 1)
    assert link[1].writes.superblock_writing is None
    assert link[1].state.view == 1


def test_a_replica_in_a_later_view_is_followed_after_a_while() -> None:
    link = Link()
    link.request(0, 1, 1, PUT)
    link.deliver(2, PreVote(1, 1))
    link[2].state.timers.heard_at = -1_000
    link.tick(1, 2)
    assert [link[node].state.view for node in range(3)] == [0, 0, 1]
    link.tick(link.config.abdicate_timeout_ticks // 2)
    assert [link[node].state.view for node in range(3)] == [0, 0, 1]
    link.request(0, 1, 2, PUT)
    assert link.replies[-1].request == 2
    link.tick(link.config.abdicate_timeout_ticks)
    assert {link[node].state.status for node in range(3)} == {"normal"}
    assert len({link[node].state.view for node in range(3)}) == 1
    assert link[0].state.view >= 1


@pytest.mark.parametrize("view", [21, 22])
def test_of_two_replicas_in_views_far_apart_neither_comes_view_by_view(view: int) -> None:
    """Replica 1 restarts in a view that it led, or that was led by replica 0, which is gone: it has no vote for it."""
    link = Link()
    link.lose = lambda source, to, message: 2 in (source, to)
    link.deliver(1, StartViewChange(view, 0))
    link.run()
    link.tick(2 * link.config.abdicate_timeout_ticks)
    assert [(link[node].state.view, link[node].state.status) for node in (0, 1)] == [(view, "normal")] * 2
    link.crash(0)
    link.crash(1)
    link.lose = lambda source, to, message: False
    link.boot(1)
    assert link[2].state.view < 3
    link.tick(3 * (link.config.view_change_timeout_ticks + link.config.normal_timeout_ticks))
    assert [(link[node].state.view, link[node].state.status) for node in (1, 2)] == [(view + 1, "normal")] * 2


def test_who_votes_for_its_view_does_not_run_on_for_one_that_waits_in_an_earlier_view() -> None:
    """It mends its log for long, say, and does not come."""
    link = Link()
    link.lose = lambda source, to, message: True
    link.deliver(1, StartViewChange(1, 0))
    link.run()
    for _ in range(10):
        link.deliver(1, PreVote(1, 2))
        link.tick(link.config.normal_timeout_ticks - 1, 1)
    assert (link[1].state.view, link[1].state.status) == (1, "view_change")
    link.crash(1)
    link.boot(1)
    for _ in range(10):
        link.deliver(1, PreVote(1, 2))
        link.tick(link.config.normal_timeout_ticks - 1, 1)
    assert (link[1].state.view, link[1].state.status) == (2, "view_change")


def test_what_was_wanted_before_this_view_began_is_no_wish_to_leave_it() -> None:
    link = Link()
    link.lose = lambda source, to, message: True
    link.deliver(1, StartViewChange(1, 0))
    link.run()
    link.crash(1)
    link.boot(1)
    votes = link[1].pre_votes
    link.deliver(1, PreVote(3, 2))
    assert votes.quorum_wants()
    link.deliver(1, StartViewChange(3, 0))
    link.run()
    assert (link[1].state.view, votes.wants, votes.quorum_wants()) == (3, {}, False)
    link.deliver(1, PreVote(4, 2))
    assert votes.quorum_wants()


def test_a_heartbeat_is_answered_and_an_acknowledgement_is_an_answer_too() -> None:
    link = Link()
    link.tick(20, 0)
    assert {message.replica for message in link.messages(HeartbeatOk) if isinstance(message, HeartbeatOk)} == {1, 2}
    link.lose = lambda source, to, message: isinstance(message, HeartbeatOk)
    for number in range(1, 9):
        link.tick(link.config.abdicate_timeout_ticks // 2)
        link.request(0, 1, number, PUT)
    assert link.messages(PrepareOk) != []
    assert (link[0].state.view, link[0].state.status) == (0, "normal")


def slow(made: SimCluster, *nodes: int) -> None:
    """Every write of these replicas takes 20 to 40 ticks."""
    for node in nodes:
        made.storages[node].slow = True


def test_a_primary_with_a_slow_disk_hands_over_and_keeps_pace_with_the_others_as_a_backup() -> None:
    made = cluster(3)
    fast, _ = run(made, TICKS)
    slow(made, 0)
    run(made, 1_000)
    assert views(made) == [1, 1, 1]
    answered, _ = run(made, TICKS)
    assert answered > 0.8 * fast
    assert views(made) == [1, 1, 1]


@pytest.mark.parametrize("quorums", [None, Quorums(1, 7), Quorums(2, 6)])
def test_of_seven_a_primary_with_a_slow_disk_hands_over_too(quorums: Quorums | None) -> None:
    """The next primary's acknowledgement is often not among those that commit an entry, and counts all the same."""
    made = started(7, cut=set(), quorums=quorums)
    run(made, 200)
    slow(made, 0)
    run(made, 1_000)
    assert views(made) == [1] * 7


def test_where_others_are_as_slow_the_primary_stays() -> None:
    made = cluster(3)
    slow(made, 0, 1)
    run(made, 2_000)
    assert views(made) == [0, 0, 0]
