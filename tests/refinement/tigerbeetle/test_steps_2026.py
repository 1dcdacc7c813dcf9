"""Steps of the 2026 specification that come with a crash, a standby, an eviction or a vote that is sent again."""

from __future__ import annotations

from typing import Any

import pytest

from viewproof.spec.engines.replay import TAKEN, compile_spec
from viewproof.spec.vsr.tigerbeetle.config import Cluster as Configuration
from viewproof.spec.vsr.tigerbeetle.july_2026 import spec_2026
from viewproof.spec.vsr.tigerbeetle.state_2026 import KIND, NORMAL, RECOVERING, RECOVERING_HEAD, SLOTS, VIEW_CHANGE


class Cluster:
    """The compiled steps of a cluster, and its state."""

    def __init__(self, replicas: int, nodes: int) -> None:
        quorum = replicas // 2 + 1
        self.replay = compile_spec(spec_2026(Configuration(replicas, quorum, quorum, nodes=nodes)))
        self.store: Any = self.replay.new_store()
        for r in range(nodes):
            self.store.v_up[r] = True

    def takes(self, action: str, **args: int) -> bool:
        """Is the step allowed (and taken)?"""
        names = [p.name for p in self.replay.spec.action(action).params]
        return bool(self.replay.functions[action](self.store, *(args[name] for name in names)) == TAKEN)


@pytest.mark.parametrize(("replicas", "node", "allowed"), [(1, 1, True), (1, 0, False), (3, 1, True)])
def test_a_standby_of_a_cluster_of_one_follows_by_a_view_change(replicas: int, node: int, allowed: bool) -> None:
    cluster = Cluster(replicas, replicas + 1)
    store = cluster.store
    store.v_status[node] = NORMAL
    store.v_m_kind[7], store.v_m_view[7], store.v_current[node] = KIND["other"], 1, 7
    assert cluster.takes("start_view_change", r=node, v=1) == allowed


@pytest.mark.parametrize("evicted", [False, True])
def test_a_request_without_a_session_is_prepared_only_after_an_eviction(evicted: bool) -> None:
    cluster = Cluster(1, 1)
    store = cluster.store
    store.v_status[0] = NORMAL
    store.v_session[0][3] = 1
    if evicted:
        assert cluster.takes("evict", r=0, c=3)
    else:
        store.v_session[0][3] = 0
    assert cluster.takes("ask", m=5, h=9, c=3, s=1, x=1, u=1, register=0)
    assert cluster.takes("take_request", r=0, h=9, c=3)
    assert cluster.takes("on_request", r=0, e=2) == evicted


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [((20, 5), (20, 5), 1), ((20, 5), (20, 6), 2), ((20, 5), (39, 4), 2), ((20, 6), (20, 5), 1)],
)
def test_a_vote_is_replaced_by_a_newer_one_only(first: tuple[int, int], second: tuple[int, int], kept: int) -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[0], store.v_view[0] = VIEW_CHANGE, 3
    for m, (checkpoint, commit) in enumerate((first, second), 1):
        store.v_m_kind[m], store.v_m_from[m], store.v_m_view[m] = KIND["join_view"], 1, 3
        store.v_m_checkpoint[m], store.v_m_commit[m] = checkpoint, commit
        store.v_current[0] = m
        assert cluster.takes("on_join_view", r=0, q=1)
    assert store.v_join_of[0][1] == kept


def test_headers_are_written_again_before_a_start() -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[0] = RECOVERING
    for slot, (dirty, faulty) in enumerate(((True, False), (True, True), (False, False))):
        store.v_dirty[0][slot], store.v_faulty[0][slot] = dirty, faulty
    assert not cluster.takes("fix_headers", r=0)
    store.v_journal_ready[0] = True
    assert cluster.takes("fix_headers", r=0)
    assert [bool(store.v_dirty[0][slot]) for slot in range(3)] == [False, True, False]


def test_a_replica_that_starts_knows_no_slot_yet() -> None:
    cluster = Cluster(3, 3)
    assert cluster.takes("crash", r=1)
    assert cluster.takes("open_superblock", r=1, v=0, w=0, k=0, c=0)
    assert all(cluster.store.v_dirty[1][slot] and cluster.store.v_faulty[1][slot] for slot in range(SLOTS))


