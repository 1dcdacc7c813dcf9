"""An audit in Spark that goes on from a directory or a table of states has the report of one over all events."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from click.testing import CliRunner

from tests.refinement.test_going_on import NODE, change, content, line, places_of, plain, write
from tests.refinement.traces import simulated
from viewproof import audit, audit_from
from viewproof.refinement.discovery import discover
from viewproof.refinement.going_on import StateError
from viewproof.refinement.schema import ARROW_SCHEMA, Row
from viewproof.refinement.verdict import AuditOptions, AuditReport

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
DAYS = 3


def on_spark(session: Any, state: Path, *paths: Path, **options: Any) -> AuditReport:
    from viewproof.refinement import spark

    inputs = discover([str(path) for path in paths])
    return spark.audit_from(state, inputs, AuditOptions(**options), session=session)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """A good run, one that is refused, one with lines lost, and one that has a node's events only on the last day."""
    rng = random.Random(5)
    rows = simulated(tmp_path_factory.mktemp("run"), 3, replicas=3, requests=6)
    bad = rows
    while audit_rows(tmp_path_factory.mktemp("bad"), bad) != "violates":
        bad = change(rng, rows).rows
    holes = [row for at, row in enumerate(rows) if at % 40 != 39]
    return {"good": rows, "bad": bad, "holes": holes, "late": rows, "one day": rows}


def audit_rows(folder: Path, rows: Sequence[Row]) -> str:
    write(folder, rows)
    return audit(folder).verdict


def days_of(runs: dict[str, list[Row]]) -> list[list[tuple[str, list[Row]]]]:
    days: list[list[tuple[str, list[Row]]]] = [[] for _ in range(DAYS)]
    for run, rows in runs.items():
        for day in range(DAYS):
            some = rows[day * len(rows) // DAYS : (day + 1) * len(rows) // DAYS]
            if run == "late":
                some = [row for row in rows if (row[NODE] == 1) == (day == DAYS - 1)] if day != 1 else []
            if run == "one day":
                some = rows if day == 0 else []
            if some:
                days[day].append((run, some))
    return days


def test_daily_files_on_either_engine_have_the_report_of_one_audit(
    runs: dict[str, list[Row]], tmp_path: Path, spark_session: Any
) -> None:
    """The directory is one for both engines: the second day is judged by the local one."""
    whole = [file for run, rows in runs.items() for file in write(tmp_path / "whole" / run, rows, run)]
    files = []
    state = tmp_path / "state"
    for number, day in enumerate(days_of(runs)):
        folder = tmp_path / f"day-{number}"
        files += [file for run, rows in day for file in write(folder / run, rows, run)]
        report = audit_from(state, folder) if number == 1 else on_spark(spark_session, state, folder)
        assert not report.problems
        assert not report.tool_errors
    expected = audit(tmp_path / "whole")
    places, whole_places = places_of(files), places_of(whole)
    assert [plain(v, places) for v in report.verdicts] == [plain(v, whole_places) for v in expected.verdicts]
    assert {v.verdict for v in report.verdicts} == {"conforms", "violates", "inconclusive"}
    assert (report.engine, report.exit_code) == ("spark", expected.exit_code)
    again = on_spark(spark_session, state, folder)
    assert [v.verdict for v in again.verdicts] == [v.verdict for v in report.verdicts]


def test_a_table_of_states_goes_on_as_if_all_events_came_at_once(
    runs: dict[str, list[Row]], spark_session: Any
) -> None:
    from viewproof import spark as vsr

    def events(day: list[tuple[str, list[Row]]]) -> Any:
        decode = partial(msgspec.json.decode, type=dict[str, Any])
        records = [decode(line(row, run)) | {"pod": f"p{row[NODE]}"} for run, rows in day for row in rows]
        schema = ARROW_SCHEMA.append(pa.field("pod", pa.string()))
        random.Random(1).shuffle(records)
        return spark_session.createDataFrame(pa.Table.from_pylist(records, schema=schema))

    states = None
    for day in days_of(runs):
        table = vsr.audit_from(states, events(day), tasks=3).toArrow()
        states = spark_session.createDataFrame(table)
    whole = vsr.audit(events(list(runs.items())), tasks=3).toArrow()
    found = {row.pop("run"): row for row in table.drop_columns(["state"]).to_pylist()}
    assert found == {row.pop("run"): row for row in whole.to_pylist()}
    assert [dict(v["carried"]) for v in found["bad"]["violations"]]
    assert vsr.causes(states).count() == 1
    [other] = vsr.audit_from(states.where("run = 'good'"), events([]), allow=["view.acks_survive_view"]).collect()
    assert (other["verdict"], "of other options" in other["problems"][0]) == ("error", True)
    with pytest.raises(vsr.ColumnError, match="state: expected a column of binary in the table of states"):
        vsr.audit_from(spark_session.createDataFrame(whole), events([]))


def test_malformed_files_and_states_of_others_change_nothing(
    runs: dict[str, list[Row]], tmp_path: Path, spark_session: Any
) -> None:
    rows, state = runs["good"], tmp_path / "state"
    half = len(rows) // 2
    write(tmp_path / "a", rows[:half])
    on_spark(spark_session, state, tmp_path / "a")
    kept, names = (state / "index.json").read_bytes(), set(content(state))
    files = write(tmp_path / "b", rows[half:])
    files[0].write_text(files[0].read_text() + "{\n")
    report = on_spark(spark_session, state, tmp_path / "b")
    assert (report.exit_code, report.problems[0].file) == (2, str(files[0]))
    assert ((state / "index.json").read_bytes(), set(content(state))) == (kept, names)
    write(tmp_path / "b", rows[half:])
    assert on_spark(spark_session, state, tmp_path / "b").verdict == "conforms"
    with pytest.raises(StateError, match="of other options"):
        on_spark(spark_session, state, tmp_path / "b", without=("m_commit",))


@pytest.mark.long
def test_the_command_goes_on_in_spark(runs: dict[str, list[Row]], tmp_path: Path) -> None:
    from viewproof.refinement.cli import cli

    rows = runs["good"]
    half = len(rows) // 2
    write(tmp_path / "a", rows[:half])
    write(tmp_path / "b", rows[half:])
    for folder in ("a", "b"):
        words = ["audit", str(tmp_path / folder), "--state", str(tmp_path / "s"), "--engine", "spark"]
        done = CliRunner().invoke(cli, [*words, "--master", "local[2]"])
        assert done.exit_code == 0, done.output
    assert f"({len(rows):,} events)" in done.stdout
