"""I15 in the audit: the spec gives offsets to executed appends and judges stored ones; the facts compare replicas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.refinement.traces import put, simulated
from viewproof.impl.groups.plane import Plane
from viewproof.impl.sim import SimProfile
from viewproof.impl.sim.named_profiles import ROT
from viewproof.refinement.checker import check_run
from viewproof.refinement.global_facts import facts_of, merge_facts
from viewproof.refinement.judging import judge_run
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

EVENT, OPERATION, OFFSET, NAMESPACE = (INDEX[c] for c in ("event", "m_operation", "m_offset", "m_namespace"))
PROFILE = SimProfile(plane=Plane.PARTITIONS, checkpoint_interval=10)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    return simulated(tmp_path_factory.mktemp("run"), 4, requests=60, profile=PROFILE)


def older(rows: list[Row]) -> list[Row]:
    """The trace as replicas wrote it that showed appends only, and not that they do."""
    hidden = {"m_operation": None, "m_consumer": None, "m_group": None, "partitions": None}
    stores = {**hidden, "m_namespace": None, "m_offset": None}
    return [put(row, **(stores if row[OPERATION] in ("store", "refused") else hidden)) for row in rows]


def named(rows: list[Row]) -> list[Row]:
    """With file and line."""
    return [(*row[: len(INDEX)], "file", line) for line, row in enumerate(rows, 1)]


def replayed(rows: list[Row], engine: str = "replay") -> RunVerdict:
    """The replay's verdict, without the facts."""
    return check_run(rows[0][0], iter(named(rows)), AuditOptions(), engine=engine)


def judged(rows: list[Row]) -> tuple[RunVerdict, str | None]:
    verdict, broken, errors = judge_run(rows[0][0], iter(named(rows)), AuditOptions(), check_run, ProblemLog())
    assert verdict is not None
    assert not errors
    return merge_facts(verdict, broken, AuditOptions())


def rules(verdict: RunVerdict) -> set[str]:
    return {violation.rule_id for violation in verdict.violations}


def changed(rows: list[Row], where: Callable[[Row], object], number: int, **values: object) -> list[Row]:
    """The trace with the `number`-th row where that holds changed."""
    at = [i for i, row in enumerate(rows) if where(row)][number]
    return [*rows[:at], put(rows[at], **values), *rows[at + 1 :]]


def test_a_good_run_states_offsets_and_conforms(rows: list[Row]) -> None:
    stated = {key for row in rows for key, _ in facts_of(row) if key[0] == "I15"}
    assert len([key for key in stated if key[2] >= 0]) > 40
    for trace in (rows, older(rows)):
        verdict, error = judged(trace)
        assert (verdict.verdict, error) == ("conforms", None)
    assert {op for row in rows if (op := row[OPERATION])} == {"append", "store", "refused", "other"}


def test_every_operation_is_a_step_of_the_spec(rows: list[Row]) -> None:
    taken = replayed(rows).coverage
    assert min(taken[name] for name in ("ask_append", "ask_store", "ask_other")) > 0
    assert sum(taken[name] for name in taken if name.startswith("ask_")) == max(
        row[INDEX["commit_min"]] for row in rows
    )
    assert "ask_append" not in replayed(older(rows)).coverage


@pytest.mark.parametrize("change", [-1, 1000])
def test_a_changed_offset_is_a_violation(rows: list[Row], change: int) -> None:
    """One that was given before, and one that nobody has. The replay says so; of an older trace the facts do."""
    at = next(at for at, row in enumerate(rows) if row[OPERATION] == "append" and row[OFFSET])
    wrong = [*rows[:at], put(rows[at], m_offset=rows[at][OFFSET] + change), *rows[at + 1 :]]
    assert rules(replayed(wrong)) == {"I15"}
    assert replayed(older(wrong)).verdict == "conforms"
    for trace in (wrong, older(wrong)):
        verdict, error = judged(trace)
        assert (verdict.verdict, rules(verdict), error) == ("violates", {"I15"}, None)


