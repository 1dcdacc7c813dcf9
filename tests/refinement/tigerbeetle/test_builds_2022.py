"""What differs between the simulators of June 2022, from hand-made lines: first days of the month, and later."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.tigerbeetle.logs import judged
from viewproof.refinement.tigerbeetle.profile import Cluster
from viewproof.refinement.verdict import RunVerdict
from viewproof.spec.engines.replay import TAKEN, compile_spec
from viewproof.spec.vsr.tigerbeetle.june_2022 import spec_2022
from viewproof.spec.vsr.tigerbeetle.state_2022 import KIND, NORMAL, VIEW_CHANGE

DATA = "size=128.015625MiB headers_size=16KiB prepares_size=128MiB"


def set_up(node: int, replicas: int) -> list[str]:
    """A replica's memory is set up: at the start, or in a crash."""
    quorum = replicas // 2 + 1
    return [
        f"[debug] (journal): {node}: slot_count=128 {DATA}",
        f"[debug] (replica): {node}: init: replica_count={replicas} quorum_view_change={quorum} "
        f"quorum_replication={quorum}",
    ]


def recover(node: int, early: bool, first: str = "eql") -> list[str]:
    """A journal that holds the root alone is recovered."""
    word, done = ("recover_prepares", "recover_done") if early else ("recover_slot", "recover_slots")
    labels = {"eql": "@L", "nil": "@H"} if early else {"eql": "@N", "nil": "@J"}
    decisions = [first, *["nil"] * 127]
    lines = [
        f"[debug] (journal): {node}: {word}: recovered slot={slot} label={labels[what]} decision={what}"
        for slot, what in enumerate(decisions)
    ]
    return [
        f"[debug] (journal): {node}: recover: recovering",
        *lines,
        f"[debug] (journal): {node}: {done}: dirty=0 faulty=0",
        f"[debug] (replica): {node}: transition_to_normal_from_recovering_status: view=0 "
        + ("leader" if node == 0 else "follower"),
    ]


def judge(folder: Path, *parts: list[str]) -> RunVerdict:
    """The verdict on these lines."""
    file = folder / "some.log"
    file.write_text("\n".join([line for part in parts for line in part] + [""]))
    (verdict,) = judged(file).verdicts
    assert "0 are unexplained" in verdict.notes[0]
    return verdict


@pytest.mark.parametrize("early", [True, False])
def test_both_tables_of_recovery_cases_are_known(tmp_path: Path, early: bool) -> None:
    starts = [line for node in range(3) for line in set_up(node, 3)]
    verdict = judge(tmp_path, starts, *(recover(node, early) for node in range(3)))
    assert verdict.verdict == "conforms"
    assert verdict.coverage["recover_slot"] == 3 * 128


def test_a_case_of_the_other_table_is_refused(tmp_path: Path) -> None:
    lines = recover(0, early=True)
    lines[2] = lines[2].replace("@H", "@J")
    verdict = judge(tmp_path, set_up(0, 1), lines)
    assert verdict.violations[0].line == 5
    assert "another decision" in verdict.violations[0].message


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("first", [True, False])
def test_a_crash_takes_place_if_the_memory_is_set_up_anew(tmp_path: Path, dies: bool, first: bool) -> None:
    """Builds of the first half of June print `crash` before they try, and may not do it."""
    starts = [line for node in range(3) for line in set_up(node, 3)]
    said, again = ["[debug] (health): crash replica=1"], set_up(1, 3) if dies else []
    crash = [*said, *again] if first else [*again, *said]
    back = ["[debug] (health): restart replica=1", *recover(1, early=True)]
    verdict = judge(tmp_path, starts, *(recover(node, early=True) for node in range(3)), crash, back)
    assert verdict.coverage["crash"] == dies
    assert verdict.verdict == ("conforms" if dies else "violates")
    if not dies:
        assert "restart" in verdict.violations[0].message


@pytest.mark.parametrize("count", [0, 1])
def test_a_pipeline_is_cut_before_missing_headers_are_repaired(count: int) -> None:
    """The early build keeps its pipeline where the header below is missing (1), or drops it (0)."""
    replay = compile_spec(spec_2022(Cluster(3, 2, 2, nodes=3)))
    store = replay.new_store()
    store.v_status[0], store.v_dvc_quorum[0], store.v_commit_max[0] = VIEW_CHANGE, True, 3
    store.v_pipeline_lo[0], store.v_pipeline_hi[0] = 5, 5
    store.v_pipeline[0][5] = store.v_entry[0][5] = 9
    store.v_p_parent[9] = 8
    assert replay.functions["pipeline_reset"](store, 0, count) == TAKEN
    assert store.v_pipeline_hi[0] - store.v_pipeline_lo[0] + 1 == count


def test_a_faulty_slot_emptied_by_a_cut_may_still_be_faulty() -> None:
    replay = compile_spec(spec_2022(Cluster(3, 2, 2, nodes=3)))
    store = replay.new_store()
    assert replay.functions["slot_unused"](store, 0, 7) != TAKEN
    store.v_unsure[0][7] = True
    assert replay.functions["slot_unused"](store, 0, 7) == TAKEN
    assert replay.functions["slot_unused"](store, 0, 7) != TAKEN


@pytest.mark.parametrize(("client", "allowed"), [(1, False), (2, True), (3, False)])
def test_the_client_with_the_oldest_reply_is_evicted(client: int, allowed: bool) -> None:
    replay = compile_spec(spec_2022(Cluster(3, 2, 2, nodes=3)))
    store = replay.new_store()
    store.v_client_top = 2
    for c, replied in ((1, 12), (2, 10)):
        store.v_session[0][c], store.v_replied[0][c] = c, replied
    assert (replay.functions["evict"](store, 0, client) == TAKEN) == allowed


@pytest.mark.parametrize(("later", "denied"), [(8, True), (9, False)])
def test_a_prepare_that_a_later_log_did_away_with_may_be_denied(later: int, denied: bool) -> None:
    """Replica 1 acknowledged prepare 9 of op 4; the next view's log has `later`; then 9 comes back, not written."""
    replay = compile_spec(spec_2022(Cluster(3, 2, 2, nodes=3)))
    store = replay.new_store()
    store.v_status[1], store.v_view[1], store.v_op[1], store.v_commit_max[1] = NORMAL, 2, 4, 3
    store.v_entry[1][4], store.v_disk_body[1][4], store.v_p_op[9], store.v_p_op[8] = 9, 9, 4, 4
    assert replay.functions["acknowledge"](store, 1, 4, 9) == TAKEN
    store.v_status[1], store.v_view[1], store.v_installed[1], store.v_entry[1][4] = VIEW_CHANGE, 3, True, later
    assert replay.functions["follow_view"](store, 1) == TAKEN
    store.v_entry[1][4], store.v_dirty[1][4], store.v_status[1] = 9, True, VIEW_CHANGE
    store.v_m_kind[5], store.v_m_view[5], store.v_m_from[5] = KIND["request_prepare"], 3, 0
    store.v_m_op[5], store.v_m_prepare[5], store.v_current[1] = 4, 9, 5
    assert (replay.functions["send_nack"](store, 1, 6, 4, 9) == TAKEN) == denied
