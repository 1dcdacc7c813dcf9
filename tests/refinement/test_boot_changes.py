"""Boot events are checked like any others: one changed column of a boot is rejected, or the run is inconclusive.

`ACCEPTED` are the exceptions, argued in docs/audit.md ("Boots").
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.refinement.lockstep import Follower
from tests.refinement.traces import EVENT, NODE, SEQ, load, other_value, put
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.trace.events import TraceEvent
from viewproof.refinement.checker import check_run
from viewproof.refinement.native.columns import CONFIGURATION as CONFIGURATION_COLUMNS
from viewproof.refinement.schema import COLUMNS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

OFTEN = replace(NAMED_PROFILES["rot"], checkpoint_interval=2, journal_slots=8)
"""A checkpoint every two ops: what a damaged log lacks the others have drained, and a snapshot comes with theirs."""
BOOTS = ("start", "restart", "recover", "on_start_view")
ACCEPTED = {(event, "supports") for event in BOOTS}
"""A member may support more or fewer features with each start."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[list[Row]]:
    """Good runs in which replicas restart, get back a lost log, and get another's snapshot with it."""
    made = [showing_all(tmp_path_factory.mktemp("run"), replicas) for replicas in (3, 5)]
    for rows in made:
        assert judged(rows).verdict == "conforms"
    return made


def showing_all(directory: Path, replicas: int) -> list[Row]:
    """The first run that shows what these tests change."""
    for seed in range(30):
        result = simulate(seed, replicas=replicas, requests=40, profile=OFTEN, out=directory)
        assert result.ok, result.failures
        assert result.trace is not None
        rows = load(result.trace)
        shown = {(row[EVENT], bool(row[INDEX["m_checkpoint"]])) for row in rows}
        wanted = {("recover", False), ("recover", True), ("restart", False), ("on_start_view", True)}
        if shown >= wanted and any(in_its_view(rows)):
            return rows
    raise AssertionError("no run shows all of it")


def in_its_view(rows: list[Row]) -> Iterator[tuple[int, Row]]:
    """Where a replica gets back a lost log in the view that it was in, and its event before that."""
    for at in boots(rows, "recover"):
        before = [row for row in rows[:at] if row[NODE] == rows[at][NODE]][-1]
        if before[INDEX["view"]] == rows[at][INDEX["m_view"]]:
            yield at, before


def test_a_boot_without_a_feature_that_is_enabled_is_rejected(tmp_path: Path) -> None:
    """A member may come back with fewer features than it said yes to, but not at a checkpoint that needs them."""
    result = simulate(0, requests=60, profile=NAMED_PROFILES["crashes"], features="all", out=tmp_path)
    assert result.trace is not None
    rows = load(result.trace)
    assert judged(rows).verdict == "conforms"
    enabled = [at for at, row in enumerate(rows) if row[EVENT] == "restart" and row[INDEX["features"]]]
    assert len(enabled) > 3
    for at in enabled[:3]:
        verdict = with_change(rows, at, supports=0)
        assert (verdict.verdict, [each.rule_id for each in verdict.violations]) == ("violates", ["I14"])


def test_a_feature_that_nobody_supports_does_not_come_with_a_log(runs: list[list[Row]]) -> None:
    """Not even at a run's end, where what the sender did later is not known: the node's own boot says what it can."""
    for rows in runs:
        ats = [*boots(rows, "on_start_view")]
        for at in {*ats[:2], *ats[-4:]}:
            assert with_change(rows, at, features=1).verdict == "violates"


def judged(rows: list[Row]) -> RunVerdict:
    return check_run("run", rows, AuditOptions())


def with_change(rows: list[Row], at: int, **values: Any) -> RunVerdict:
    return judged([*rows[:at], put(rows[at], **values), *rows[at + 1 :]])


def boots(rows: list[Row], *events: str) -> Iterator[int]:
    return (at for at, row in enumerate(rows) if row[EVENT] in events)


def same_message(rows: list[Row], at: int, seq: Any) -> bool:
    """Did that event of the sender send what the event at `at` received?"""
    columns = [INDEX[name] for name in ("m_view", "m_op", "m_commit")]
    sent = [row for row in rows if (row[NODE], row[SEQ]) == (rows[at][INDEX["m_from"]], seq)]
    return bool(sent) and all(sent[0][column] == rows[at][column] for column in columns)


def started(rows: list[Row], view: int) -> set[int]:
    """Views up to `view` that had started: a replica may have installed one's log, and died before it said so."""
    views = {row[INDEX["m_view"]] for row in rows if row[EVENT] == "start_view"}
    return {0, *(each for each in views if each <= view)}