@pytest.mark.parametrize("node", [0, 1])
def test_a_standby_of_a_cluster_of_one_starts_as_a_backup(node: int) -> None:
    cluster = Cluster(1, 2)
    cluster.store.v_status[node] = RECOVERING
    cluster.store.v_journal_ready[node] = True
    assert cluster.takes("start_normal", r=node) == (node == 1)
    if node == 1:
        assert not cluster.takes("start_single", r=node)


@pytest.mark.parametrize("node", [0, 1])
def test_a_standby_of_a_cluster_of_one_may_doubt_its_head(node: int) -> None:
    cluster = Cluster(1, 2)
    cluster.store.v_status[node] = RECOVERING
    assert cluster.takes("doubt_head", r=node) == (node == 1)


def test_after_a_jump_newer_view_messages_are_taken_as_they_come() -> None:
    """While the new checkpoint becomes durable, the log is that of the message at hand, and no longer the first one."""
    cluster = Cluster(1, 2)
    store = cluster.store
    store.v_status[1], store.v_op[1], store.v_view[1], store.v_log_view[1] = NORMAL, 30, 1, 1
    for m, head in ((1, 45), (2, 46)):
        store.v_m_kind[m], store.v_m_view[m], store.v_m_checkpoint[m] = KIND["view"], 1, 39
        store.v_m_op[m], store.v_m_low[m], store.v_m_header[m, head] = head, head, head
    store.v_current[1] = 1
    assert cluster.takes("start_sync", r=1)
    store.v_current[1] = 2
    assert not cluster.takes("install_log", r=1, h=46, k=0)
    assert cluster.takes("install_log", r=1, h=45, k=0)
    assert cluster.takes("install_log", r=1, h=46, k=0)
    assert (store.v_op[1], store.v_commit_min[1], store.v_list_op[1]) == (46, 39, 46)


@pytest.mark.parametrize(("head", "allowed"), [(50, False), (51, True), (52, False)])
def test_a_backup_takes_the_highest_header_that_its_slots_reach(head: int, allowed: bool) -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_view[1], store.v_checkpoint[1] = VIEW_CHANGE, 3, 19
    store.v_m_kind[1], store.v_m_view[1], store.v_m_op[1], store.v_m_low[1] = KIND["view"], 3, 54, 50
    for o in range(50, 55):
        store.v_m_header[1, o] = o
    store.v_current[1] = 1
    assert cluster.takes("install_log", r=1, h=head, k=0) == allowed


@pytest.mark.parametrize(
    ("faulty", "certain"), [([], True), ([10], False), ([11], False), ([19], False), ([9], True), ([20], True)]
)
def test_a_faulty_slot_above_the_head_leaves_it_in_doubt(faulty: list[int], certain: bool) -> None:
    """Checkpoint 19 reaches up to op 51, which is in slot 19; the head is op 42, in slot 10."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_checkpoint[1], store.v_op[1] = RECOVERING, 19, 42
    for slot in faulty:
        store.v_faulty[1][slot] = True
    assert cluster.takes("start_normal", r=1) == certain


@pytest.mark.parametrize(("op", "view", "nonce", "allowed"), [(30, 3, 7, False), (30, 3, 9, True), (30, 5, 0, True)])
def test_an_unsure_head_takes_no_view_message_that_may_be_old(op: int, view: int, nonce: int, allowed: bool) -> None:
    """One of its view counts if it answers the question asked under its own nonce; one of a later view always."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_view[1], store.v_log_view[1] = RECOVERING_HEAD, 3, 3
    assert cluster.takes("ask_view", r=1, m=5, v=3, n=9)
    assert not cluster.takes("ask_view", r=1, m=6, v=3, n=8)
    store.v_m_kind[1], store.v_m_view[1], store.v_m_op[1], store.v_m_low[1] = KIND["view"], view, op, op
    store.v_m_from[1], store.v_m_nonce[1], store.v_m_header[1, op] = view % 3, nonce, op
    store.v_current[1] = 1
    assert cluster.takes("install_log", r=1, h=op, k=0) == allowed


def test_a_view_message_answers_the_question_at_hand() -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[0], store.v_header[0][0] = NORMAL, 1
    assert cluster.takes("ask_view", r=1, m=5, v=0, n=9)
    store.v_current[0] = 5
    assert not cluster.takes("send_view", r=0, m=6, low=0, n=8)
    assert cluster.takes("send_view", r=0, m=6, low=0, n=9)


