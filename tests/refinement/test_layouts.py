"""Directories as Spark and Hive write them: columns in paths, names that are no data, empty parts, tables of others."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from viewproof.refinement.cli import cli
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.schema import ARROW_SCHEMA

STEADY = Path("traces/recorded/steady")
EVENTS = "2,801 events checked"


def audit(*words: str | Path) -> tuple[int, str]:
    """Exit code and output of an audit by the real replay."""
    result = CliRunner().invoke(cli, ["audit", *map(str, words)])
    return result.exit_code, result.output


def records(node: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (STEADY / f"replica-{node}.ndjson").read_text().splitlines()]


def parquet(path: Path, rows: list[dict[str, Any]], *, without: tuple[str, ...] = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=ARROW_SCHEMA).drop_columns(list(without)), path)


def ndjson(path: Path, rows: list[dict[str, Any]], *, without: tuple[str, ...] = ()) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = [{name: value for name, value in row.items() if name not in without} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in kept))


@pytest.mark.parametrize("kind", [parquet, ndjson])
def test_columns_in_paths_are_columns(kind: Any, tmp_path: Path) -> None:
    ending = "parquet" if kind is parquet else "ndjson"
    for node in range(3):
        place = tmp_path / "day=2026-11-28" / "run=steady" / f"node={node}"
        kind(place / f"part-00000.snappy.{ending}", records(node), without=("run", "node"))
    (tmp_path / "_SUCCESS").touch()
    code, output = audit(tmp_path)
    assert (code, EVENTS in output) == (0, True), output
    assert "day is no column of the format: carried along" in output


@pytest.mark.parametrize("kind", [parquet, ndjson])
def test_a_path_that_a_file_contradicts_or_that_is_no_value_is_named(kind: Any, tmp_path: Path) -> None:
    ending = "parquet" if kind is parquet else "ndjson"
    for node in range(3):
        kind(tmp_path / "run=steady" / f"node={node}" / f"part.{ending}", records(node))
    code, output = audit(tmp_path)
    assert (code, "conforms     steady" in output) == (0, True), output
    (tmp_path / "view=7").mkdir()
    shutil.copytree(tmp_path / "run=steady", tmp_path / "view=7" / "run=steady")
    assert audit(tmp_path / "view=7")[0] == 0
    shutil.rmtree(tmp_path / "view=7")
    (tmp_path / "run=steady" / "node=1").rename(tmp_path / "run=steady" / "node=4")
    (tmp_path / "run=steady").rename(tmp_path / "run=other")
    code, output = audit(tmp_path)
    assert code == 2
    place = f"{tmp_path}/run=other/node=4/part.{ending}:1"
    for name, path, file in (("run", "other", "steady"), ("node", "4", "1")):
        said = f"{place}: {name}: expected {path}, as the path says ({name}={path}), got {file}: take it out of one"
        assert output.count(said) == 1, output
    (tmp_path / "run=other").rename(tmp_path / "gone")
    for node in range(3):
        place = tmp_path / "bad" / "run=steady" / f"node=n{node}"
        kind(place / f"part.{ending}", records(node), without=("run", "node"))
    code, output = audit(tmp_path / "bad")
    assert code == 2
    assert f"node=n0/part.{ending}:1: node: expected an integer ≥ 0" in output


def test_a_null_in_a_path_is_one_and_texts_are_unquoted(tmp_path: Path) -> None:
    file = str(tmp_path / "run=a%2Fb" / "view=__HIVE_DEFAULT_PARTITION__" / "node=3" / "x=1" / "part.parquet")
    assert path_columns(file) == {"run": "a/b", "view": None, "node": 3, "x": "1"}


def test_names_that_spark_passes_over_are_passed_over_and_noted(tmp_path: Path) -> None:
    for node in range(3):
        parquet(tmp_path / f"replica-{node}.parquet", records(node))
    parquet(tmp_path / "_temporary" / "0" / "task_1" / "part-00000.parquet", records(0)[:5])
    (tmp_path / ".part-00000.parquet.crc").write_bytes(b"crc")
    code, output = audit(tmp_path)
    assert (code, EVENTS in output) == (0, True), output
    assert "2 files that are no traces are not read" in output
    code, output = audit(tmp_path / "_temporary")
    assert code == 4, "named, it is read"


def test_an_empty_part_of_parquet_takes_nothing_away_but_nothing_else_is_still_nothing(tmp_path: Path) -> None:
    for node in range(3):
        parquet(tmp_path / f"replica-{node}.parquet", records(node))
    parquet(tmp_path / "part-00003.parquet", [])
    code, output = audit(tmp_path)
    assert (code, EVENTS in output) == (0, True), output
    (tmp_path / "empty.ndjson").touch()
    assert audit(tmp_path)[0] == 4, "an empty log may have been cut"
    parquet(tmp_path / "alone" / "part-00000.parquet", [])
    code, output = audit(tmp_path / "alone")
    assert code == 4, output


@pytest.mark.parametrize(
    ("kind", "inside"),
    [("Delta", "_delta_log/0.json"), ("Hudi", ".hoodie/x"), ("Iceberg", "metadata/v1.metadata.json")],
)
def test_a_table_whose_files_do_not_say_what_is_in_it_is_refused_by_name(
    kind: str, inside: str, tmp_path: Path
) -> None:
    parquet(tmp_path / "t" / "part-00000.parquet", records(0))
    (tmp_path / "t" / inside).parent.mkdir(parents=True)
    (tmp_path / "t" / inside).write_text("{}")
    code, output = audit(tmp_path)
    assert code == 2
    assert f"{tmp_path}/t: expected a directory of trace files, got a {kind} table" in output


@pytest.mark.spark
def test_spark_reads_the_same_layouts(tmp_path: Path, spark_session: Any) -> None:
    from viewproof.refinement import spark
    from viewproof.refinement.checker import check_run
    from viewproof.refinement.discovery import survey
    from viewproof.refinement.verdict import AuditOptions

    for node in range(3):
        place = tmp_path / "run=steady" / f"node={node}"
        parquet(place / "part-00000.parquet", records(node), without=("run", "node"))
    parquet(tmp_path / "run=steady" / "node=0" / "part-00001.parquet", [], without=("run", "node"))
    report = spark.audit(survey([str(tmp_path)]), AuditOptions(), check_run, session=spark_session)
    assert (report.verdict, report.events) == ("conforms", 2801), report
