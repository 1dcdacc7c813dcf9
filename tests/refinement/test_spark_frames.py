"""`viewproof.spark`: DataFrames in, the verdicts of the local engine out; addresses of other file systems; workers."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import viewproof
from benchmarks.spark_cluster import standalone_cluster
from viewproof.refinement.cli import cli
from viewproof.refinement.schema import ARROW_SCHEMA
from viewproof.refinement.spark import frames

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]
STEADY = Path("traces/recorded/steady")
BAD = {"run": "bad"}


def records(run: str = "steady", **changes: Any) -> list[dict[str, Any]]:
    """The events of the shipped run under another name; `changes` are made to its 50th execute."""
    found = [json.loads(line) for node in range(3) for line in (STEADY / f"replica-{node}.ndjson").open()]
    found = [record | {"run": run} for record in found]
    executes = [n for n, record in enumerate(found) if record["event"] == "execute"]
    found[executes[50]] |= changes
    return found


def frame(session: Any, rows: list[dict[str, Any]], schema: pa.Schema = ARROW_SCHEMA) -> Any:
    return session.createDataFrame(pa.Table.from_pylist(rows, schema=schema))


@pytest.fixture(scope="module")
def vsr() -> Any:
    from viewproof import spark

    return spark


@pytest.fixture(scope="module")
def judged(vsr: Any, spark_session: Any) -> Any:
    """Verdicts of a good run, and of one whose digest is wrong; with a column of its own."""
    schema = ARROW_SCHEMA.append(pa.field("pod", pa.string()))
    rows = [row | {"pod": f"p{row['node']}"} for row in [*records(), *records("bad", digest="x" * 16)]]
    return vsr.audit(frame(spark_session, rows, schema), tasks=4).cache()


def test_the_verdicts_are_those_of_the_local_engine(judged: Any, tmp_path: Path) -> None:
    for name, rows in (("steady", records()), ("bad", records("bad", digest="x" * 16))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    report = viewproof.audit(tmp_path)
    expected = {v.run_id: (v.verdict, v.events, v.recorded, dict(v.coverage)) for v in report.verdicts}
    found = {
        row["run"]: (row["verdict"], row["events"], row["recorded"], dict(row["coverage"]))
        for row in judged.toArrow().to_pylist()
    }
    assert found == expected
    assert {run: answer[0] for run, answer in found.items()} == {"steady": "conforms", "bad": "violates"}


def test_violations_causes_and_coverage_are_tables(vsr: Any, judged: Any) -> None:
    [violation] = vsr.violations(judged).toArrow().to_pylist()
    assert violation["run"] == "bad"
    assert dict(violation["carried"]) == {"pod": f"p{violation['node']}"}
    assert violation["rule"]
    assert "node " in violation["message"]
    [cause] = vsr.causes(judged).toArrow().to_pylist()
    assert (cause["rule_fingerprint"], cause["runs"], cause["run"]) == (violation["rule_fingerprint"], 1, "bad")
    steps = {row["action"]: (row["steps"], row["runs"]) for row in vsr.coverage(judged).toArrow().to_pylist()}
    assert steps["execute"][0] > 618
    assert steps["execute"][1] == 2
    assert vsr.obligations(judged).count() == 0


def test_what_became_of_each_guard_is_a_table(vsr: Any, spark_session: Any) -> None:
    """Known to hold, left open, or what ended a run: from a run that conforms, one that does not, one with a hole."""
    early = [row | {"run": "early"} for row in records()]
    of = next(n for n, row in enumerate(early) if row["event"] == "commit" and row["seq"] >= 100)
    early[of] |= {"m_op": early[of]["m_op"] + 1}
    cut = [row | {"run": "cut"} for row in records() if not (row["node"] == 1 and 200 <= row["seq"] <= 210)]
    verdicts = vsr.audit(frame(spark_session, [*records(), *early, *cut]), tasks=3).cache()
    steps = [dict(row["coverage"]) for row in verdicts.toArrow().to_pylist()]
    found = vsr.coverage(verdicts, guards=True).toArrow().to_pylist()
    mine = [row for row in found if row["action"] == "commit"]
    assert {row["runs"] for row in mine} == {3}
    assert {row["held"] + row["open"] for row in mine} == {sum(counts["commit"] for counts in steps)}
    quorum = "count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication"
    assert [(row["guard"], row["refused"]) for row in mine if row["open"] or row["refused"]] == [(quorum, 1)]
    assert mine[-1]["guard"] == quorum
    assert mine[0]["place"].startswith("spec/vsr/core/normal.py:")
    idle = {row["action"] for row in found if row["runs"] == 0}
    assert idle == {action for action in steps[0] if not any(counts[action] for counts in steps)}


def test_events_in_place_of_verdicts_are_refused(vsr: Any, spark_session: Any, tmp_path: Path) -> None:
    events = frame(spark_session, records()[:3])
    for wrong in (vsr.violations, vsr.causes, vsr.obligations, vsr.coverage, lambda df: vsr.page(df, tmp_path / "p")):
        with pytest.raises(vsr.ColumnError, match="the column is missing; expected verdicts"):
            wrong(events)


def test_a_column_that_was_not_shown_is_missing_evidence(vsr: Any, spark_session: Any) -> None:
    events = frame(spark_session, records()).drop("m_parent")
    assert [row["verdict"] for row in vsr.audit(events).collect()] == ["inconclusive"]
    missing = [row["missing"] for row in vsr.obligations(vsr.audit(events)).collect()]
    assert any("m_parent" in text for text in missing)
    judged_without = vsr.audit(frame(spark_session, records()), without=["m_parent"]).collect()
    assert [row["verdict"] for row in judged_without] == ["inconclusive"]


def test_columns_of_another_type_are_refused_before_anything_runs(vsr: Any, spark_session: Any) -> None:
    events = frame(spark_session, records()[:10])
    wrong = r"run: the column is missing; seq: expected .* got a column of double \(pandas"
    with pytest.raises(vsr.ColumnError, match=wrong):
        vsr.audit(events.drop("run").withColumn("seq", events["seq"].cast("double")))
    with pytest.raises(vsr.ColumnError, match="view: there are 2 columns of that name"):
        vsr.audit(events.select("*", events["view"]))
    with pytest.raises(viewproof.AuditOptionError, match="unknown"):
        vsr.audit(events, allow=["no.such"])


def test_what_is_wrong_with_columns_is_said_by_name(vsr: Any, spark_session: Any) -> None:
    from pyspark.sql import functions as fn

    events = frame(spark_session, records()[:10])
    nested = events.select(fn.struct("*").alias("payload"), fn.lit(1).alias("nodes"))
    for wrong, text in (
        (events.drop("node"), "node: the column is missing"),
        (events.withColumnRenamed("node", "nodes"), 'node: the column is missing; did you mean "nodes"?'),
        (nested, 'run: the column is missing; there is payload.run: select("payload.*") first'),
        (events.withColumn("event", fn.lit(7)), ", nack, got a column of int"),
        (events.withColumn("m_log", fn.array(fn.lit(7))), "got a column of array<int>"),
        (events.withColumn("view", fn.col("view").cast("decimal(20,0)")), "got a column of decimal(20,0)"),
        (
            events.withColumns({name: fn.col(name).cast("string") for name in ("seq", "view")}),
            "got a column of string; view: expected an integer ≥ 0, got a column of string"
            " (CSV without a schema is text: read it with one, or cast it to bigint)",
        ),
        (events.select("*", fn.col("view").alias("VIEW")), "view: there are 2 columns of that name (view, VIEW)"),
        (events.select("*", fn.lit(1).alias("pod"), fn.lit(2).alias("Pod")), "pod: there are 2 columns of that name"),
    ):
        with pytest.raises(vsr.ColumnError, match=re.escape(text)):
            vsr.audit(wrong)
        with pytest.raises(vsr.ColumnError, match=re.escape(text)):
            vsr.plan(wrong, tasks=2)


@pytest.mark.parametrize("how", ["compiled", "python"])
def test_columns_in_any_case_and_of_any_kind_beside_them_are_taken(
    vsr: Any, spark_session: Any, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the session knows them: a table of a database whose names are all capitals; structs, maps, odd names."""
    from pyspark.sql import functions as fn

    monkeypatch.setenv("VSR_REPLAY", how)
    events = frame(spark_session, [*records(), *records("bad", digest="x" * 16)])
    capitals = events.toDF(*(name.upper() for name in events.columns))
    own = {
        "pod": fn.struct(fn.lit("p1").alias("name"), fn.array(fn.lit(1), fn.lit(None)).alias("ports")),
        "a b.`c`": fn.create_map(fn.lit("k"), fn.col("NODE")),
        "nothing": fn.lit(None),
    }
    judged = vsr.audit(capitals.select("*", *(value.alias(name) for name, value in own.items())), tasks=2).cache()
    assert {row["run"]: row["verdict"] for row in judged.collect()} == {"steady": "conforms", "bad": "violates"}
    [violation] = vsr.violations(judged).collect()
    assert violation["carried"]["a b.`c`"] == str({"k": violation["node"]})
    assert "'name': 'p1'" in violation["carried"]["pod"]
    spark_session.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(vsr.ColumnError, match="run: the column is missing"):
            vsr.audit(capitals)
    finally:
        spark_session.conf.unset("spark.sql.caseSensitive")


