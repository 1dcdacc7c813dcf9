"""Parquet traces: rows out of files and batches of columns, every value checked by its column, and rows into a file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewproof.refinement.bounds import rows_error
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.schema import ARROW_SCHEMA, BY_NAME, COLUMNS, TABLE, Column, Row, check_record

_BATCH_ROWS = 8192
_GROUP_BATCHES = 16
_NONE: Final[Mapping[str, Any]] = MappingProxyType({})


def read(file: str, log: ProblemLog) -> Iterator[Row]:
    """Stream the rows of a file; what is malformed goes to `log`."""
    try:
        parquet = pq.ParquetFile(file)
    except pa.ArrowException as error:
        log.add(file, 0, "", "a Parquet file", f"a damaged or truncated one ({first_line(error)})")
        return
    with parquet:
        if (many := rows_error(parquet.metadata.num_rows, os.path.getsize(file))) is not None:
            log.add(file, 0, "", "a Parquet file whose rows differ, as events do", many)
            return
        in_path = {k: v for k, v in path_columns(file).items() if k not in parquet.schema_arrow.names}
        if not check_columns(file, parquet.schema_arrow, log, in_path):
            return
        number = 1
        try:
            for batch in parquet.iter_batches(batch_size=_BATCH_ROWS):
                yield from batch_rows(file, number, batch, log, in_path)
                number += batch.num_rows
        except pa.ArrowException as error:
            log.add(file, number, "", "intact Parquet data", f"a damaged file ({first_line(error)})")


def first_line(error: Exception) -> str:
    """What an error says, in one line."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def check_columns(file: str, schema: pa.Schema, log: ProblemLog, in_path: Mapping[str, Any] = _NONE) -> bool:
    """Are the columns those of a trace, or else what is wrong to `log`? Others are noted as carried along."""
    good = True
    for name in (*schema.names, *in_path):
        if name not in BY_NAME:
            log.carry(name, file)
    for column in TABLE:
        if schema.names.count(column.name) > 1:
            log.add(file, 0, column.name, "one column of that name", "several")
            good = False
        elif column.name not in schema.names:
            if column.required and column.name not in in_path:
                log.add(file, 0, column.name, column.expected, "nothing: the column is missing")
                good = False
        elif not _type_fits(column, schema.field(column.name).type):
            log.add(file, 0, column.name, column.expected, f"the Parquet type {schema.field(column.name).type}")
            good = False
    return good


def _type_fits(column: Column, found: pa.DataType) -> bool:
    if pa.types.is_null(found):
        return not column.required
    if pa.types.is_dictionary(found):
        found = found.value_type
    if column.kind == "int":
        return bool(pa.types.is_integer(found))
    if column.kind == "string":
        return bool(pa.types.is_string(found) or pa.types.is_large_string(found))
    is_list = pa.types.is_list(found) or pa.types.is_large_list(found)
    return bool(is_list and (pa.types.is_string(found.value_type) or pa.types.is_large_string(found.value_type)))


def batch_rows(
    file: str, first: int, batch: pa.RecordBatch, log: ProblemLog, in_path: Mapping[str, Any] = _NONE
) -> Iterator[Row]:
    columns: list[list[Any]] = []
    undecodable: dict[int, list[str]] = {}
    valid = True
    for column in TABLE:
        if column.name not in batch.schema.names:
            value = in_path.get(column.name)
            valid = valid and (value is None or column.accepts(value)) and not (column.required and value is None)
            columns.append([value] * batch.num_rows)
            continue
        array = batch.column(column.name)
        values = _column_values(column, array, undecodable)
        valid = valid and _column_valid(column, array, values)
        if column.kind == "strings":
            values = [None if value is None else tuple(value) for value in values]
        columns.append(values)
    for number, row in enumerate(zip(*columns, strict=True), first):
        if (names := undecodable.get(number - first)) is not None:
            for name in names:
                log.add(file, number, name, "a string", "bytes that are no UTF-8")
            continue
        if not valid:
            problems = check_record(dict(zip(COLUMNS, row, strict=True)))
            for problem in problems:
                log.add(file, number, problem.field, problem.expected, problem.got)
            if problems:
                continue
        yield (*row, file, number)


def _column_values(column: Column, array: pa.Array, undecodable: dict[int, list[str]]) -> list[Any]:
    """The values of a Parquet column; None, and an entry in `undecodable`, where one is no UTF-8."""
    try:
        return list(array.to_pylist())
    except UnicodeDecodeError:
        values: list[Any] = []
        for offset, value in enumerate(array):
            try:
                values.append(value.as_py())
            except UnicodeDecodeError:
                undecodable.setdefault(offset, []).append(column.name)
                values.append(None)
        return values


def _column_valid(column: Column, array: pa.Array, values: list[Any]) -> bool:
    """Whether every value of a Parquet column is allowed; checked on the column as a whole."""
    if column.required and array.null_count:
        return False
    if array.null_count == len(array):
        return True
    if column.kind == "int":
        return bool(pc.min(array).as_py() >= column.minimum and pc.max(array).as_py() <= column.maximum)
    if column.kind == "strings":
        return not pc.list_flatten(array).null_count
    if column.choices:
        return set(values) <= {*column.choices, None}
    return not (column.never_empty and "" in values)


def carried_at(file: str, line: int) -> dict[str, Any]:
    """The columns of row `line` (from 1) that the format does not have, with their values; none where it cannot be
    read.
    """
    try:
        with pq.ParquetFile(file) as parquet:
            names = [name for name in parquet.schema_arrow.names if name not in BY_NAME]
            return dict(parquet.read(columns=names).slice(line - 1, 1).to_pylist()[0]) if names else {}
    except (OSError, ValueError, IndexError, pa.ArrowException):
        return {}


def holds_nothing(file: str) -> bool:
    """Is it a Parquet file without rows that is whole by its footer, as Spark writes for a partition without any?"""
    try:
        return file.endswith(".parquet") and pq.read_metadata(file).num_rows == 0
    except (OSError, pa.ArrowException):
        return False


def first_run(file: str) -> str | None:
    """The run id of the first row, or None where there is none or it is malformed."""
    try:
        with pq.ParquetFile(file) as parquet:
            if "run" not in parquet.schema_arrow.names:
                named = path_columns(file).get("run") if parquet.metadata.num_rows else None
                return None if named is None else str(named)
            for batch in parquet.iter_batches(batch_size=1, columns=["run"]):
                return str(batch.column(0)[0].as_py()) if batch.num_rows else None
    except Exception:  # what is wrong with the file is said where it is read
        pass
    return None


def write_parquet(rows: Iterable[Row], file: str) -> None:
    """Write rows (values in `COLUMNS` order; what follows is ignored) as a Parquet trace."""
    with pq.ParquetWriter(file, ARROW_SCHEMA, compression="zstd") as writer:
        left, group = iter(rows), list[pa.RecordBatch]()
        while chunk := list(islice(left, _BATCH_ROWS)):
            group.append(_to_batch(chunk))
            if len(group) == _GROUP_BATCHES:
                writer.write_table(pa.Table.from_batches(group))
                group = []
        writer.write_table(pa.Table.from_batches(group, ARROW_SCHEMA))


def _to_batch(rows: list[Row]) -> pa.RecordBatch:
    arrays = [pa.array([row[position] for row in rows], type=field.type) for position, field in enumerate(ARROW_SCHEMA)]
    return pa.RecordBatch.from_arrays(arrays, schema=ARROW_SCHEMA)