def test_a_stored_offset_is_accepted_up_to_the_end_and_no_further(rows: list[Row]) -> None:
    refused = changed(rows, lambda row: row[OPERATION] == "refused", 0, m_operation="store")
    accepted = changed(rows, lambda row: row[OPERATION] == "store", 0, m_operation="refused")
    assert rules(replayed(refused)) == rules(replayed(accepted)) == {"I15"}


@pytest.mark.parametrize(
    ("operation", "values"),
    [
        ("append", {"m_count": 77}),
        ("append", {"m_namespace": 5}),
        ("append", {"m_operation": "other"}),
        ("store", {"m_consumer": 77}),
        ("store", {"m_offset": 0}),
    ],
    ids=str,
)
def test_replicas_that_execute_an_entry_are_asked_the_same(
    rows: list[Row], operation: str, values: dict[str, object]
) -> None:
    last = changed(rows, lambda row: row[OPERATION] == operation and row[OFFSET], -1, **values)
    assert rules(replayed(last)) == {f"event.{next(iter(values))}"}


@pytest.mark.parametrize("column", ["m_operation", "m_namespace", "m_offset", "m_count"])
@pytest.mark.parametrize("number", [0, -1])
def test_what_is_not_shown_leaves_the_run_inconclusive(rows: list[Row], column: str, number: int) -> None:
    verdict = replayed(changed(rows, lambda row: row[OPERATION] == "append", number, **{column: None}))
    assert verdict.verdict == "inconclusive"
    assert verdict.missing[0].startswith(f"{column} of execute at file:")


def test_operations_of_a_run_that_has_none_are_a_violation(rows: list[Row]) -> None:
    assert rules(replayed([put(row, partitions=0) for row in rows])) == {"event.m_operation"}
    unshown = replayed([put(row, partitions=None) for row in rows])
    assert unshown.verdict == "inconclusive"
    assert unshown.missing[0].startswith("partitions of the first event")


def test_the_reference_interpreter_agrees(rows: list[Row]) -> None:
    at = next(at for at, row in enumerate(rows) if row[OPERATION] == "append" and row[OFFSET])
    some = rows[: at + 1]
    assert replayed(some, "interp").coverage == replayed(some).coverage
    wrong = [*some[:-1], put(some[-1], m_offset=some[-1][OFFSET] + 1)]
    assert rules(replayed(wrong, "interp")) == {"I15"}


def test_offsets_go_on_after_a_lost_disk_and_another_replicas_snapshot(tmp_path: Path) -> None:
    profile = replace(ROT, plane=Plane.PARTITIONS)
    verdicts = [replayed(simulated(tmp_path / str(seed), seed, requests=80, profile=profile)) for seed in range(1, 4)]
    assert {verdict.verdict for verdict in verdicts} == {"conforms"}
    assert sum(verdict.coverage["recover_snapshot"] for verdict in verdicts) > 0


def test_the_fault_is_caught_by_name(tmp_path: Path) -> None:
    """By the digest at the restart; without that and replies by the first offset after that."""
    faults = frozenset({"boot.offset_from_index"})
    rows = simulated(tmp_path, 1, requests=120, profile=PROFILE, faults=faults)
    verdict, _ = judged(rows)
    assert rules(verdict) >= {"I14", "I15"}
    assert rules(replayed([put(row, digest=None, table=None, m_reply=None) for row in rows])) == {"I15"}


def test_facts_that_are_broken_in_a_run_that_conforms_are_an_error_where_the_spec_has_them(rows: list[Row]) -> None:
    append = changed(rows, lambda row: row[OPERATION] == "append" and row[OFFSET], -1, m_offset=0)
    _, broken, _ = judge_run(rows[0][0], iter(named(append)), AuditOptions(), check_run, ProblemLog())
    assert broken
    for trace, expected in ((rows, True), (older(rows), False)):
        _, error = merge_facts(replayed(trace), broken, AuditOptions())
        assert (error is not None) == expected
