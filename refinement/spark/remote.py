"""Files at addresses that only Spark's file systems know (`s3a://…`, `hdfs://…`): fetched whole by the task that reads
them, and then read like any other, so that a report names the address, the line and the field.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from viewproof.refinement.discovery import Inputs, is_trace
from viewproof.refinement.verdict import InputProblem


def files_at(spark: SparkSession, addresses: Iterable[str], suffixes: tuple[str, ...]) -> tuple[DataFrame, Inputs]:
    """The files at or below the addresses as a table of `unit`, `file` and `content`; and what is to be said of them.

    Names that begin with `_` or `.` are passed over, as Spark does. A file has at most 2 GiB.
    """
    parts: list[DataFrame] = []
    refused, empty, ignored = [], list[str](), list[str]()
    for address in addresses:
        try:
            found = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(address)
            names = found.select("path").toArrow().column("path").to_pylist()
        except Exception as error:
            got = " ".join(str(error).split())[:300]
            refused.append(InputProblem(address, 0, "", "files that Spark can list", got))
            continue
        wanted = [name for name in names if (name.endswith(suffixes) if suffixes else is_trace(name))]
        ignored += sorted(set(names) - set(wanted))
        if not wanted:
            empty.append(f"{address}: no trace files")
            continue
        chosen = found.where(fn.col("path").isin(wanted)) if len(wanted) < len(names) else found
        parts.append(chosen.select(fn.lit(address).alias("unit"), fn.col("path").alias("file"), "content"))
    said = Inputs((), tuple(empty), tuple(ignored), tuple(refused))
    table = parts[0] if parts else spark.createDataFrame([], "unit string, file string, content binary")
    for part in parts[1:]:
        table = table.unionByName(part)
    return table, said


def fetched(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, str, str]]:
    """Per file its unit, where its content is on this machine as long as it is looked at, and its address. One without
    a content is read under its own name.
    """
    for batch in batches:
        columns = (batch.column(name) for name in ("unit", "file", "content"))
        for unit, file, content in zip(*columns, strict=True):
            if not content.is_valid:
                yield unit.as_py(), file.as_py(), file.as_py()
                continue
            with _kept(file.as_py(), content.as_buffer()) as path:
                yield unit.as_py(), path, file.as_py()


@contextmanager
def _kept(address: str, content: pa.Buffer) -> Iterator[str]:
    """The content in a file below directories of the same names, which may hold columns."""
    folder = tempfile.mkdtemp(prefix="viewproof-fetched-")
    try:
        path = Path(folder) / urlsplit(address).path.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(memoryview(content))
        yield str(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
