"""The events of a unit's files as columns of 64-bit words: what the compiled audit takes.

Every value is checked as the reader of rows checks it, column by column. Whatever is not plain (a value out of its
range, an unknown or repeated key, a damaged file, a column of the path) is `NotPlain`: the reader of rows looks at the
files then, and says with file, line and field what is wrong, if anything is.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from viewproof.refinement import parquet
from viewproof.refinement.events.system import System
from viewproof.refinement.flat.dictionary import PADDING, TEXTS_MIN, Dictionary, Generations, NotPlain, Words, call
from viewproof.refinement.flat.json_lines import Keys, Rows
from viewproof.refinement.flat.shape import FACTS, PART, vocabulary
from viewproof.refinement.flat.terms import NULL, NUMBERED_MAX, WORD_MAX, numbered_columns
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import open_file
from viewproof.refinement.schema import INT_MAX, Column
from viewproof.spec.engines.flat.lower import NUMBER_MAX

LARGE = 1 << 16
"""Numbered columns with values from here on are."""
TEXT_MAX = 256 << 20
"""Most bytes of a file, unpacked, and"""
ROWS_MAX = 1 << 21
"""most rows, that are held in columns."""


class Part:
    """Events of one file as words by column and row: `words[at[place]]` is the column of a place; the ends of lists
    follow, in the order of their columns. Columns that no event shows share one. `items` are the elements of lists.
    """

    def __init__(self, system: System, words: Words, at: Words, items: Words, texts: Dictionary) -> None:
        self.system, self.words, self.at, self.items, self.texts = system, words, at, items, texts
        self.rows = int(words.shape[1])

    def column(self, name: str) -> Words:
        """The words of a column."""
        words: Words = self.words[self.at[self.system.index[name]]]
        return words

    def addresses(self) -> Words:
        """Where each column begins: the first words of lists at their places, their ends, and their elements."""
        places = len(self.system.table)
        begin = self.words.ctypes.data + 8 * self.rows * self.at
        found = np.zeros(3 * places, np.int64)
        found[:places] = begin[:places]
        for number, at in enumerate(list_places(self.system)):
            found[at + places] = begin[places + number]
            found[at + 2 * places] = self.items.ctypes.data
        return found

    def recode(self, codes: Words) -> None:
        """Other codes for all strings but those that are known."""
        for name in free_texts(self.system):
            if at := self.at[self.system.index[name]]:
                call("recode", self.words[at], self.rows, codes)
        call("recode", self.items, len(self.items), codes)


@lru_cache(maxsize=8)
def list_places(system: System) -> tuple[int, ...]:
    """The places of columns that are lists."""
    return tuple(at for at, column in enumerate(system.table) if column.kind == "strings")


@lru_cache(maxsize=8)
def free_texts(system: System) -> tuple[str, ...]:
    """Columns of strings that may be any."""
    return tuple(column.name for column in system.table if column.kind == "string" and not column.choices)


class Table:
    """Events of several files. A row is its part's number and its place there, as `PART` and below."""

    def __init__(self, system: System, parts: Sequence[Part], texts: Dictionary | Generations) -> None:
        self.system, self.parts, self.texts = system, list(parts), texts
        self._columns = [part.addresses() for part in parts]
        self._facts = [self._facts_of(found) for found in self._columns]

    @property
    def rows(self) -> int:
        """Number of events."""
        return sum(part.rows for part in self.parts)

    def _facts_of(self, addresses: Words) -> Words:
        index = self.system.index
        return np.array([int(addresses[index[name]]) if name in index else 0 for name in FACTS], np.int64)

    def addresses(self) -> Words:
        """Where the addresses of each part's columns lie."""
        return np.array([found.ctypes.data for found in self._columns], np.int64)

    def facts(self) -> Words:
        """Where those of the columns lie that facts are about; 0 for one that this kind of log does not have."""
        return np.array([found.ctypes.data for found in self._facts], np.int64)

    def column(self, name: str) -> Words:
        """The words of a column, part after part."""
        return np.concatenate([part.column(name) for part in self.parts])

    def numbers(self) -> Words:
        """The rows, part after part."""
        return np.concatenate([np.arange(part.rows) + PART * n for n, part in enumerate(self.parts)])

    def record(self, row: int) -> dict[str, Any]:
        """The numbers and texts of one event, by column; columns that are numbered, and lists, left out."""
        found: dict[str, Any] = {}
        numbered = numbered_columns(self.system)
        part, row = self.parts[row // PART], row % PART
        for at, column in enumerate(self.system.table):
            word = int(part.words[part.at[at], row])
            shown = word != NULL and column.kind != "strings" and column.name not in numbered
            found[column.name] = (self.texts.text(word) if column.kind == "string" else word) if shown else None
        return found


@lru_cache(maxsize=8)
def _columns(system: System) -> Keys:
    """What is known of each column, by place."""
    table, known = system.table, vocabulary(system)
    names, count = Dictionary(system.names), len(table)
    least, greatest, chosen, ends = (np.zeros(count, np.int64) for _ in range(4))
    choices = [np.zeros(0, np.int64)]
    following = count
    for at, column in enumerate(table):
        least[at] = column.minimum if column.kind == "int" else int(column.never_empty)
        greatest[at] = len(known) - 1 if column.choices else _greatest(column, system)
        if column.choices:
            chosen[at] = 1 + sum(map(len, choices))
            choices.append(np.isin(np.arange(len(known)), [known[text] for text in column.choices]).astype(np.int64))
        if column.kind == "strings":
            ends[at], following = following, following + 1
    required = np.array([column.required for column in table], np.int64)
    return Keys(
        slots=names.slots,
        mask=names.slots.shape[0] - 1,
        starts=names.starts,
        bytes=names.bytes,
        kinds=np.array([("int", "string", "strings").index(c.kind) for c in table], np.int64),
        least=least,
        greatest=greatest,
        chosen=chosen,
        choices=np.concatenate([*choices, np.zeros(1, np.int64)]),
        required=required,
        needed=int(required.sum()),
        ends=ends,
        after=np.zeros(count, np.int64),
        stamps=np.zeros(count, np.int64),
    )


def _greatest(column: Column, system: System) -> int:
    if column.kind != "int" or column.name in numbered_columns(system):
        return INT_MAX
    return min(column.maximum, WORD_MAX if column.sort is None else NUMBER_MAX)


class Reader:
    """Reads files into a table; `log` gets the columns that are carried along. About so many strings are expected."""

    def __init__(self, system: System, log: ProblemLog, texts: int = TEXTS_MIN) -> None:
        self.system, self.log = system, log
        self.places = len(system.table)
        self.texts = Dictionary(list(vocabulary(system)), texts)
        self.items = np.zeros(1 << 12, np.int64)
        self.item_count = 0
        self.parts: list[Part] = []
        self.all_places = self.places + len(list_places(system))
        known = _columns(system)
        self.keys = Keys(**{**vars(known), "after": np.zeros_like(known.after), "stamps": np.zeros_like(known.stamps)})

    def table(self) -> Table:
        """All that was read."""
        for group in self.system.profile.numbered:
            _number([part.column(name) for part in self.parts for name in group])
        return Table(self.system, self.parts, self.texts)

    def read(self, files: Sequence[str]) -> None:
        """Read files, in their order but those of Parquet last."""
        texts = [file for file in files if not file.endswith(".parquet")]
        for file in files:
            if path_columns(file):
                raise NotPlain(f"{file}: columns in the path")
        if texts:
            self.parts.append(self._ndjson(texts))
        for file in files:
            if file.endswith(".parquet"):
                part = self._parquet(file)
                if not part.rows:
                    raise NotPlain(f"{file}: no events")
                self.parts.append(part)

    def _part(self, words: Words, at: Words) -> Part:
        items, self.items, self.item_count = self.items[: self.item_count], np.zeros(1 << 12, np.int64), 0
        return Part(self.system, words, at, items, self.texts)

    # NDJSON

    def _ndjson(self, files: Sequence[str]) -> Part:
        """All files as one part."""
        found: list[bytes] = []
        left = TEXT_MAX
        for file in files:
            data = _content(file, left)
            if not data or len(data) > left:
                raise NotPlain(f"{file}: no events, or more than {TEXT_MAX} bytes")
            left -= len(data)
            found += [data] if data.endswith(b"\n") else [data, b"\n"]
        return self.of_text(b"".join([*found, PADDING]), files[0] if len(files) == 1 else f"{files[0]} and others")

    def of_text(self, data: bytes, file: str) -> Part:
        """The words of whole lines, which `PADDING` follows."""
        text = np.frombuffer(data, np.uint8)
        end = len(data) - len(PADDING)
        rows = int(np.count_nonzero(text[:end] == 10))
        words = np.full((1 + self.all_places, rows), NULL, np.int64)
        begin = text.ctypes.data
        self.keys.stamps[:] = 0
        out = np.array([begin, 0, 0, 0, 0], np.int64)
        line, room = -1, 1 << 16
        while code := self._lines(int(out[0]), begin + end, words[1:], out):
            if code == 2:
                raise NotPlain(f"{file}:{int(out[1]) + 1}: a line that is not plain")
            used = int(self.texts.used[0])
            stuck = int(out[1]) == line  # there was more room for this line already, and not enough
            line, room = int(out[1]), 2 * room if stuck else 1 << 16
            if stuck or len(self.items) < 2 * (int(out[2]) + rows):
                self.items = np.concatenate([self.items, np.zeros(len(self.items) + 2 * rows, np.int64)])
            self.texts.grow(used, max(int(self.texts.starts[used]), room))
        if int(out[1]) != rows:
            raise NotPlain(f"{file}: lines that are not plain")
        self.item_count = int(out[2])
        return self._part(words, np.arange(1, 1 + self.all_places))

    def _lines(self, begin: int, end: int, words: Words, out: Words) -> int:
        rows = Rows(words=words, rows=words.shape[1], items=self.items, items_most=len(self.items))
        return call("lines", begin, end, int(out[1]), self.texts.as_record(), self.keys, rows, out)

    # Parquet

    def _parquet(self, file: str) -> Part:
        problems = ProblemLog()
        try:
            with self.opened(file, problems) as source:
                schema = source.schema_arrow
                if source.metadata.num_rows > ROWS_MAX:
                    raise NotPlain(f"{file}: more than {ROWS_MAX} rows")
                table = source.read(columns=self.known(schema), use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise NotPlain(f"{file}: {error}") from error
        for name, place in problems.carried.items():
            self.log.carry(name, place)
        return self.of_table(table, file)

    def opened(self, file: str, problems: ProblemLog) -> Any:
        """A Parquet file whose columns are those of a trace."""
        found = pq.read_metadata(file)
        schema = found.schema.to_arrow_schema()
        if not parquet.check_columns(file, schema, problems) or problems:
            raise NotPlain(f"{file}: columns that do not fit")
        texts = [name for name in self.known(schema) if self.system.by_name[name].kind == "string"]
        return pq.ParquetFile(file, metadata=found, read_dictionary=texts)

    def known(self, schema: Any) -> list[str]:
        """The columns of a file that are the record's."""
        return [name for name in schema.names if name in self.system.index]

    def of_table(self, table: Any, file: str) -> Part:
        """The words of a table's columns."""
        shown = [name for name in table.column_names if table.column(name).null_count < table.num_rows]
        lists = [name for name in shown if self.system.by_name[name].kind == "strings"]
        for column in self.system.table:
            if column.required and (column.name not in shown or table.column(column.name).null_count):
                raise NotPlain(f"{file}: {column.name} is not {column.expected}")
        words = np.empty((1 + len(shown) + len(lists), table.num_rows), np.int64)
        words[0] = NULL
        at = np.zeros(self.all_places, np.int64)
        for number, name in enumerate([*shown, *lists], 1):
            place = self.system.index[name]
            at[place if number <= len(shown) else self.keys.ends[place]] = number
        for name in shown:
            column, place, row = self.system.by_name[name], self.system.index[name], 0
            for chunk in filter(len, table.column(name).chunks):
                part, ends = (words[at[p], row : row + len(chunk)] for p in (place, self.keys.ends[place]))
                if not self._chunk(column, chunk, part, ends):
                    raise NotPlain(f"{file}: {name} is not {column.expected}")
                row += len(chunk)
        return self._part(words, at)

    def _chunk(self, column: Column, chunk: Any, words: Words, ends: Words) -> bool:
        place = self.system.index[column.name]
        if column.kind == "int":
            whole = chunk if chunk.type == pa.int64() else pc.cast(_plain(chunk), pa.int64())
            least, greatest = int(self.keys.least[place]), int(self.keys.greatest[place])
            values = whole.buffers()[1].address
            return call("numbers", values, _valid(whole), whole.offset, len(whole), words, least, greatest) < 0
        if column.kind == "string":
            return self._texts(column, place, chunk, words)
        lists = pc.cast(chunk, pa.large_list(pa.string()))
        offsets = np.frombuffer(lists.buffers()[1], np.int64)[lists.offset : lists.offset + len(lists) + 1]
        size = len(lists.values)
        codes = np.empty(size, np.int64)
        self._texts(column, place, lists.values, codes)
        if (codes == NULL).any():
            raise NotPlain(f"{column.name}: a list with null in it")
        while len(self.items) < self.item_count + size:
            self.items = np.concatenate([self.items, np.zeros(len(self.items), np.int64)])
        self.items[self.item_count : self.item_count + size] = codes
        words[:], ends[:] = offsets[:-1] + self.item_count, offsets[1:] + self.item_count
        there = pc.cast(lists.is_valid(), pa.uint8())  # as bytes: `to_numpy` would import pandas, for a second
        words[np.frombuffer(there.buffers()[1], np.uint8)[: len(lists)] == 0] = NULL
        self.item_count += size
        return True

    def _texts(self, column: Column, place: int, chunk: Any, words: Words) -> bool:
        """Codes of strings into words; False where the column may not have one of them."""
        if not pa.types.is_dictionary(chunk.type):
            chunk = pc.dictionary_encode(chunk)
        codes = self._dictionary(chunk.dictionary)
        if column.kind == "string":
            first = int(self.keys.chosen[place])
            if (codes < self.keys.least[place]).any() or (codes > self.keys.greatest[place]).any():
                return False
            if first and not self.keys.choices[first - 1 + codes].all():
                return False
        places = chunk.indices if chunk.indices.type == pa.int32() else pc.cast(chunk.indices, pa.int32())
        call("coded", places.buffers()[1].address, _valid(places), places.offset, len(places), codes, words)
        return True

    def _dictionary(self, found: Any) -> Words:
        values = pc.cast(found, pa.large_string())
        if values.null_count:
            raise NotPlain("null among the values of a dictionary")
        if not len(values):
            return np.zeros(0, np.int64)
        first, size = values.offset, len(values)
        offsets = np.frombuffer(values.buffers()[1], np.int64)[first : first + size + 1]
        buffer = values.buffers()[2]
        text = np.frombuffer((buffer.to_pybytes() if buffer is not None else b"") + PADDING, np.uint8)
        if (text[offsets[0] : offsets[-1]] > 126).any():
            raise NotPlain("a text that is not of plain ASCII")
        return self.texts.intern_at(text, offsets)


def _content(file: str, most: int) -> bytes:
    """A file's bytes, unpacked; of more than so many some of them."""
    if not file.endswith((".gz", ".zst")):
        with open(file, "rb", buffering=0) as plain:
            return plain.readall() if os.fstat(plain.fileno()).st_size <= most else plain.read(most + 1)
    with open_file(file) as stream:
        return stream.read(most + 1)


def _plain(chunk: Any) -> Any:
    return chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


def _valid(array: Any) -> int:
    """The address of the bits that say which elements are there; 0 if all are."""
    bits = array.buffers()[0]
    return 0 if bits is None or not array.null_count else int(bits.address)


def _number(columns: list[Words]) -> None:
    """Number the values of columns from 0 on in their order, in place, if some are large; 0 stays what it is."""
    shown = [column != NULL for column in columns]
    parts = [column[which] for column, which in zip(columns, shown, strict=True)]
    found = np.concatenate(parts)
    if not len(found) or (found.min() >= 0 and found.max() < LARGE):
        return
    values = np.unique(np.append(found, 0))
    values = np.concatenate([values[values >= 0], values[values < 0]])
    if len(values) >= NUMBERED_MAX:
        raise NotPlain("too many values to number")
    order = np.argsort(values, kind="stable")
    for column, which, part in zip(columns, shown, parts, strict=True):
        column[which] = order[np.searchsorted(values[order], part)]


def read(files: Sequence[str], system: System, log: ProblemLog) -> Table:
    """The events of files, in their order. Raises `NotPlain`."""
    reader = Reader(system, log)
    reader.read(files)
    return reader.table()


def runs_of(table: Table) -> Iterator[tuple[str, Words]]:
    """Run ids, sorted, each with its rows in the order of replay. Raises `NotPlain`."""
    run, clock, node = (table.column(name) for name in ("run", "clock", "node"))
    if int(clock.max()) >= 1 << 54 or int(node.max()) >= 1 << 7:
        raise NotPlain("a clock or node out of all bounds")
    order = np.argsort(clock << 7 | node, kind="stable")
    rows = table.numbers()
    if (run == run[0]).all():
        yield table.texts.text(int(run[0])), rows[order]
        return
    order = order[np.argsort(run[order], kind="stable")]
    codes, ends = np.unique(run[order], return_index=True)
    each = zip(codes, np.split(rows[order], ends[1:]), strict=True)
    yield from sorted(((table.texts.text(int(code)), some) for code, some in each), key=itemgetter(0))
