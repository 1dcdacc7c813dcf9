"""What each line of Oxia's logs is: the event that it stands for, and the columns that it shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from viewproof.refinement.joined.source import Malformed

if TYPE_CHECKING:
    from viewproof.refinement.oxia.source import Reader

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A message: the event that it stands for, whether a server prints it (or the coordinator), and its columns."""

    event: str
    columns: Callable[[Reader, Fields], dict[str, int | None]]
    by_server: bool = True
    needs: Callable[[Reader, int, dict[str, Any]], tuple[Any, ...]] = lambda reader, node, c: ()
    gives: Callable[[Reader, int, dict[str, Any]], tuple[Any, ...]] = lambda reader, node, c: ()


def number(fields: Fields, name: str) -> int:
    """A whole number of a line."""
    value = fields.get(name)
    if isinstance(value, str) and value.lstrip("-").isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not -1 <= value < 1 << 62:
        raise Malformed(name, "a whole number from -1", got(fields, name))
    return value


def at(fields: Fields, name: str) -> int:
    """A term or an offset, counted from 1."""
    return number(fields, name) + 1


def inside(fields: Fields, name: str) -> Fields:
    """A field that has fields."""
    value = fields.get(name)
    if not isinstance(value, dict):
        raise Malformed(name, "an object", got(fields, name))
    return value


def entry(fields: Fields, name: str) -> dict[str, int | None]:
    """The entry {term, offset} that a field has."""
    inner = inside(fields, name)
    return {"entry": at(inner, "term"), "head": at(inner, "offset")}


def got(fields: Fields, name: str) -> str:
    return "nothing" if name not in fields else str(fields[name])[:80]


def _initialized(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"term": at(f, "term"), **entry(f, "last-entry")}


def _moved(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"term": at(f, "term"), "leader": reader.server(f, "new-leader")}


def _attached(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"term": at(f, "term"), "follower": reader.address(f, "follower"), **entry(f, "follower-head-entry")}


def _sent(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"term": at(f, "term"), "follower": reader.address(f, "follower"), "offset": at(f, "offset")}


def _in_turn(reader: Reader, f: Fields) -> dict[str, int | None]:
    """A cursor sends entries in order, from where it was attached."""
    columns = _sent(reader, f)
    key = (columns["term"], columns["follower"])
    last = reader.cursors.get(key)
    reader.cursors[key] = columns["offset"]
    return {**columns, "next": None if last is None else last + 1}


def _acked_before(reader: Reader, f: Fields) -> dict[str, int | None]:
    columns = _sent(reader, f)
    key = (columns["term"], columns["follower"])
    again = key in reader.duplicates
    return {**columns, "again": int(again)}


def _added(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"offset": at(f, "offset"), "commit": at(f, "commit-offset")}


def _fields(**names: str) -> Callable[[Reader, Fields], dict[str, int | None]]:
    return lambda reader, f: {column: at(f, name) for column, name in names.items()}


def _of_request(reader: Reader, f: Fields) -> dict[str, int | None]:
    return {"term": at(inside(f, "request"), "term")}


def _sends(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("sent", c["term"], c["follower"], c["offset"]),)


def _appends(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("sent", reader.terms.get(node), node, c["offset"]),)


def _appended(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("added", reader.terms.get(node), node, c["offset"]),)


def _acked(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("added", c["term"], c["follower"], c["offset"]),)


def _fenced(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    reader.terms[node] = c["term"]
    return (("fenced", c["term"], node),)


def _of_fenced(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("fenced", c["term"], c["follower" if "follower" in c else "leader"]),)


def _elected(reader: Reader, node: int, c: dict[str, Any]) -> tuple[Any, ...]:
    return (("elected", c["term"]),)


INITIALIZED = Pattern("on_new_term", _initialized, gives=_fenced)
TABLE: dict[tuple[str, str], Pattern] = {
    ("shard-controller", "Successfully moved ensemble to a new term"): Pattern(
        "elected", _moved, by_server=False, needs=_of_fenced, gives=_elected
    ),
    ("leader-controller", "Leader successfully initialized in new term"): INITIALIZED,
    ("follower-controller", "Follower successfully initialized in new term"): INITIALIZED,
    ("internal-rpc-server", "Received BecomeLeader request"): Pattern("become_leader", _of_request, needs=_elected),
    ("leader-controller", "Truncated follower"): Pattern("truncated", _attached, needs=_of_fenced),
    ("leader-controller", "Added follower"): Pattern("attached", _attached, needs=_of_fenced),
    ("leader-controller", "Applying all pending entries to database"): Pattern(
        "applies_pending", _fields(term="term", commit="commit-offset", head="head-offset")
    ),
    ("leader-controller", "Started leading the shard"): Pattern(
        "started_leading", _fields(term="term", head="head-offset")
    ),
    ("leader-controller", "Appending proposal to WAL"): Pattern("proposed", _fields(term="term", offset="offset")),
    ("follower-cursor", "Sending entries to follower"): Pattern("sent", _in_turn, gives=_sends),
    ("follower-cursor", "Received ack"): Pattern("acked", _acked_before, needs=_acked),
    ("follower-controller", "Add entry"): Pattern("added", _added, needs=_appends, gives=_appended),
    ("follower-controller", "Ignoring duplicated entry"): Pattern("duplicate", _fields(offset="offset")),
    ("follower-controller", "Apply committed entries"): Pattern(
        "applies", _fields(below="min-exclusive", top="max-inclusive", head="head-offset")
    ),
    ("follower-controller", "Reading entry"): Pattern("applied", _fields(offset="offset")),
    ("follower-controller", "Created follower"): Pattern(
        "created", _fields(term="term", head="head-offset", commit="commit-offset")
    ),
}
"""(component, message) → what it stands for."""