def test_nulls_where_a_value_is_required_are_malformed_events(vsr: Any, spark_session: Any) -> None:
    rows = records()
    rows[7] = rows[7] | {"seq": None}
    rows += [rows[8] | {"run": None}]
    schema = pa.schema([field.with_nullable(True) for field in ARROW_SCHEMA])
    judged = vsr.audit(frame(spark_session, rows, schema)).collect()
    found = {row["run"]: (row["verdict"], row["problems"]) for row in judged}
    assert {verdict for verdict, _ in found.values()} == {"error"}
    assert "seq: expected an integer ≥ 1, got null" in found["steady"][1][0]
    assert "run: expected" in found[""][1][0]


def test_narrow_integers_and_nulls_are_taken_as_they_are(vsr: Any, spark_session: Any) -> None:
    events = frame(spark_session, records())
    events = events.withColumn("node", events["node"].cast("tinyint")).withColumn("view", events["view"].cast("int"))
    assert [row["verdict"] for row in vsr.audit(events).collect()] == ["conforms"]


def test_logs_go_to_python_and_back_with_every_null(vsr: Any, spark_session: Any) -> None:
    from pyspark.sql import functions as fn

    logs = [None, [], ["a", 'a "b"\n', "ü"], None, [None, "c"], None]
    events = frame(spark_session, [row | {"m_log": log} for row, log in zip(records(), logs, strict=False)])
    sent = events.select(*frames._columns_of(events))
    back = sent.mapInArrow(frames._arrived, events.schema.add(frames.CARRIED, "string")).toArrow()
    assert back["m_log"].to_pylist() == logs
    views = spark_session.read.schema(vsr.SCHEMA).json("traces/recorded/kill-primary")
    assert views.where("size(m_log) > 0").count()
    assert [row["verdict"] for row in vsr.audit(views).collect()] == ["conforms"]
    without = frame(spark_session, records()).withColumn("m_log", fn.lit(None))
    assert [row["verdict"] for row in vsr.audit(without).collect()] == ["conforms"]


