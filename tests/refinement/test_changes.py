"""One change of one event of a good trace is rejected, or the reference interpreter itself shows it to be harmless."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from tests.refinement.traces import Change, change, put, simulated, without
from viewproof.impl.sim.named_profiles import LATE, NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.native.configuration import deviations
from viewproof.refinement.schema import COLUMNS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions
from viewproof.spec.lang import SpecError
from viewproof.spec.vsr.faults import FAULTS

SEEDS = range(12)
CHANGES_PER_RUN = 40
SEEN_ONCE = ("m_reply", "digest")
"""Columns that the audit compares with each other only: what one event alone shows has nothing to contradict it."""


ASKED = {(event, column) for event in ("drop_request", "send_eviction") for column in
         ("m_client", "m_session", "m_request", "m_incarnation", "m_outcome")}  # fmt: skip
"""What a client asked is shown by the answer alone: another question with the same answer is a trace as good."""


def shown_elsewhere(rows: list[Row], made: Change) -> int:
    """How many other events show the same op's reply, or the digest of the same commit_min."""
    key = INDEX["m_op" if made.column == "m_reply" else "commit_min"]
    changed = next(row for row in rows if (row[INDEX["node"]], row[INDEX["seq"]]) == (made.node, made.seq))
    return sum(row[key] == changed[key] and row[INDEX[made.column]] is not None for row in rows) - 1


def never_seen(rows: list[Row], made: Change) -> bool:
    """Does no other event name the prepare of the event that was dropped, not even as the head of the log?"""
    columns = [INDEX[name] for name in ("m_checksum", "m_parent", "head")]
    dropped = next(row for row in rows if (row[INDEX["node"]], row[INDEX["seq"]]) == (made.node, made.seq))
    name = dropped[INDEX["m_checksum"]]
    return all(row is dropped or name not in [row[column] for column in columns] for row in rows)


def ended(rows: list[Row], made: Change) -> bool:
    """Was an execution dropped that is its node's last event, or its last before a restart?

    What is executed is not durable before a checkpoint: the replica may have been killed before it.
    """
    if (made.kind, made.event) != ("drop", "execute"):
        return False
    after = [row for row in rows if row[INDEX["node"]] == made.node and row[INDEX["seq"]] > made.seq]
    return not after or min(after, key=lambda row: row[INDEX["seq"]])[INDEX["event"]] in ("restart", "recover")


def undecided_by_name(rows: list[Row], made: Change, missing: str) -> bool:
    """Can nobody tell what such a change means, because of what it leaves unshown? Then that is named."""
    last = max(row[INDEX["seq"]] for row in rows if row[INDEX["node"]] == made.node)
    if made.column in ("m_from", "m_seq") or (made.event, made.column) == ("repair", "m_checksum"):
        assert "ends at event" in missing or "clock of event" in missing, missing
    elif (made.kind, made.seq) == ("drop", last):
        assert f"the trace of node {made.node} ends at event {last - 1}" in missing, missing
    elif made.column == "m_operation":
        needed = ("m_namespace", "m_offset", "m_count", "m_consumer", "m_group")
        assert any(f"{column} of execute" in missing for column in needed), missing
    else:
        return False
    return True


@pytest.mark.parametrize("seed", [pytest.param(n, marks=pytest.mark.long) if n % 3 else n for n in SEEDS])
def test_a_single_change_is_rejected_or_harmless(seed: int, tmp_path: Path) -> None:
    rows = simulated(tmp_path, seed, replicas=3, requests=40)
    assert check_run("run", rows, AuditOptions()).verdict == "conforms"
    rng = random.Random(seed)
    accepted: Counter[tuple[str, str, str]] = Counter()
    for _ in range(CHANGES_PER_RUN):
        made = change(rng, rows)
        verdict = check_run("run", made.rows, AuditOptions())
        if verdict.verdict == "violates":
            found = verdict.violations[0]
            position = next(
                i for i, row in enumerate(rows) if (row[INDEX["node"]], row[INDEX["seq"]]) == (made.node, made.seq)
            )
            assert verdict.events >= position - (made.kind == "drop"), "an event before the change was rejected"
            assert all((found.message, found.rule_id, found.line))
            continue
        if verdict.verdict == "inconclusive" and undecided_by_name(rows, made, verdict.missing[0]):
            continue
        if made.column in SEEN_ONCE:
            assert shown_elsewhere(rows, made) == 0, f"a changed {made.column} of {made.event} was accepted"
            continue
        if (made.event, made.column) in ASKED:
            assert check_run("run", made.rows, AuditOptions(), engine="interp").verdict == verdict.verdict, made
            continue
        assert made.kind == "drop", (
            f"a changed {made.column} of {made.event} was accepted ({verdict.verdict}, {verdict.missing})"
        )
        if made.event == "on_request":
            assert never_seen(rows, made), made
        by_reference = check_run("run", made.rows, AuditOptions(), engine="interp")
        assert by_reference.verdict == verdict.verdict, made
        if not ended(rows, made):
            accepted[made.kind, made.event, verdict.verdict] += 1
    lossless = {
        "prepare_ok",
        "on_prepare_ok",
        "send_commit",
        "send_start_view",
        "commit",
        "do_view_change",
        "resend_reply",
        "start_view_change",
        "on_start_view_change",
        "on_do_view_change",
        "on_commit",
        "drop_request",
        "drop_prepare",
        "send_eviction",
        "restart",  # of a replica that lost nothing by it
        "on_request",  # whose prepare nobody saw
        "ask_features",  # who did not get all answers
        "say_features",  # whose answer did not arrive, or not the last one
        "on_features",  # of a round that came to nothing
    }
    assert {event for _, event, _ in accepted} <= lossless, accepted


