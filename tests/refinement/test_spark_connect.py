"""`viewproof.spark` and `vsr audit` in a session of Spark Connect, with a server that is a process of its own."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.spark_cluster import connect_server
from tests.refinement.test_spark_frames import STEADY, records
from viewproof.refinement.schema import ARROW_SCHEMA

pytestmark = [
    pytest.mark.spark,
    pytest.mark.long,
    pytest.mark.skipif(importlib.util.find_spec("grpc") is None, reason="needs the packages of pyspark[connect]"),
]

SCRIPT = """
import json, sys
from pyspark.sql import functions as fn
from viewproof import spark as vsr

session = vsr.start_session(sys.argv[1], conf={"spark.sql.shuffle.partitions": "2"})
events = session.read.parquet(sys.argv[2])
answer = {"classic": "connect" not in type(events).__module__}
judged = vsr.audit(events).cache()
answer["verdicts"] = sorted((row["run"], row["verdict"]) for row in judged.collect())
answer["carried"] = [row["carried"]["pod"] for row in vsr.violations(judged).collect()]
answer["causes"] = vsr.causes(judged).count()
answer["coverage"] = vsr.coverage(judged).count() > 5
answer["obligations"] = vsr.obligations(judged).count()
by_path = vsr.audit(sys.argv[2], plan=vsr.plan(events, tasks=3))
answer["by path"] = sorted((row["run"], row["verdict"]) for row in by_path.collect())
try:
    vsr.audit(events.drop("run"))
except vsr.ColumnError as error:
    answer["refused"] = str(error)
first = vsr.audit_from(None, events.where("clock < 500"))
first.write.saveAsTable("first")
second = vsr.audit_from(session.table("first"), events.where("clock >= 500"))
answer["going on"] = sorted((row["run"], row["verdict"]) for row in second.collect())
answer["page"] = vsr.page(judged.withColumn("day", fn.lit("monday")), sys.argv[3], by="day").stat().st_size > 10000
kept = sys.argv[3] + ".stream"
stream = vsr.audit_stream(session.readStream.schema(events.schema).parquet(sys.argv[2]), last="seq = last")
writer = stream.writeStream.format("parquet").option("checkpointLocation", kept + ".at").trigger(availableNow=True)
query = writer.start(kept)
query.awaitTermination()
answer["stream"] = sorted((row["run"], row["verdict"]) for row in session.read.parquet(kept).collect())
print(json.dumps(answer))
"""


def test_a_session_of_spark_connect_gives_what_a_classic_one_gives(tmp_path: Path) -> None:
    schema = ARROW_SCHEMA.append(pa.field("pod", pa.string())).append(pa.field("last", pa.int64()))
    rows = [row | {"pod": "p1"} for row in [*records(), *records("bad", digest="x" * 16)]]
    last: dict[tuple[str, int], int] = {}
    for row in rows:
        last[row["run"], row["node"]] = max(last.get((row["run"], row["node"]), 0), row["seq"])
    rows = [row | {"last": last[row["run"], row["node"]]} for row in rows]
    (tmp_path / "events").mkdir()
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "events" / "all.parquet")
    (tmp_path / "script.py").write_text(SCRIPT)
    with connect_server(tmp_path) as address:
        words = [str(tmp_path / "script.py"), address, str(tmp_path / "events"), str(tmp_path / "page.html")]
        done = subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stderr
        both = [["bad", "violates"], ["steady", "conforms"]]
        assert json.loads(done.stdout) == {
            "classic": False, "verdicts": both, "carried": ["p1"], "causes": 1, "coverage": True, "obligations": 0,
            "by path": both, "refused": "run: the column is missing", "going on": both, "page": True, "stream": both,
        }  # fmt: skip
        for words, code in (([str(STEADY)], 0), ([str(tmp_path / "events")], 1), ([f"file://{STEADY.absolute()}"], 0)):
            audit = [sys.executable, "-m", "viewproof", "audit", "--engine", "spark", "--master", address]
            done = subprocess.run([*audit, *words], capture_output=True, text=True, timeout=600)
            assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
