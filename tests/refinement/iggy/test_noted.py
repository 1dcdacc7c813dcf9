"""Rare lines of Iggy's servers: state transfers, partitions that are deleted, restarts in a view change, problems."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.iggy.test_logs import GROUP, Cluster, calm, stale
from tests.refinement.real_logs import judged, verdict

PARTITION = 5


def in_partition(cluster: Cluster, node: int, event: str, op: int, more: str = "") -> None:
    """A line of iggy.sim of a partition."""
    cluster.line(
        node,
        "iggy.sim",
        f'sim_event="{event}" plane="partitions" cluster_id=1 replica_id={node} namespace_raw={PARTITION} stream_id=1 '
        f'topic_id=2 partition_id=3 view=0 log_view=0 commit={op} status="normal" role="primary" op={op} {more}',
    )


def partition(ops: int, cluster: Cluster | None = None) -> Cluster:
    """A partition in which server 0 prepares, and commits, ops; 1 follows."""
    cluster = cluster or Cluster()
    for op in range(1, ops + 1):
        more = f"parent_checksum={100 + op - 1 if op > 1 else 0} prepare_checksum={100 + op} client_id=1 request_id=1"
        in_partition(cluster, 0, "PrepareQueued", op, f'{more} operation="send_messages"')
        cluster.lines[-1] = cluster.lines[-1].replace(f"commit={op} status", f"commit={op - 1} status")
        for count, sender in ((1, 0), (2, 1)):
            reached = "true" if count == 2 else "false"
            in_partition(
                cluster, 0, "PrepareAcked", op,
                f"prepare_checksum={100 + op} ack_from_replica={sender} ack_count={count} quorum=2 "
                f"quorum_reached={reached}",
            )  # fmt: skip
            cluster.lines[-1] = cluster.lines[-1].replace(f"commit={op} status", f"commit={op - 1} status")
        for node in (0, 1):
            in_partition(cluster, node, "OperationCommitted", op, "client_id=1 request_id=1")
    return cluster


@pytest.mark.parametrize("text", ["installed; handing", "landed WITHOUT a durable checkpoint"])
def test_a_replica_that_takes_over_the_state_of_another_is_not_known_from_there(tmp_path: Path, text: str) -> None:
    cluster = calm()
    last = cluster.lines.pop()
    cluster.lines[-1] = last
    assert verdict("iggy", cluster.write(tmp_path)).violations[0].rule_id == "I4"
    cluster.lines.pop()
    cluster.line(2, "shard", f"metadata state transfer {text} shard=0 applied_frontier=2 commit_op=2 table_frontier=2")
    cluster.execute(2, 3)
    found = verdict("iggy", cluster.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())
    assert any("took its log and state from another" in cause for cause in found.missing)


def test_a_partition_is_judged_up_to_its_deletion(tmp_path: Path) -> None:
    cluster = partition(2)
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.violations == ()
    cluster.line(
        0, "server::partition_helpers", "deleted partition directory stream_id=1 topic_id=2 partition_id=3 path=DIR"
    )
    at = len(cluster.lines) - 1
    partition(1, cluster)
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.violations == ()
    assert any("the partition is deleted" in text for text in found.missing)
    del cluster.lines[at]
    assert verdict("iggy", cluster.write(tmp_path)).verdict == "violates"


def test_a_partition_that_takes_a_commit_number_over_is_not_known_from_what_it_executed_then(tmp_path: Path) -> None:
    cluster = partition(4)
    own = [at for at, line in enumerate(cluster.lines) if line.startswith("[1]") and "OperationCommitted" in line]
    for at in (own[1], own[2]):
        cluster.lines[at] = cluster.lines[at].replace("iggy.sim", "other")
    assert verdict("iggy", cluster.write(tmp_path)).verdict == "violates"
    walked = "repair window commit walk finished plane=x namespace_raw=5 commit_min_before=3 commit_min_after=4 to_op=4"
    cluster.line(1, "iggy.partitions.diag", walked)
    found = verdict("iggy", cluster.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())


def restarted(was: int, *acknowledged: int) -> Cluster:
    """Server 2 enters view 1, is killed, and comes back in view `was`; view 1 starts with those acknowledgements."""
    cluster = stale()
    start = "[2] 2026-11-28T09:59:59.000Z INFO main iggy_server: It seems that you are a developer."
    cluster.lines.insert(0, start)
    at = next(n for n, line in enumerate(cluster.lines) if "PrepareQueued" in line and "view=1" in line)
    cluster.lines[at:] = []
    if acknowledged:
        cluster.queue(1, 1, 2, 8, 0, 1, 0)
        cluster.ack(1, 1, 2, 1, 1, 1)
        cluster.ack(1, 1, 2, 2, 2, 1)
    cluster.line(2, "iggy_server", "server running; waiting on shard threads")
    cluster.line(2, "consensus::impls", f"beginning view probe replica=2 namespace_raw={GROUP}")
    head = 2 if acknowledged else 1
    adopts = f"adopting view from StartView replica=2 old_view={was} new_view=1 op={head} commit={head}"
    cluster.line(2, "consensus::impls", adopts)
    cluster.sim(2, "ReplicaStateChanged", 1, 1, head, "normal")
    return cluster


def test_a_replica_that_was_killed_before_its_view_was_written_comes_back_in_the_one_before(tmp_path: Path) -> None:
    for was in (0, 1):
        found = verdict("iggy", restarted(was).write(tmp_path))
        assert (found.verdict, found.violations) == ("inconclusive", ())


def test_a_replica_that_acknowledged_in_a_view_comes_back_in_it(tmp_path: Path) -> None:
    assert verdict("iggy", restarted(1, 2).write(tmp_path)).violations == ()
    found = verdict("iggy", restarted(0, 2).write(tmp_path)).violations[0]
    assert (found.rule_id, "beginning view probe" in str(found.carried["line"])) == ("I6", True)


def test_a_primary_that_stood_still_counts_what_was_acknowledged_before_the_others_left(tmp_path: Path) -> None:
    """One of five enters the next view too late to offer its log; that it had appended, no other line shows."""
    cluster = Cluster()
    mesh = "replica mesh complete: all peer connections established expected=4"
    cluster.line(0, "message_bus::installer::replica", mesh)
    cluster.queue(0, 0, 1, 7, 0, 0, 0)
    cluster.lines[-1] = cluster.lines[-1].replace("quorum=2", "quorum=3")
    for node in (1, 2, 3, 4):
        cluster.sim(node, "ViewChangeStarted", 1, 0, 0, "view_change", 'old_view=0 new_view=1 reason="x"')
    for count, sender in enumerate((0, 4, 1), 1):
        cluster.ack(0, 0, 1, sender, count, 0, reached=count == 3)
        cluster.lines[-1] = cluster.lines[-1].replace("quorum=2", "quorum=3")
    found = verdict("iggy", cluster.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())


def test_an_acknowledgement_of_before_a_kill_may_be_counted_while_its_sender_is_away(tmp_path: Path) -> None:
    cluster = Cluster()
    cluster.one(1, 0)
    cluster.queue(0, 0, 2, 7, 1, 1, 0)
    cluster.ack(0, 0, 2, 0, 1, 1)
    cluster.line(1, "iggy_server", "server running; waiting on shard threads")
    cluster.line(1, "consensus::impls", f"beginning view probe replica=1 namespace_raw={GROUP}")
    cluster.ack(0, 0, 2, 1, 2, 1)
    cluster.commit(0, 0, 2, 7, 1)
    cluster.line(1, "consensus::impls", "adopting view from StartView replica=1 old_view=0 new_view=0 op=2 commit=2")
    cluster.sim(1, "ReplicaStateChanged", 0, 0, 2, "normal")
    cluster.execute(1, 2)
    found = verdict("iggy", cluster.write(tmp_path))
    assert (found.verdict, found.violations) == ("inconclusive", ())


@pytest.mark.parametrize(("replayed", "refused"), [(2, False), (3, True)])
def test_what_a_replica_executes_as_it_comes_back_it_does_not_execute_again(
    tmp_path: Path, replayed: int, refused: bool
) -> None:
    cluster = calm()
    cluster.line(1, "iggy_server", "server running; waiting on shard threads")
    for op in range(1, replayed + 1):
        cluster.line(1, "iggy.metadata.diag", f"recovery replayed op op={op} operation=CreateStream user_id=1")
    cluster.line(1, "consensus::impls", f"beginning view probe replica=1 namespace_raw={GROUP}")
    adopts = "adopting view from StartView replica=1 old_view=0 new_view=0 op=3 commit=3"
    cluster.line(1, "consensus::impls", adopts)
    cluster.sim(1, "ReplicaStateChanged", 0, 0, 3, "normal")
    cluster.execute(1, 3)
    found = verdict("iggy", cluster.write(tmp_path))
    assert [v.rule_id for v in found.violations] == (["I4"] if refused else [])


@pytest.mark.parametrize(("op", "refused"), [(1, True), (2, False)])
def test_a_replica_that_says_that_it_executed_another_entry_is_refused(tmp_path: Path, op: int, refused: bool) -> None:
    """Of what it did not execute yet it is only told."""
    cluster = stale()
    has, canonical = cluster.checksum[0, op], cluster.checksum[1, 2]
    cluster.line(
        0,
        "shard",
        f"committed op {op} disagrees with the view that just started; this x shard=0 op={op} view=1 commit_max=2 "
        f"commit_min=1 local_checksum={has} canonical_checksum={canonical if op == 2 else 4711}",
    )
    found = verdict("iggy", cluster.write(tmp_path))
    assert [v.rule_id for v in found.violations] == (["I2"] if refused else [])


@pytest.mark.parametrize(
    ("target", "text", "known"),
    [
        ("shard", "no replica offers op 3 for the merged log; view change is stalled shard=0 missing_op=3", True),
        ("consensus::dvc_merge", "op 3 reported committed but nothing in the view's log chains to it op=3", True),
        ("iggy.partitions.diag", "failed to save frozen batches plane=x", True),
        ("message_bus", "replica connection lost replica=1", True),
        ("consensus::impls", "the log ate itself replica=1 view=3", False),
        ("iggy.metadata.diag", "client table on fire replica_id=1", False),
    ],
)
def test_a_problem_that_no_pattern_knows_is_named(tmp_path: Path, target: str, text: str, known: bool) -> None:
    cluster = calm()
    cluster.line(1, target, text)
    cluster.lines[-1] = cluster.lines[-1].replace(" DEBUG ", "  WARN ")
    found = verdict("iggy", cluster.write(tmp_path))
    named = [note for note in found.notes if "not known, 1 times" in note and f"{target}: " in note]
    assert (found.violations, bool(named)) == ((), not known)


@pytest.mark.parametrize(
    "line",
    [
        "thread 'shard-0' (77) panicked at core/consensus/src/impls.rs:1494:9:",
        "[1] 2026-11-28T10:00:00.900Z ERROR shard-0 iggy.consensus.diag: the log is wedged reason=X exit_status=3",
    ],
)
def test_a_server_that_stops_itself_is_named(tmp_path: Path, line: str) -> None:
    cluster = calm()
    cluster.lines.append(line)
    found = verdict("iggy", cluster.write(tmp_path))
    assert found.violations == ()
    assert any(f":{len(cluster.lines)}: a server stopped itself" in text for text in found.missing)


def test_shards_of_a_server_print_side_by_side(tmp_path: Path) -> None:
    """What a line does not name is told by the next of its own thread."""
    cluster = partition(1)
    cluster.line(1, "consensus::impls", "adopting view from StartView replica=1 old_view=0 new_view=0 op=1 commit=1")
    other = cluster.lines[-1].replace("shard-0", "shard-1")
    in_partition(cluster, 1, "ReplicaStateChanged", 1)
    cluster.lines.insert(len(cluster.lines) - 1, other)
    found = judged("iggy", cluster.write(tmp_path))
    assert [v.violations for v in found.verdicts] == [()]
    assert found.verdicts[0].coverage["on_start_view"] == 1