def test_the_reference_interpreter_and_the_replay_agree_on_good_and_faulty_runs(tmp_path: Path) -> None:
    for seed in range(4):
        for faults in ((), ("commit.apply_at_replicate",), ("boot.view_from_last_prepare",)):
            rows = simulated(tmp_path / f"{seed}{len(faults)}{faults}", seed, requests=30, faults=frozenset(faults))
            replay, reference = (check_run("run", rows, AuditOptions(), engine=e) for e in ("replay", "interp"))
            assert replay == reference


MISSING = ("commit_min", "digest", "head", "view", "durable_log_view")


@pytest.mark.parametrize("column", MISSING)
def test_an_observation_that_is_never_made_is_inconclusive_by_name(column: str, tmp_path: Path) -> None:
    rows = [put(row, **{column: None}) for row in simulated(tmp_path, 3, requests=20)]
    verdict = check_run("run", rows, AuditOptions())
    assert verdict.verdict == "inconclusive"
    assert any(column in reason for reason in verdict.missing)


@pytest.mark.parametrize("column", MISSING)
def test_an_observation_confirmed_later_does_not_decide(column: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, requests=20)
    at = next(i for i, row in enumerate(rows) if row[INDEX["event"]] == "on_prepare")
    rows[at] = put(rows[at], **{column: None})
    assert check_run("run", rows, AuditOptions()).verdict == "conforms"


@pytest.mark.parametrize("column", ["m_client", "m_request"])
def test_a_parameter_that_nothing_else_shows_is_inconclusive_by_name_and_place(column: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, requests=20)
    at = next(i for i, row in enumerate(rows) if row[INDEX["event"]] == "on_request")
    rows[at] = put(rows[at], **{column: None})
    verdict = check_run("run", rows, AuditOptions())
    assert verdict.verdict == "inconclusive"
    assert verdict.events == len(rows), "what can be judged is judged"
    assert f"{column} of on_request" in verdict.missing[0]


@pytest.mark.parametrize(
    "column", ["m_view", "m_op", "m_commit", "m_checksum", "m_parent", "m_client", "m_request", "m_type"]
)
def test_message_columns_known_from_the_sender_may_be_missing(column: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, requests=20)
    rows = [put(row, **{column: None}) if row[INDEX["event"]] == "on_prepare" else row for row in rows]
    assert check_run("run", rows, AuditOptions()).verdict == "conforms"


@pytest.mark.parametrize("event", ["on_prepare", "start_view_change"])
def test_an_event_of_a_sender_that_is_not_named_is_inconclusive(event: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 0, requests=20, profile=NAMED_PROFILES["storm"])
    at = next(n for n, row in enumerate(rows) if row[INDEX["event"]] == event and row[INDEX["m_seq"]])
    verdict = check_run("run", [*rows[:at], put(rows[at], m_from=None), *rows[at + 1 :]], AuditOptions())
    assert verdict.verdict == "inconclusive"
    assert f"m_from of {event}" in verdict.missing[0]
    assert f"whose event {rows[at][INDEX['m_seq']]} sent its message" in verdict.missing[0]


@pytest.mark.parametrize("column", ["m_from", "m_seq"])
def test_a_dropped_prepare_was_sent(column: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 7600, requests=20, profile=LATE)
    at = next(i for i, row in enumerate(rows) if row[INDEX["event"]] == "drop_prepare")
    for other in {0, 1, 2} - {rows[at][INDEX[column]]}:
        changed = [*rows[:at], put(rows[at], **{column: other}), *rows[at + 1 :]]
        verdict = check_run("run", changed, AuditOptions())
        assert (verdict.verdict, verdict.violations[0].line) == ("violates", rows[at][-1])