@pytest.mark.parametrize("event", BOOTS)
def test_another_value_in_a_boot_event_is_never_accepted(event: str, runs: list[list[Row]]) -> None:
    tried = 0
    for number, rows in enumerate(runs):
        rng = random.Random(number)
        for column in COLUMNS[5:]:
            shown = [at for at in boots(rows, event) if rows[at][INDEX[column]] is not None]
            for at in rng.sample(shown, min(2, len(shown))):
                value = other_value(rng, column, rows[at][INDEX[column]], rows)
                verdict = with_change(rows, at, **{column: value})
                tried += 1
                if verdict.verdict == "conforms" and column == "m_log_view":
                    own = value % len({row[NODE] for row in rows}) == rows[at][NODE]
                    assert value in started(rows[:at], rows[at][INDEX["m_view"]]) or own
                elif verdict.verdict == "conforms" and (event, column) == ("recover", "m_checkpoint"):
                    assert {0, rows[at][INDEX["checkpoint"]]} == {value, rows[at][INDEX[column]]}, "whose it was"
                elif verdict.verdict == "conforms" and (event, column) not in ACCEPTED:
                    assert column == "m_seq", (event, column, rows[at][INDEX[column]], value)
                    assert same_message(rows, at, value)
                assert verdict.verdict != "inconclusive" or verdict.missing
    assert tried > 60


def alone_in_the_next_view(before: Row) -> Row:
    """The event after `before` of a replica that times out, and says so."""
    view = before[INDEX["view"]] + 1
    return put(
        put(before, **dict.fromkeys(COLUMNS[COLUMNS.index("checkpoint") + 1 :])),
        event="start_view_change",
        m_type="start_view_change",
        seq=before[SEQ] + 1,
        status="view_change",
        **dict.fromkeys(("view", "durable_view", "m_view"), view),
    )


def test_a_view_that_was_durable_is_never_forgotten(runs: list[list[Row]]) -> None:
    found = 0
    for rows in runs:
        for at, before in in_its_view(rows):
            node = rows[at][NODE]
            rest = [put(row, seq=row[SEQ] + 1) if row[NODE] == node else row for row in rows[at:]]
            verdict = judged([*rows[:at], alone_in_the_next_view(before), *rest])
            assert verdict.events == at + 1
            assert verdict.violations[0].rule_id == "I6"
            found += 1
    assert found


@pytest.mark.parametrize("by", [-2, 2])
def test_a_recovered_snapshot_is_that_which_was_sent(by: int, runs: list[list[Row]]) -> None:
    for rows in runs:
        for at in boots(rows, "recover"):
            if not rows[at][INDEX["m_checkpoint"]]:
                continue
            moved = {name: rows[at][INDEX[name]] + by for name in ("m_checkpoint", "checkpoint", "commit_min")}
            changes = [moved, {"checkpoint": moved["checkpoint"]}]
            if moved["m_checkpoint"]:  # 0: its own, which it may have taken, and not shown before it died
                changes.append({"m_checkpoint": moved["m_checkpoint"]})
            for values in changes:
                if moved["checkpoint"] >= 0:
                    assert with_change(rows, at, **values).verdict != "conforms", values


@pytest.mark.parametrize("column", CONFIGURATION_COLUMNS)
@pytest.mark.parametrize("event", ["start", "restart", "recover"])
def test_a_boot_with_another_configuration_is_found(event: str, column: str, runs: list[list[Row]]) -> None:
    rows = runs[0]
    at = next(at for at in boots(rows, event) if at > 0)
    value = rows[at][INDEX[column]]
    changed = with_change(rows, at, **{column: value + 1})
    assert (changed.verdict, changed.events) == ("violates", at)
    assert changed.violations[0].rule_id == "configuration"
    assert column in changed.violations[0].message
    missing = with_change(rows, at, **{column: None})
    if value:
        assert missing.verdict == "inconclusive"
        assert missing.missing[0].startswith(f"{column} of {event} at ")
    else:
        assert missing.verdict == "conforms"


def test_a_configuration_that_the_first_event_does_not_show_is_inconclusive(runs: list[list[Row]]) -> None:
    rows = runs[0]
    for column in ("checkpoint_interval", "client_slots"):
        if not rows[0][INDEX[column]]:
            continue
        verdict = with_change(rows, 0, **{column: None})
        assert verdict.verdict == "inconclusive"
        assert verdict.missing[0].startswith(f"{column} of start at ")


def test_more_and_fewer_supported_features_are_no_finding(runs: list[list[Row]]) -> None:
    rows = runs[0]
    for event in ("start", "restart", "recover"):
        last = max(boots(rows, event))
        for supports in (1, 5):
            assert with_change(rows, last, supports=supports).verdict == "conforms"


@pytest.fixture(scope="module")
def until_recovered(runs: list[list[Row]]) -> list[Row]:
    """A run up to where a replica gets back a lost log with a snapshot."""
    rows = runs[0]
    return rows[: next(at for at in boots(rows, "recover") if rows[at][INDEX["m_checkpoint"]]) + 1]


def test_the_reference_interpreter_and_the_replay_agree_on_lost_logs(until_recovered: list[Row]) -> None:
    rows = until_recovered
    replay, reference = (check_run("run", rows, AuditOptions(), engine=name) for name in ("replay", "interp"))
    assert replay == reference
    assert replay.coverage["recover_snapshot"] == 1


def test_every_invariant_holds_where_a_lost_log_came_back(until_recovered: list[Row]) -> None:
    """I3, I6, I11 and the others in the spec's state, which the audit itself does not evaluate."""
    follower = Follower()
    for row in until_recovered:
        event = TraceEvent(**dict(zip(COLUMNS, row, strict=False)))
        follower.feed(event)
        if event.event == "recover":
            follower.check()
