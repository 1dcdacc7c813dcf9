"""The events of a unit's files as columns of 64-bit words: what the compiled audit takes.

Every value is checked as the reader of rows checks it, column by column. Whatever is not plain (a value out of its
range, an unknown or repeated key, a damaged file, a column of the path) is `NotPlain`: the reader of rows looks at the
files then, and says with file, line and field what is wrong, if anything is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from viewproof.refinement import parquet
from viewproof.refinement.events.system import System
from viewproof.refinement.flat import text as text_source
from viewproof.refinement.flat.shape import vocabulary
from viewproof.refinement.flat.terms import NULL, NUMBERED_MAX, WORD_MAX, numbered_columns
from viewproof.refinement.flat.text import Keys, Rows, Texts
from viewproof.refinement.partitions import path_columns
from viewproof.refinement.problems import ProblemLog
from viewproof.refinement.reading import open_file
from viewproof.refinement.schema import INT_MAX, Column
from viewproof.spec.engines.flat.lower import NUMBER_MAX
from viewproof.spec.engines.llvm.objects import Unit, function, link, objects, signatures
from viewproof.spec.lang import SpecError

Words = NDArray[np.int64]
LARGE = 1 << 16
"""Numbered columns with values from here on are."""
TEXT_MAX = 256 << 20
"""Most bytes of a file, unpacked, and"""
ROWS_MAX = 1 << 21
"""most rows, that are held in columns."""
TEXTS_MIN = 1 << 12
KEY_SLOTS = 1 << 10
PADDING = b"\n\0\0\0\0\0\0\0"


class NotPlain(Exception):  # noqa: N818 - the other reader looks at it
    """These files are for the reader of rows; the message says why."""


@cache
def _functions() -> tuple[dict[str, Any], Any]:
    """The compiled functions, and what keeps them; none, and why, where the cache cannot be written."""
    unit = Unit("text to columns", "text", Path(str(text_source.__file__)).read_text())
    try:
        engine = link(objects([unit])[0])
    except SpecError as error:
        return {}, error
    arguments = signatures(unit)
    return {name: function(engine, name, arguments[name]) for name in ("lines", "intern_all", "refused")}, engine


def _call(name: str, *given: Any) -> int:
    functions, engine = _functions()
    if not functions:
        raise NotPlain(str(engine))
    result: int = functions[name](*given)
    return result


class Dictionary:
    """Strings and their codes, those of `known` first."""

    def __init__(self, known: Sequence[str]) -> None:
        self.used = np.zeros(1, np.int64)
        self.starts = np.zeros(1, np.int64)
        self.bytes = np.zeros(0, np.uint8)
        self.slots = np.zeros(0, np.int64)
        self.grow(TEXTS_MIN, 1 << 16)
        self.intern([text.encode() for text in known])

    def grow(self, most: int, room: int) -> None:
        """Have place for so many strings, and bytes, more."""
        used = int(self.used[0])
        most += used
        size = int(self.starts[used]) if used else 0
        starts, old = np.zeros(most + 1, np.int64), self.bytes
        starts[: used + 1] = self.starts[: used + 1]
        self.bytes = np.zeros(size + room, np.uint8)
        self.bytes[:size] = old[:size]
        self.slots = np.zeros(1 << (2 * most).bit_length(), np.int64)
        self.starts = np.zeros(most + 1, np.int64)
        text = self.bytes.copy()
        self.used[0] = 0
        self._all(text, starts, 0, used, np.zeros(max(used, 1), np.int64))

    def as_record(self) -> Texts:
        """For compiled functions."""
        most, mask = self.starts.shape[0] - 1, self.slots.shape[0] - 1
        return Texts(
            slots=self.slots,
            mask=mask,
            starts=self.starts,
            bytes=self.bytes,
            used=self.used,
            most=most,
            room=self.bytes.shape[0],
        )

    def _all(self, text: NDArray[np.uint8], offsets: Words, first: int, count: int, codes: Words) -> int:
        return _call("intern_all", self.as_record(), text, offsets, first, count, codes)

    def intern(self, texts: Sequence[bytes]) -> Words:
        """The codes of strings."""
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        return self.intern_at(np.frombuffer(b"".join(texts) + PADDING, np.uint8), offsets)

    def intern_at(self, text: NDArray[np.uint8], offsets: Words) -> Words:
        """The codes of strings that lie between offsets of a text, which goes on for some bytes after the last."""
        count, done = len(offsets) - 1, 0
        codes = np.zeros(max(count, 1), np.int64)
        while (done := self._all(text, offsets, done, count, codes)) < count:
            self.grow(max(count, int(self.used[0])), max(len(text), self.bytes.shape[0]))
        return codes[:count]

    def text(self, code: int) -> str:
        """The string of a code."""
        return self.bytes[self.starts[code] : self.starts[code + 1]].tobytes().decode()


@dataclass(frozen=True, eq=False)
class Table:
    """Events as words by place and row; the ends of lists follow, in the order of their columns. `items` are the
    elements of lists.
    """

    system: System
    words: Words
    items: Words
    texts: Dictionary

    @property
    def rows(self) -> int:
        """Number of events."""
        return int(self.words.shape[1])

    def addresses(self) -> Words:
        """Where each column begins: the first words of lists at their places, their ends, and their elements."""
        places = len(self.system.table)
        found = np.zeros(3 * places, np.int64)
        base, step = self.words.ctypes.data, 8 * self.rows
        following = places
        for at, column in enumerate(self.system.table):
            found[at] = base + at * step
            if column.kind == "strings":
                found[at + places] = base + following * step
                found[at + 2 * places] = self.items.ctypes.data
                following += 1
        return found

    def facts(self, names: Sequence[str]) -> Words:
        """Where the columns begin that facts are about; 0 for one that this kind of log does not have."""
        index, step = self.system.index, 8 * self.rows
        return np.array([self.words.ctypes.data + index[n] * step if n in index else 0 for n in names], np.int64)

    def column(self, name: str) -> Words:
        """The words of a column."""
        words: Words = self.words[self.system.index[name]]
        return words

    def record(self, row: int) -> dict[str, Any]:
        """The numbers and texts of one event, by column; columns that are numbered, and lists, left out."""
        found: dict[str, Any] = {}
        numbered = numbered_columns(self.system)
        for at, column in enumerate(self.system.table):
            word = int(self.words[at, row])
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
    """Reads files into a table of so many rows; `log` gets the columns that are carried along."""

    def __init__(self, system: System, log: ProblemLog) -> None:
        self.system, self.log = system, log
        self.places = len(system.table)
        self.texts = Dictionary(list(vocabulary(system)))
        self.items = np.zeros(1 << 12, np.int64)
        self.item_count = 0
        self.parts: list[Words] = []
        self.all_places = self.places + sum(column.kind == "strings" for column in system.table)
        known = _columns(system)
        self.keys = Keys(**{**vars(known), "after": np.zeros_like(known.after), "stamps": np.zeros_like(known.stamps)})

    def table(self) -> Table:
        """All that was read."""
        words = self.parts[0] if len(self.parts) == 1 else np.concatenate(self.parts, axis=1)
        self.parts.clear()
        for group in self.system.profile.numbered:
            _number(words, [self.system.index[name] for name in group])
        return Table(self.system, words, self.items, self.texts)

    def read(self, file: str) -> None:
        """Read one file."""
        if path_columns(file):
            raise NotPlain(f"{file}: columns in the path")
        words = self._parquet(file) if file.endswith(".parquet") else self._ndjson(file)
        if not words.shape[1]:
            raise NotPlain(f"{file}: no events")
        self.parts.append(words)

    # NDJSON

    def _ndjson(self, file: str) -> Words:
        with open_file(file) as stream:
            data = stream.read(TEXT_MAX + 1)
        if len(data) > TEXT_MAX:
            raise NotPlain(f"{file}: more than {TEXT_MAX} bytes")
        return self.of_text(data, file)

    def of_text(self, data: bytes, file: str) -> Words:
        """The words of whole lines."""
        text = np.frombuffer(data + PADDING, np.uint8)
        end = len(data) + (not data.endswith(b"\n"))
        rows = int(np.count_nonzero(text[:end] == 10))
        words = np.full((self.all_places, rows), NULL, np.int64)
        begin = text.ctypes.data
        self.keys.stamps[:] = 0
        out = np.array([begin, 0, self.item_count, 0, 0], np.int64)
        while code := self._lines(int(out[0]), begin + end, words, out):
            if code == 2:
                raise NotPlain(f"{file}:{int(out[1]) + 1}: a line that is not plain")
            used = int(self.texts.used[0])
            if len(self.items) < 2 * (int(out[2]) + rows):
                self.items = np.concatenate([self.items, np.zeros(len(self.items) + 2 * rows, np.int64)])
            self.texts.grow(used, max(int(self.texts.starts[used]), 1 << 16))
        if int(out[1]) != rows:
            raise NotPlain(f"{file}: lines that are not plain")
        self.item_count = int(out[2])
        return words

    def _lines(self, begin: int, end: int, words: Words, out: Words) -> int:
        rows = Rows(words=words, rows=words.shape[1], items=self.items, items_most=len(self.items))
        return _call("lines", begin, end, int(out[1]), self.texts.as_record(), self.keys, rows, out)

    # Parquet

    def _parquet(self, file: str) -> Words:
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

    def of_table(self, table: Any, file: str) -> Words:
        """The words of a table's columns."""
        words = np.full((self.all_places, table.num_rows), NULL, np.int64)
        for name in table.column_names:
            column, at = self.system.by_name[name], self.system.index[name]
            row = 0
            for chunk in table.column(name).chunks:
                part = words[at, row : row + len(chunk)]
                self._chunk(column, chunk, part, words[self.keys.ends[at], row : row + len(chunk)])
                row += len(chunk)
        refused = _call("refused", self.keys, self.places, words, table.num_rows)
        if refused >= 0:
            column = self.system.table[refused]
            raise NotPlain(f"{file}: {column.name} is not {column.expected}")
        return words

    def _chunk(self, column: Column, chunk: Any, words: Words, ends: Words) -> None:
        if chunk.null_count == len(chunk):
            return
        if column.kind == "int":
            if column.minimum <= NULL and pc.min(chunk).as_py() == NULL:
                raise NotPlain(f"{column.name}: a number that stands for none")
            words[:] = pc.fill_null(pc.cast(_plain(chunk), pa.int64()), NULL).to_numpy(zero_copy_only=False)
            return
        if column.kind == "string":
            words[:] = self._text_codes(chunk)
            return
        lists = pc.cast(chunk, pa.large_list(pa.string()))
        offsets = np.frombuffer(lists.buffers()[1], np.int64)[lists.offset : lists.offset + len(lists) + 1]
        codes = self._text_codes(lists.values)
        if (codes == NULL).any():
            raise NotPlain(f"{column.name}: a list with null in it")
        size = len(codes)
        while len(self.items) < self.item_count + size:
            self.items = np.concatenate([self.items, np.zeros(len(self.items), np.int64)])
        self.items[self.item_count : self.item_count + size] = codes
        words[:], ends[:] = offsets[:-1] + self.item_count, offsets[1:] + self.item_count
        words[~np.asarray(lists.is_valid())] = NULL
        self.item_count += size

    def _text_codes(self, chunk: Any) -> Words:
        if not pa.types.is_dictionary(chunk.type):
            chunk = pc.dictionary_encode(chunk)
        values = pc.cast(chunk.dictionary, pa.large_string())
        if values.null_count:
            raise NotPlain("null among the values of a dictionary")
        if not len(values):
            return np.full(len(chunk), NULL, np.int64)
        first, size = values.offset, len(values)
        offsets = np.frombuffer(values.buffers()[1], np.int64)[first : first + size + 1]
        buffer = values.buffers()[2]
        text = np.frombuffer((buffer.to_pybytes() if buffer is not None else b"") + PADDING, np.uint8)
        if (text[offsets[0] : offsets[-1]] > 126).any():
            raise NotPlain("a text that is not of plain ASCII")
        codes = np.append(self.texts.intern_at(text, offsets.copy()), NULL)
        places = pc.fill_null(pc.cast(chunk.indices, pa.int64()), size).to_numpy(zero_copy_only=False)
        found: Words = codes[places]
        return found