@pytest.mark.parametrize("fault", ["boot.view_from_last_prepare", "commit.fence_on_commit_max"])
def test_a_permitted_deviation_is_used_and_reported(fault: str, tmp_path: Path) -> None:
    for seed in range(20):
        rows = simulated(tmp_path / str(seed), seed, requests=60, faults=frozenset({fault}))
        strict = check_run("run", rows, AuditOptions())
        if strict.verdict != "violates":
            continue
        allowed = check_run("run", rows, AuditOptions(allow=(fault,)))
        assert allowed.events > strict.events
        assert any(use.fault == fault for use in allowed.allowed_uses)
        return
    raise AssertionError("no seed showed the fault")


def test_a_trace_whose_end_is_lost_is_inconclusive_and_says_where_it_ends(tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, requests=30)
    cut = [row for row in rows if row[INDEX["node"]] != 1 or row[INDEX["seq"]] <= 50]
    verdict = check_run("run", cut, AuditOptions())
    assert verdict.verdict == "inconclusive"
    assert "the trace of node 1 ends at event 50" in verdict.missing[0]


def test_a_log_installed_without_its_bodies_in_the_journal_breaks_honest_ack(tmp_path: Path) -> None:
    for seed in range(40):
        rows = simulated(tmp_path / str(seed), seed, requests=60)
        repairs = [i for i, row in enumerate(rows) if row[INDEX["event"]] == "repair"]
        if not repairs:
            continue
        for at in reversed(repairs):
            rows = without(rows, at)
        verdict = check_run("run", rows, AuditOptions())
        if verdict.verdict == "violates":
            assert verdict.violations[0].rule_id == "I3"
            return
    raise AssertionError("no run repaired a log that it installed")


def test_a_reply_that_differs_between_replicas_breaks_exactly_once(tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, requests=20)
    shown = Counter(row[INDEX["m_op"]] for row in rows if row[INDEX["m_reply"]] is not None)
    op = next(op for op, events in shown.items() if events > 1)
    at = next(i for i, row in enumerate(rows) if row[INDEX["m_reply"]] is not None and row[INDEX["m_op"]] == op)
    rows[at] = put(rows[at], m_reply="ab" * 16)
    verdict = check_run("run", rows, AuditOptions())
    assert (verdict.verdict, verdict.violations[0].rule_id) == ("violates", "I8")


def test_a_digest_that_does_not_follow_the_state_is_rejected(tmp_path: Path) -> None:
    rows = [put(row, digest="ab" * 16) for row in simulated(tmp_path, 3, requests=20)]
    verdict = check_run("run", rows, AuditOptions())
    assert (verdict.verdict, verdict.violations[0].rule_id) == ("violates", "I14")


def require_no_cut_to_violate(rows: list[Row], step: int) -> None:
    for node in range(3):
        last = max(row[INDEX["seq"]] for row in rows if row[INDEX["node"]] == node)
        for end in range(node, last, step):
            cut = [row for row in rows if row[INDEX["node"]] != node or row[INDEX["seq"]] <= end]
            verdict = check_run("run", cut, AuditOptions())
            assert verdict.verdict != "violates", (node, end, verdict.violations)


@pytest.mark.parametrize("seed", [3, 7, 13])
def test_a_trace_cut_somewhere_is_never_said_to_violate(seed: int, tmp_path: Path) -> None:
    require_no_cut_to_violate(simulated(tmp_path, seed, requests=25), step=29)


@pytest.mark.long
@pytest.mark.parametrize("seed", [3, 4, 7, 10, 13, 21])
def test_a_trace_cut_anywhere_is_never_said_to_violate(seed: int, tmp_path: Path) -> None:
    require_no_cut_to_violate(simulated(tmp_path, seed, requests=25), step=3)


def test_a_violation_is_explained_in_the_words_of_the_spec(tmp_path: Path) -> None:
    rows = simulated(tmp_path, 0, replicas=3, requests=20)
    at = [i for i, row in enumerate(rows) if row[INDEX["event"]] == "commit"][3]
    op = rows[at][INDEX["m_op"]]
    changed = [*rows[:at], put(rows[at], m_op=op - 1), *rows[at + 1 :]]
    verdict = check_run("run", changed, AuditOptions())
    (found,) = verdict.violations
    assert found.rule_id == "commit/each"
    assert f"the event names op {op - 1}, but commit_max is already {op - 1}" in found.message
    assert found.why_not[0].startswith(f"commit(r={found.node}, o={op - 1}): o == state.commit_max[r] + 1 is false")
    assert found.state_before[f"entry[{found.node}, {op}]"] == "v0"
    assert sum(verdict.events_by_name.values()) == verdict.events + 1
    assert verdict.events_by_name["prepare_ok"] > 0
    changed = [*rows[:at], put(rows[at], commit_max=op + 1), *rows[at + 1 :]]
    (found,) = check_run("run", changed, AuditOptions()).violations
    assert (found.rule_id, found.why_not) == ("observed.commit_max", ())


