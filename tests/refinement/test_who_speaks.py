"""Who sends a message, and who counts it: a primary says itself what it commits, each counts what is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.refinement.test_flat import agree, written
from tests.refinement.traces import CLOCK, EVENT, M_FROM, M_SEQ, NODE, SEQ, put, simulated
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.impl.sim.profile import SimProfile
from viewproof.refinement.checker import check_run
from viewproof.refinement.ordering import order_key
from viewproof.refinement.schema import COLUMNS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

MESSAGE = [name for name in COLUMNS if name.startswith("m_")]


def run_with(folder: Path, event: str, profile: SimProfile | None) -> list[Row]:
    """A good run in which such an event has a sender."""
    for seed in range(20):
        rows = simulated(folder / str(seed), seed, requests=20, profile=profile)
        if any(row[EVENT] == event and row[M_FROM] is not None for row in rows):
            return rows
    raise AssertionError(f"no run has {event}")


def inserted(rows: list[Row], event: Row, node: int, after: int) -> list[Row]:
    """The run in which that node had the event, too, after its event number `after`."""
    rows = [put(row, clock=2 * row[CLOCK]) for row in rows]
    before = next(row for row in rows if (row[NODE], row[SEQ]) == (node, after))
    shown = {name: event[INDEX[name]] for name in ("event", *MESSAGE)}

    def later(row: Row) -> Row:
        if row[NODE] == node and row[SEQ] > after:
            row = put(row, seq=row[SEQ] + 1)
        if row[M_FROM] == node and row[M_SEQ] is not None and row[M_SEQ] > after:
            row = put(row, m_seq=row[M_SEQ] + 1)
        return row

    new = put(before, seq=after + 1, clock=before[CLOCK] + 1, **shown)
    return sorted([*map(later, rows), new], key=order_key)


def both(rows: list[Row]) -> RunVerdict:
    """The verdict, of the compiled replay and of the reference interpreter."""
    verdict = check_run("run", rows, AuditOptions())
    assert check_run("run", rows, AuditOptions(), engine="interp") == verdict
    return verdict


@pytest.mark.parametrize(
    ("event", "profile"),
    [
        ("on_commit", None),
        ("on_start_view", None),
        ("recover", NAMED_PROFILES["rot"]),
    ],
)
def test_what_a_primary_says_comes_from_it(
    event: str, profile: SimProfile | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = run_with(tmp_path, event, profile)
    at = next(n for n, row in enumerate(rows) if row[EVENT] == event and row[M_FROM] is not None)
    changed = list(rows)
    for other in {0, 1, 2} - {rows[at][M_FROM]}:
        changed[at] = put(rows[at], m_from=other, m_seq=None)
        verdict = both(changed)
        assert (verdict.verdict, verdict.events) == ("violates", at)
        assert verdict.violations[0].rule_id == "event.m_from"
        assert not agree([written(changed, tmp_path / "changed.ndjson")], monkeypatch)
    changed[at] = put(rows[at], m_from=None, m_seq=None)
    assert check_run("run", changed, AuditOptions()).verdict == "conforms", "it may be left out"


def test_a_prepare_may_come_down_a_chain(tmp_path: Path) -> None:
    rows = run_with(tmp_path, "on_prepare", None)
    at = next(n for n, row in enumerate(rows) if row[EVENT] == "on_prepare" and row[M_FROM] is not None)
    for other in {0, 1, 2} - {rows[at][M_FROM], rows[at][NODE]}:
        assert both([*rows[:at], put(rows[at], m_from=other, m_seq=None), *rows[at + 1 :]]).verdict == "conforms"


def test_who_is_named_as_asking_for_a_view_had_asked(tmp_path: Path) -> None:
    rows = simulated(tmp_path, 0, requests=20, profile=NAMED_PROFILES["storm"])
    at, row = next((n, row) for n, row in enumerate(rows) if row[EVENT] == "start_view_change" and row[M_SEQ])
    asked = {other[NODE] for other in rows[:at] if other[INDEX["view"]] == row[INDEX["view"]]}
    for other in {0, 1, 2} - asked:
        verdict = both([*rows[:at], put(row, m_from=other, m_seq=None), *rows[at + 1 :]])
        assert (verdict.verdict, verdict.events) == ("violates", at)
        assert "had not asked for this view" in verdict.violations[0].message


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ("on_prepare_ok", "only a normal primary"),
        ("on_start_view_change", "only a replica in a view change"),
        ("on_do_view_change", "only the primary of the view"),
        ("prepare_ok", "only a normal replica"),
    ],
)
def test_each_counts_what_is_its_to_count(event: str, message: str, tmp_path: Path) -> None:
    """The same event at another replica of the same view, or at the same one in another status."""
    rows = simulated(tmp_path, 0, requests=20, profile=NAMED_PROFILES["storm"])
    view, status = INDEX["view"], INDEX["status"]
    for n, row in enumerate(rows):
        if row[EVENT] != event:
            continue
        for other in rows[n + 1 :]:
            elsewhere = other[NODE] != row[NODE] or other[status] != row[status]
            if other[view] != row[view] or not elsewhere or other[NODE] == row[M_FROM]:
                continue
            verdict = check_run("run", inserted(rows, row, other[NODE], other[SEQ]), AuditOptions())
            if verdict.verdict == "violates" and message in verdict.violations[0].message:
                return
    raise AssertionError(f"no run shows {event} where it does not belong")
