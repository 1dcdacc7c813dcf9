"""Rows of events from matched lines: the family and cluster of a run, and what the fields of its lines mean."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from viewproof.refinement.flat.dictionary import Dictionary
from viewproof.refinement.schema import Row
from viewproof.refinement.text_lines import Segment
from viewproof.refinement.tigerbeetle.headers import COLUMNS as MESSAGE
from viewproof.refinement.tigerbeetle.headers import Form, Headers, Names
from viewproof.refinement.tigerbeetle.parse import FIRST
from viewproof.refinement.tigerbeetle.table import Pattern, Table
from viewproof.spec.engines.replay.compile import code_of

_LETTERS: Final = {"n": "normal", "v": "view_change", "r": "recovering", "h": "recovering_head"}


def _letter(text: str) -> str:
    return _LETTERS.get(text.lower(), text)


NOBODY: Final = -1
"""The node of a line that is none's: a client's."""


@dataclass(frozen=True)
class Family:
    """What one month's logs are: the lines, the headers, the profile that judges them, and its adapter's name."""

    name: str
    profile: str
    adapter: str
    table: Table
    form: Form


@dataclass(frozen=True)
class Cluster:
    """Family and configuration of a run, as its first lines tell; `nodes` counts standbys, too."""

    family: Family
    replicas: int
    quorum_view_change: int
    quorum_replication: int
    nodes: int

    @property
    def shown(self) -> dict[str, int]:
        """The columns that the first row of a run shows of it."""
        names = ("replicas", "quorum_replication", "quorum_view_change", "nodes")
        return {name: getattr(self, name) for name in names}


class Memo(dict[int, Any]):
    """What the texts of one kind of field mean, by their codes as rows have them; each is looked at once."""

    def __init__(self, texts: Dictionary, convert: Callable[[str], Any]) -> None:
        super().__init__()
        self.texts = texts
        self.convert = convert

    def __missing__(self, code: int) -> Any:
        found = self[code] = self.convert(self.texts.text(-1 - code))
        return found


Make = Callable[[list[int]], Row]


class Records:
    """Makes the rows of a run from matched lines; `columns` are those of a row, in order, without file and line."""

    def __init__(self, segment: Segment, cluster: Cluster, columns: tuple[str, ...], texts: Dictionary) -> None:
        self.names = Names()
        self.headers = Headers(cluster.family.form, self.names)
        self.index = {name: place for place, name in enumerate(columns)}
        self.width = len(columns)
        self.begin = self.index[MESSAGE[0]]
        self.segment = segment
        self.cluster = cluster
        self.memos: dict[Any, Memo] = {}
        self.texts = texts

    @cached_property
    def makers(self) -> list[Make]:
        """The functions that make rows, by pattern."""
        return [self._maker(pattern) for pattern in self.cluster.family.table.patterns]

    def fields(self, pattern: Pattern) -> Iterator[tuple[int, int, Any, Callable[[str], Any]]]:
        """The fields of its lines: column (-1: a header), place among what the parser found, kind, and what a text
        of that kind means.
        """
        for place, (name, kind) in enumerate(pattern.fields, FIRST):
            if kind == "m":
                yield -1, place, "m", self.headers.of
            elif kind == "k":
                yield self.index["mark_status"], place, "k", _letter
                yield self.index["mark_leads"], place, "K", lambda text: int(text.isupper())
            else:
                yield self.index[name], place, (name, kind), self._converter(name, kind)

    def _memo(self, key: Any, convert: Callable[[str], Any]) -> Memo:
        return self.memos.setdefault(key, Memo(self.texts, convert))

    def _maker(self, pattern: Pattern) -> Make:
        """The function that makes the row of what the parser found in a line of that pattern; it is written out."""
        fields: list[tuple[int, int, Memo]] = []
        message, headers = 0, None
        for column, place, kind, meaning in self.fields(pattern):
            if column < 0:
                message, headers = place, self._memo(kind, meaning)
            else:
                fields.append((column, place, self._memo(kind, meaning)))
        blank: list[Any] = [None] * (self.width + 2)
        blank[0], blank[1], blank[4], blank[-2] = self.segment.run_id, NOBODY, pattern.event, self.segment.file
        scope: dict[str, Any] = {"blank": blank, "headers": headers}
        lines = ["def make(v):", "    row = blank.copy()", "    row[2] = row[3] = row[-1] = v[1]"]
        for number, (place, at, memo) in enumerate(fields):
            scope[f"m{number}"] = memo
            lines += [f"    x = v[{at}]", f"    row[{place}] = x if x >= 0 else m{number}[x]"]
        if headers is not None:
            lines.append(f"    row[{self.begin}:-2] = headers[v[{message}]]")
        exec(code_of("\n".join((*lines, "    return tuple(row)")), "<lines>"), scope)
        made: Make = scope["make"]
        return made

    def _converter(self, name: str, kind: str) -> Callable[[str], Any]:
        names = self.names
        if name in ("checksum", "parent", "head"):
            checksums = names.checksums
            return (lambda text: checksums.of(str(int(text, 16)))) if kind == "x" else checksums.of
        if name in ("state", "state_before"):
            return names.digests.of
        if kind == "c":
            return {"client": names.clients, "nonce": names.nonces, "id": names.files}[name].of
        if name == "bits":
            return lambda text: int(text, 2) if text.strip("01") == "" else 0
        if name == "from_status":
            return lambda text: text.removeprefix("vsr.replica.Status.")
        return str if kind in "wte" else int

    def panic(self, number: int, text: str) -> Row:
        """The record of a process that stopped itself."""
        row: list[Any] = [None] * (self.width + 2)
        row[0], row[1], row[2], row[3], row[4] = self.segment.run_id, NOBODY, number, number, "panic"
        row[self.index["what"]], row[-2], row[-1] = text, self.segment.file, number
        return tuple(row)

    def first(self, row: Row) -> Row:
        """The first row of a run, with the configuration of the cluster."""
        found = list(row)
        for name, value in self.cluster.shown.items():
            found[self.index[name]] = value
        return tuple(found)
