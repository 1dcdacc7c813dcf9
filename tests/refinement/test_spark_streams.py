"""`viewproof.spark.audit_stream`: each run's verdict comes once, as the audit of all its events has it, also after the
query is killed and started again.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.refinement.traces import simulated
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import read_rows
from viewproof.refinement.schema import ARROW_SCHEMA, COLUMNS

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
SCHEMA = ARROW_SCHEMA.append(pa.field("is_last", pa.bool_())).append(pa.field("at", pa.timestamp("us", "UTC")))
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
Record = dict[str, Any]


def events(rows: list[Any], run: str, ends: bool = True, **changes: Any) -> list[Record]:
    """The events of a run in their order, at a second each; `changes` are made to the 20th execute."""
    found = [dict(zip(COLUMNS, row, strict=False)) | {"run": run} for row in rows]
    executes = [record for record in found if record["event"] == "execute"]
    executes[20 % len(executes)].update(changes)
    last = {record["node"]: record["seq"] for record in found}
    for number, record in enumerate(found):
        record["is_last"] = ends and record["seq"] == last[record["node"]]
        record["at"] = BEGAN + timedelta(seconds=number)
    return found


def write(folder: Path, name: str, records: list[Record]) -> None:
    """A file that appears whole."""
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(records, schema=SCHEMA), folder / f".{name}")
    (folder / f".{name}").rename(folder / f"{name}.parquet")


def read(folder: Path) -> dict[str, Record]:
    """What a query has written, by run: no run twice."""
    logs = [file for file in sorted((folder / "_spark_metadata").iterdir()) if not file.name.startswith(".")]
    files = [json.loads(line) for log in logs for line in log.read_text().splitlines()[1:]]
    rows = [row for one in files for row in pq.read_table(one["path"].removeprefix("file://")).to_pylist()]
    assert len({row["run"] for row in rows}) == len(rows), [row["run"] for row in rows]
    return {row["run"]: row for row in rows}


@pytest.fixture(scope="module")
def vsr() -> Any:
    from viewproof import spark

    return spark


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return simulated(tmp_path_factory.mktemp("run"), 3, replicas=3, requests=6)


def stream(session: Any, folder: Path) -> Any:
    from pyspark.sql.pandas.types import from_arrow_schema

    return session.readStream.schema(from_arrow_schema(SCHEMA)).parquet(str(folder))


def run_now(verdicts: Any, folder: Path) -> None:
    """Take all that is there, as a query that was started again does."""
    query = (
        verdicts.writeStream.format("parquet").option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    )  # fmt: skip
    query.awaitTermination()


@pytest.fixture
def two_partitions(spark_session: Any) -> Any:
    before = spark_session.conf.get("spark.sql.shuffle.partitions")
    spark_session.conf.set("spark.sql.shuffle.partitions", "2")
    yield spark_session
    spark_session.conf.set("spark.sql.shuffle.partitions", before)


def test_a_run_in_pieces_has_the_verdict_of_the_whole_once_also_after_a_restart(
    vsr: Any, two_partitions: Any, good: list[Any], tmp_path: Path
) -> None:
    records = [*events(good, "good"), *events(good, "bad", digest="x" * 16), *events(good, "open", ends=False)]
    random.Random(1).shuffle(records)
    frame = two_partitions.createDataFrame(pa.Table.from_pylist(records, schema=SCHEMA))
    expected = {row["run"]: row.asDict(recursive=True) for row in vsr.audit(frame, tasks=1).collect()}
    for piece in range(2):
        write(tmp_path / "in", f"p{piece}", records[piece::2])
        run_now(vsr.audit_stream(stream(two_partitions, tmp_path / "in"), last="is_last"), tmp_path)
    found = read(tmp_path / "out")
    assert {run: row["verdict"] for run, row in found.items()} == {"good": "conforms", "bad": "violates"}
    for name in ("events", "recorded", "missing", "notes", "problems"):
        assert found["good"][name] == expected["good"][name], name
    for name in ("coverage", "judged"):
        assert dict(found["good"][name]) == expected["good"][name], name
    [one], [other, *_] = found["bad"]["violations"], expected["bad"]["violations"]
    assert dict(one.pop("carried")) == other.pop("carried")
    assert one == other


def test_a_run_that_nobody_ends_ends_with_its_time_and_says_what_is_missing(
    vsr: Any, two_partitions: Any, good: list[Any], tmp_path: Path
) -> None:
    """By the time of the events: deterministic, whatever the clock of this machine."""
    lost = [record for record in events(good, "lost") if (record["node"], record["seq"]) != (1, 9)]
    later = [record | {"at": record["at"] + timedelta(days=1)} for record in events(good, "later", ends=False)]
    for name, records in (("0", lost), ("1", later)):
        write(tmp_path / "in", name, records)
        verdicts = vsr.audit_stream(
            stream(two_partitions, tmp_path / "in"), last="is_last", time="at", timeout=timedelta(hours=1)
        )
        run_now(verdicts, tmp_path)
    found = read(tmp_path / "out")
    assert {run: row["verdict"] for run, row in found.items()} == {"lost": "inconclusive"}
    assert any("seq 9 of node 1: no such event" in text for text in found["lost"]["missing"])


def test_progress_names_what_an_open_run_waits_for(
    vsr: Any, two_partitions: Any, good: list[Any], tmp_path: Path
) -> None:
    part = [record for record in events(good, "part") if (record["node"], record["seq"]) != (2, 5)]
    spoilt = [record | ({"view": -1} if record["seq"] == 7 else {}) for record in events(good, "spoilt")]
    write(tmp_path / "in", "0", [*part, *spoilt])
    verdicts = vsr.audit_stream(stream(two_partitions, tmp_path / "in"), last="is_last", progress=True)
    query = verdicts.writeStream.format("memory").queryName("progress").outputMode("update").start()
    query.processAllAvailable()
    query.stop()
    found = {row["run"]: row for row in two_partitions.table("progress").collect()}
    assert (found["part"]["verdict"], found["part"]["missing"]) == ("open", ["seq 5 of node 2"])
    assert 0 < found["part"]["events"] < found["part"]["recorded"] == len(part)
    assert found["spoilt"]["verdict"] == "error"
    assert "view: expected an integer ≥ 0" in found["spoilt"]["problems"][0]


def test_what_is_no_stream_or_has_no_time_is_refused(vsr: Any, spark_session: Any, tmp_path: Path) -> None:
    with pytest.raises(vsr.ColumnError, match="is no stream"):
        vsr.audit_stream(spark_session.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA)))
    (tmp_path / "in").mkdir()
    source = stream(spark_session, tmp_path / "in")
    with pytest.raises(vsr.ColumnError, match="view: expected a column of timestamps for `time`, got a column of big"):
        vsr.audit_stream(source, time="view", timeout=timedelta(hours=1))
    with pytest.raises(vsr.ColumnError, match="`time` is what `timeout` is measured by"):
        vsr.audit_stream(source, time="at")
    with pytest.raises(vsr.ColumnError, match="run: the column is missing"):
        vsr.audit_stream(source.drop("run"))


KILLS = 4
QUERY = """
import sys
from viewproof import spark as vsr
from tests.refinement.test_spark_streams import stream
session = vsr.start_session("local[2]", conf={"spark.sql.shuffle.partitions": "2"})
verdicts = vsr.audit_stream(stream(session, sys.argv[1] + "/in"), last="is_last")
query = (
    verdicts.writeStream.format("parquet").option("path", sys.argv[1] + "/out")
    .option("checkpointLocation", sys.argv[1] + "/checkpoint").start()
)
query.awaitTermination()
"""


@pytest.mark.long
def test_killed_at_random_and_started_again_each_verdict_comes_once(vsr: Any, tmp_path: Path) -> None:
    """The shipped runs, good and with a wrong digest, in batches of random sizes; killed with SIGKILL."""
    rng = random.Random(7)
    records: list[Record] = []
    for folder in sorted(Path("traces/recorded").iterdir()):
        rows = [row for file in sorted(folder.iterdir()) for row in read_rows(str(file), ProblemLog())]
        records += [*events(rows, folder.name), *events(rows, f"bad {folder.name}", digest="x" * 16)]
    expected = {f"{bad}{folder.name}": "violates" if bad else "conforms"
                for folder in Path("traces/recorded").iterdir() for bad in ("", "bad ")}  # fmt: skip
    rng.shuffle(records)
    kills, number, process = 0, 0, None
    end = time.monotonic() + 1500

    def committed() -> int:
        return sum(1 for file in (tmp_path / "checkpoint" / "commits").glob("[0-9]*"))

    try:
        while not (tmp_path / "out" / "_spark_metadata").is_dir() or set(read(tmp_path / "out")) != set(expected):
            assert time.monotonic() < end, (kills, number, len(records))
            if process is None or process.poll() is not None:
                assert process is None or process.returncode == -signal.SIGKILL, process.returncode
                environment = {**os.environ, "PYTHONPATH": os.getcwd()}
                words = [sys.executable, "-c", QUERY, str(tmp_path)]
                process = subprocess.Popen(words, env=environment, start_new_session=True)
                goal = committed() + rng.randint(0, 2)
            if records and number <= committed() + 1:
                size = rng.randint(500, 8000)
                write(tmp_path / "in", f"{number:04}", records[:size])
                records, number = records[size:], number + 1
            if kills < KILLS and committed() >= goal and (records or kills):
                time.sleep(rng.random() * 3)
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                kills += 1
            time.sleep(0.2)
    finally:
        if process is not None and process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert {run: row["verdict"] for run, row in read(tmp_path / "out").items()} == expected
    assert kills == KILLS