def _plain(chunk: Any) -> Any:
    return chunk.dictionary_decode() if pa.types.is_dictionary(chunk.type) else chunk


def _number(words: Words, places: list[int]) -> None:
    """Number the values of columns from 0 on in their order, in place, if some are large; 0 stays what it is."""
    shown = [words[at] != NULL for at in places]
    parts = [words[at][which] for at, which in zip(places, shown, strict=True)]
    found = np.concatenate(parts)
    if not len(found) or (found.min() >= 0 and found.max() < LARGE):
        return
    values = np.unique(np.append(found, 0))
    values = np.concatenate([values[values >= 0], values[values < 0]])
    if len(values) >= NUMBERED_MAX:
        raise NotPlain("too many values to number")
    order = np.argsort(values, kind="stable")
    for at, which, part in zip(places, shown, parts, strict=True):
        words[at][which] = order[np.searchsorted(values[order], part)]


def read(files: Sequence[str], system: System, log: ProblemLog) -> Table:
    """The events of files, in their order. Raises `NotPlain`."""
    reader = Reader(system, log)
    for file in files:
        reader.read(file)
    return reader.table()


def runs_of(table: Table) -> Iterator[tuple[str, Words]]:
    """Run ids, sorted, each with its rows in the order of replay. Raises `NotPlain`."""
    run, clock, node = (table.column(name) for name in ("run", "clock", "node"))
    if int(clock.max()) >= 1 << 54 or int(node.max()) >= 1 << 7:
        raise NotPlain("a clock or node out of all bounds")
    order = np.argsort(clock << 7 | node, kind="stable")
    codes = np.unique(run)
    for name, code in sorted((table.texts.text(int(code)), int(code)) for code in codes):
        yield name, order if len(codes) == 1 else order[run[order] == code]
