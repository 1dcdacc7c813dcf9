"""However the events are cut into files and partitions: Spark's plans give the verdicts that each run has alone."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.refinement.test_partitionings import LAYOUTS, Answer, Layout, Runs, answers, expected, quickly, record, runs
from viewproof.refinement.checker import check_run
from viewproof.refinement.discovery import discover
from viewproof.refinement.schema import ARROW_SCHEMA
from viewproof.refinement.verdict import AuditOptions

__all__ = ["expected", "runs"]  # fixtures


def frames(session: Any, layout: Layout, runs: Runs) -> Iterator[Any]:
    """The events as DataFrames of several partitionings."""
    rows = [record(row) for piece in layout.pieces(runs) for row in piece]
    events = session.createDataFrame(pa.Table.from_pylist(rows, schema=ARROW_SCHEMA))
    yield events.coalesce(1)
    yield events.repartition(layout.files)


def answers_of(verdicts: Any) -> dict[str, Answer]:
    found = {}
    for row in verdicts.collect():
        assert not row["problems"]
        violations = tuple((v["rule_id"], v["node"], v["seq"]) for v in row["violations"])
        missing = frozenset(re.sub(r" \(noticed at [^)]*\)|(node )?\S+:\d+", "", text) for text in row["missing"])
        found[row["run"]] = (row["verdict"], row["events"], violations, missing)
    return found


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("examples", [1, pytest.param(8, marks=pytest.mark.long)])
def test_plans_of_spark(runs: Runs, expected: dict[str, Answer], examples: int, spark_session: Any) -> None:
    """Files where they are and brought together; DataFrames by name and by a plan; any number of tasks."""
    from viewproof import spark as vsr
    from viewproof.refinement import spark

    @given(layout=LAYOUTS, tasks=st.integers(1, 5))
    @quickly(examples)
    def all_agree(layout: Layout, tasks: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            layout.write(runs, Path(folder))
            report = spark.audit(discover([folder]), AuditOptions(), check_run, session=spark_session)
            assert answers(report) == expected
        one, other = frames(spark_session, layout, runs)
        assert answers_of(vsr.audit(one, tasks=tasks)) == expected
        assert answers_of(vsr.audit(other, plan=vsr.plan(other, tasks))) == expected

    all_agree()