@pytest.mark.parametrize(("op", "allowed"), [(47, True), (48, False)])
def test_a_prepare_far_ahead_is_not_acknowledged_before_the_checkpoint(op: int, allowed: bool) -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_checkpoint[1], store.v_op[1] = NORMAL, 19, op
    store.v_header[1][op % SLOTS], store.v_p_op[9] = 9, op
    assert cluster.takes("acknowledge", r=1, o=op, e=9) == allowed


@pytest.mark.parametrize(("client", "allowed"), [(1, False), (2, True), (3, True)])
def test_the_client_with_the_oldest_reply_is_evicted(client: int, allowed: bool) -> None:
    """Of client 3 only the table of the checkpoint knows when it was answered."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_client_top = 3
    for c, replied in ((1, 12), (2, 10), (3, 0)):
        store.v_session[0][c], store.v_replied[0][c] = c, replied
    assert cluster.takes("evict", r=0, c=client) == allowed


@pytest.mark.parametrize(("acked", "executed", "allowed"), [(0, 1, True), (1, 0, True), (1, 1, False)])
def test_a_header_of_a_view_that_is_not_durable_is_dropped(acked: int, executed: int, allowed: bool) -> None:
    """Others may have committed it meanwhile; only what was acknowledged here and committed may not be lost."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_p_op[9], store.v_header[1][4] = 4, 9
    store.v_acked[1][9], store.v_canonical[4] = acked, 9 if executed else 0
    assert cluster.takes("drop_header", r=1, o=4, e=9) == allowed


@pytest.mark.parametrize("durable", [3, 2])
def test_an_acknowledgement_that_is_held_back_is_no_promise(durable: int) -> None:
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_view[1], store.v_log_view[1], store.v_op[1] = NORMAL, 3, 3, 4
    store.v_durable_view[1], store.v_durable_log_view[1] = 3, durable
    store.v_p_op[9], store.v_header[1][4] = 4, 9
    assert cluster.takes("acknowledge", r=1, o=4, e=9)
    assert cluster.takes("send_prepare_ok", r=1, m=7, e=9)
    assert bool(store.v_acked[1][9]) == (durable == 3)


@pytest.mark.parametrize("reached", [True, False])
def test_only_a_prepare_that_is_held_is_called_present(reached: bool) -> None:
    """It may be in memory alone, but then it reached the replica since its start."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_list_op[1], store.v_list_low[1], store.v_list_header[1][4] = VIEW_CHANGE, 4, 4, 9
    store.v_p_op[9], store.v_header[1][4], store.v_dirty[1][4], store.v_faulty[1][4] = 4, 9, True, True
    store.v_m_kind[7], store.v_m_prepare[7], store.v_sent[7, 1] = KIND["prepare"], 9, reached
    assert cluster.takes("receive", r=1, m=7) == reached
    assert cluster.takes("join_view_bits", r=1, m=8, o=4, b=0, p=1) == reached
    assert cluster.takes("join_view_bits", r=1, m=8, o=4, b=0, p=0)


@pytest.mark.parametrize(("later", "denied"), [(8, True), (9, False)])
def test_a_prepare_that_a_later_log_did_away_with_may_be_denied(later: int, denied: bool) -> None:
    """Replica 1 acknowledged prepare 9 of op 4; the next view's log has `later`; then 9 comes back, not written."""
    cluster = Cluster(3, 3)
    store = cluster.store
    store.v_status[1], store.v_op[1] = NORMAL, 4
    store.v_header[1][4], store.v_p_op[9], store.v_p_op[8] = 9, 4, 4
    assert cluster.takes("acknowledge", r=1, o=4, e=9)
    store.v_status[1], store.v_header[1][4], store.v_list_op[1] = VIEW_CHANGE, later, 4
    store.v_m_kind[5], store.v_m_view[5], store.v_m_from[5], store.v_m_op[5] = KIND["view"], 2, 2, 4
    store.v_current[1] = 5
    assert cluster.takes("follow_view", r=1)
    store.v_status[1], store.v_list_header[1][4], store.v_header[1][4], store.v_dirty[1][4] = VIEW_CHANGE, 9, 9, True
    assert cluster.takes("join_view_bits", r=1, m=6, o=4, b=1, p=0) == denied