def test_a_malformed_event_spoils_its_run_and_no_other(vsr: Any, spark_session: Any) -> None:
    rows = [*records(), *records("spoilt", view=-1), *records("other", event="exekute")]
    found = {row["run"]: row for row in vsr.audit(frame(spark_session, rows), tasks=2).collect()}
    assert {run: row["verdict"] for run, row in found.items()} == {
        "steady": "conforms", "spoilt": "error", "other": "error",
    }  # fmt: skip
    assert found["spoilt"]["missing"] == found["spoilt"]["violations"] == []
    assert "view: expected an integer ≥ 0" in found["spoilt"]["problems"][0]
    assert re.match(r"node \d, seq \d+: event: expected a known event", found["other"]["problems"][0])


def test_a_path_is_read_by_the_session(vsr: Any, spark_session: Any, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(records(), schema=ARROW_SCHEMA)
    spark_session.createDataFrame(table).write.partitionBy("run", "node").parquet(str(tmp_path / "t"))
    assert [row["verdict"] for row in vsr.audit(str(tmp_path / "t")).collect()] == ["conforms"]
    assert CliRunner().invoke(cli, ["audit", str(tmp_path / "t")]).exit_code == 0, "and by the local engine"


def test_a_plan_places_large_runs_by_their_size_and_says_why(vsr: Any, spark_session: Any) -> None:
    """Three copies of a run, and 40 beginnings of it: four tasks, of which none has two of the large ones."""
    rows = [row for n in range(3) for row in records(f"large {n}")]
    rows += [row for n in range(40) for row in records(f"small {n}")[:30]]
    events = frame(spark_session, rows)
    plan = vsr.plan(events, tasks=4)
    assert sorted(plan.placed) == ["large 0", "large 1", "large 2"]
    assert len(set(plan.placed.values())) == 3
    assert sum(plan.loads) == len(rows)
    assert max(plan.loads) < len(rows) / 2
    assert "43 runs, brought together by a shuffle: 3 large ones placed by their size, 40 by their name" in str(plan)
    found = {row["run"]: row["verdict"] for row in vsr.audit(events, plan=plan).collect()}
    assert len(found) == 43
    assert {run: verdict for run, verdict in found.items() if run.startswith("large")} == dict.fromkeys(
        ["large 0", "large 1", "large 2"], "conforms"
    )
    one = vsr.plan(frame(spark_session, rows[: len(rows) // 3]), tasks=4)
    assert "and a run is judged by one task" in str(one)


@pytest.mark.long
def test_addresses_are_read_by_spark_and_named_in_what_is_wrong(tmp_path: Path) -> None:
    """viewfs is a file system that only Hadoop knows: here it leads to a directory of this machine."""
    shutil.copytree(STEADY, tmp_path / "data" / "run=steady")
    (tmp_path / "data" / "_SUCCESS").touch()
    conf = ("--conf", f"spark.hadoop.fs.viewfs.mounttable.vp.link./data=file://{tmp_path}/data")
    words = [sys.executable, "-m", "viewproof", "audit", "--engine", "spark", "--master", "local[2]", *conf]

    def audit(*paths: str) -> tuple[int, str]:
        done = subprocess.run([*words, *paths], capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr

    code, output = audit("viewfs://vp/data")
    assert (code, "2,801 events checked" in output) == (0, True), output
    with (tmp_path / "data" / "run=steady" / "replica-1.ndjson").open("a") as file:
        file.write('{"run": "steady"}\n')
    code, output = audit("viewfs://vp/data")
    assert (code, "viewfs://vp/data/run=steady/replica-1.ndjson:" in output) == (2, True), output
    code, output = audit("viewfs://vp/nothing", "s3a://bucket/x")
    assert code == 2
    assert "viewfs://vp/nothing: expected files that Spark can list" in output
    assert "s3a://bucket/x: expected files that Spark can list" in output
    assert "Traceback" not in output


def test_addresses_masters_and_settings_that_cannot_be_are_refused() -> None:
    def audit(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(cli, ["audit", str(STEADY), *words])
        return result.exit_code, result.output + str(result.exception or "")

    result = CliRunner().invoke(cli, ["audit", "s3a://bucket/x"])
    assert result.exit_code == 2
    assert "--engine spark reads those that its session knows" in result.output
    assert audit("--conf", "spark.x=1")[0] == 2
    code, output = audit("--engine", "spark", "--conf", "x=1")
    assert (code, "is not KEY=VALUE with a key of Spark's" in output) == (2, True)
    assert CliRunner().invoke(cli, ["audit", "file://" + str(STEADY.absolute())]).exit_code == 0


def test_a_master_where_nothing_listens_is_refused_at_once_and_the_process_ends() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    for scheme in ("spark", "sc"):
        words = ["audit", "--engine", "spark", "--master", f"{scheme}://127.0.0.1:{port}", str(STEADY)]
        done = subprocess.run([sys.executable, "-m", "viewproof", *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 2
        assert f"nothing answers at {scheme}://127.0.0.1:{port}" in done.stderr


@pytest.mark.parametrize(("module", "package"), [("grpc", "grpcio"), ("grpc_status", "grpcio-status")])
def test_what_spark_connect_lacks_is_named(module: str, package: str, tmp_path: Path) -> None:
    script = tmp_path / "vsr.py"
    script.write_text(f"import sys; sys.modules[{module!r}] = None; from viewproof.refinement.cli import main; main()")
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = ["--engine", "spark", "--master", f"sc://127.0.0.1:{server.getsockname()[1]}", str(STEADY)]
        done = subprocess.run(
            [sys.executable, str(script), "audit", *words], capture_output=True, text=True, timeout=120
        )
    assert done.returncode == 2
    assert "pip install 'pyspark[connect]', or 'viewproof[connect]'" in done.stderr
    assert f"{package} >= " in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "variables",
    [
        {"SPARK_HOME": "/nonexistent/spark", "SPARK_REMOTE": "sc://127.0.0.1:15002"},
        {"PYSPARK_SUBMIT_ARGS": "--master yarn pyspark-shell", "SPARK_CONF_DIR": "CONF", "HADOOP_CONF_DIR": "CONF"},
    ],
)
def test_a_shell_that_is_set_up_for_another_spark_does_not_matter(variables: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "spark-defaults.conf").write_text("spark.submit.deployMode cluster\nspark.task.cpus 4\n")
    environment = os.environ | {name: value.replace("CONF", str(tmp_path)) for name, value in variables.items()}
    words = ["audit", "--engine", "spark", "--master", "local[2]", str(STEADY)]
    run = [sys.executable, "-m", "viewproof", *words]
    done = subprocess.run(run, capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
    assert "not used by a local session: " in done.stderr
    assert all(name in done.stderr for name in variables)


@pytest.mark.long
def test_on_a_master_with_two_workers(tmp_path: Path) -> None:
    """Executors are processes of their own; the verdicts are those of a local session."""
    runs = tmp_path / "runs"
    for n in range(4):
        (runs / f"r{n}").mkdir(parents=True)
        rows = records(f"r{n}", **({"digest": "x" * 16} if n == 3 else {}))
        (runs / f"r{n}" / "t.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    table = pa.Table.from_pylist([row for n in range(4) for row in records(f"r{n}")], schema=ARROW_SCHEMA)
    pq.write_table(table, tmp_path / "all.parquet")
    (tmp_path / "cluster").mkdir()
    with standalone_cluster(tmp_path / "cluster", workers=2) as master:
        words = ["audit", str(runs), "--engine", "spark", "--master", master, "--conf", "spark.driver.host=127.0.0.1"]
        words += ["--json", str(tmp_path / "report.json")]
        done = subprocess.run([sys.executable, "-m", "viewproof", *words], capture_output=True, text=True, timeout=600)
        assert done.returncode == 1, done.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        assert [run["verdict"] for run in report["verdicts"]] == ["conforms", "conforms", "conforms", "violates"]
        code = (
            "import sys\nfrom viewproof import spark as vsr\n"
            "session = vsr.start_session(sys.argv[1], conf={'spark.driver.host': '127.0.0.1'})\n"
            "rows = vsr.audit(sys.argv[2], tasks=4).collect()\n"
            "print(sorted((row['run'], row['verdict']) for row in rows))\nsession.stop()\n"
        )
        run = [sys.executable, "-c", code, master, str(tmp_path / "all.parquet")]
        done = subprocess.run(run, capture_output=True, text=True, timeout=600)
        assert done.stdout.strip() == str([(f"r{n}", "conforms") for n in range(4)]), done.stderr