def test_a_permitted_configuration_is_reported_where_it_is_shown(tmp_path: Path) -> None:
    fault = "view.even_quorum"
    rows = simulated(tmp_path, 0, replicas=4, requests=20, faults=frozenset({fault}))
    assert check_run("run", rows, AuditOptions()).violations[0].rule_id == "configuration"
    allowed = check_run("run", rows, AuditOptions(allow=(fault,)))
    assert [(use.fault, use.seq) for use in allowed.allowed_uses] == [(fault, 1)]
    good = check_run("run", simulated(tmp_path / "good", 0, requests=20), AuditOptions(allow=(fault,)))
    assert not good.allowed_uses


@pytest.mark.parametrize(
    ("ring", "missing"),
    [
        (None, "ring of the first event; without it there is no nack: event at"),
        (0, "a meaning of nack, in the configuration that the first event shows (ring 0): event at"),
    ],
)
def test_an_event_of_a_part_that_is_off_says_what_decided_that(ring: int | None, missing: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 1, replicas=3, requests=4)
    boots = [put(row, ring=ring) if row[INDEX["event"]] in ("start", "restart") else row for row in rows]
    verdict = check_run("run", [*boots[:-1], put(boots[-1], event="nack")], AuditOptions())
    assert verdict.verdict == "inconclusive"
    assert verdict.missing[0].startswith(missing), verdict.missing


def test_who_is_normal_in_view_0_has_nothing_to_nack(tmp_path: Path) -> None:
    """The view of a nack is above that of the prepare; 0 is also what stands for none."""
    rows = simulated(tmp_path, 4, replicas=3, requests=4, profile=NAMED_PROFILES["rot"])
    at = next(n for n, row in enumerate(rows) if row[INDEX["event"]] == "prepare_ok")
    assert (rows[at][INDEX["view"]], rows[at][INDEX["status"]]) == (0, "normal")
    last, op, head = rows[at], rows[at][INDEX["op"]], rows[at][INDEX["head"]]
    said = dict.fromkeys(COLUMNS[COLUMNS.index("m_type") :])
    said |= {"m_type": "nack", "m_view": 0, "m_log_view": 0, "m_op": op, "m_checksum": head}
    nack = put(last, event="nack", seq=last[INDEX["seq"]] + 1, **said)
    verdict = check_run("run", [*rows[: at + 1], nack], AuditOptions())
    (found,) = verdict.violations
    assert (found.seq, found.rule_id) == (nack[INDEX["seq"]], "nack/0")


@pytest.mark.parametrize("engine", ["replay", "interp"])
@pytest.mark.parametrize("seed", [100, 101, 103])
def test_a_request_of_client_0_is_refused_and_named(seed: int, engine: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, seed, replicas=2 + seed % 2, requests=3)[:26]
    at = next(n for n, row in enumerate(rows) if row[INDEX["event"]] == "on_request")
    for holes in ([], [at - 1]):
        changed = [*rows[:at], put(rows[at], m_client=0), *rows[at + 1 :]]
        left = [row for number, row in enumerate(changed) if number not in holes]
        (found,) = check_run("run", left, AuditOptions(), engine=engine).violations
        assert found.rule_id in ("on_request/c", "on_register/c")
        assert "c of on_re" in found.message
        assert "is 0, which is no Client" in found.message


def test_no_permitted_deviation_stops_an_audit_and_one_that_does_not_fit_is_named(tmp_path: Path) -> None:
    rows = simulated(tmp_path, 0, replicas=3, requests=20)
    permitted = [id for id in FAULTS if is_permitted(id)]
    assert len(permitted) > 30
    verdict = check_run("run", rows, AuditOptions(allow=tuple(permitted)))
    assert verdict.verdict in ("conforms", "inconclusive")
    named = {note.split()[0] for note in verdict.notes if "is not permitted here" in note}
    assert "view.blind_start_view_head" in named
    assert "commit.apply_at_replicate" not in named


def is_permitted(fault: str) -> bool:
    try:
        deviations((fault,))
    except SpecError:
        return False
    return True
