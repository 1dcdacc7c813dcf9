"""Lines of Oxia's logs (JSON, debug level) as typed records: shard by shard (`patterns.py` says which line is what).

Terms and offsets count from 1, as in `spec.oxia`: Oxia's -1 is 0. A data server is known by its name where lines are
merged (`node`), else by the address that it binds; the ensemble is that of the coordinator's lines.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass, field
from typing import Any

import msgspec

from viewproof.refinement.joined.order import Record, in_order
from viewproof.refinement.joined.pieces import OneProcess, distinct
from viewproof.refinement.joined.source import (
    Line,
    LoggedRun,
    Malformed,
    Reading,
    judged_up_to,
    lines_of,
    run_of,
    steady,
)
from viewproof.refinement.joined.times import seconds
from viewproof.refinement.oxia.noted import CHANGING, EMPTIED, RECONNECTS, STOPPED, UNTIL, is_known, replaces
from viewproof.refinement.oxia.patterns import TABLE, Fields, got, inside
from viewproof.refinement.oxia.records import (
    FOREIGN,
    by_itself,
    late,
    until,
    with_duplicates,
    with_majorities,
    with_restarts,
    with_silence,
)

SUFFIXES = (".ndjson", ".json", ".log", ".jsonl")
SEARCH_LINES = 50
STARTS = "Starting Oxia dataServer"
DEBUGGED = frozenset({"proposed", "sent", "acked", "added"})
OF_SERVERS = frozenset({"leader-controller", "follower-controller"})
NO_DEBUG = "lines of entries: there are none, as of a log that is not recorded at debug level"
NO_ENSEMBLE = "the ensemble: no line of the coordinator shows it, nor do those of a leader and of servers that start"


@dataclass
class Ensemble:
    """The servers of a shard, numbered, by their names and by their internal addresses."""

    names: dict[str, int]
    addresses: dict[str, int] = field(default_factory=dict)


@dataclass
class Reader:
    """Reads the lines of one group of processes. `terms` is the term of each server as its own lines show it;
    `ensembles` are those of each shard (None: of all), `names` and `addresses` those of the shard that is being read.
    """

    ensembles: dict[str | None, Ensemble] = field(default_factory=dict)
    names: dict[str, int] = field(default_factory=dict)
    addresses: dict[str, int] = field(default_factory=dict)
    terms: dict[int, int] = field(default_factory=dict)
    cursors: dict[tuple[int | None, int | None], int | None] = field(default_factory=dict)
    duplicates: set[tuple[int | None, int | None]] = field(default_factory=set)
    partial: bool = False

    def begin(self, shard: str, printers: Set[str]) -> bool:
        """The lines of a shard begin, which these servers print; is its ensemble known?

        Where no line shows that, it is the one of all other shards.
        """
        others = {frozenset(one.names): one for one in self.ensembles.values()}
        of = self.ensembles.get(shard)
        if of is None and len(others) == 1:
            of = next((one for names, one in others.items() if printers <= names or None in self.ensembles), None)
        if of is None:
            return False
        self.names, self.addresses = of.names, of.addresses
        self.terms.clear()
        self.cursors.clear()
        self.duplicates.clear()
        return True

    def note(self, component: str, message: str, node: int, fields: Fields) -> None:
        """What a line says of the lines after it: a stream begins anew, or an entry was dropped."""
        if component == "follower-cursor" and message in RECONNECTS:
            whom = self.addresses.get(str(fields.get("follower")), -1)
            self.cursors = {key: last for key, last in self.cursors.items() if key[1] != whom}
        if message == "Ignoring duplicated entry" and node >= 0:
            self.duplicates.add((self.terms.get(node), node))

    def server(self, fields: Fields, name: str) -> int:
        """The server that a field names."""
        inner = inside(fields, name)
        known = self.names.get(str(inner.get("name", inner.get("internal"))))
        if known is None:
            raise Malformed(name, f"a member of the ensemble {', '.join(self.names)}", str(inner)[:80])
        return known

    def address(self, fields: Fields, name: str) -> int:
        """The server whose internal address a field has."""
        known = self.addresses.get(str(fields.get(name)))
        if known is None:
            raise Malformed(name, f"the internal address of a member: {', '.join(self.addresses)}", got(fields, name))
        return known

    def meet(self, shard: str | None, members: Any) -> None:
        """The ensemble of a shard (None: of all), where a line shows it first; later ones show other addresses."""
        if not isinstance(members, list) or not members:
            return
        if all(isinstance(m, dict) and isinstance(m.get("internal"), str) for m in members):
            at = {str(m.get("name", m["internal"])): m["internal"] for m in members}
            of = self.ensembles.setdefault(shard, Ensemble({name: number for number, name in enumerate(at)}))
            for name in at.keys() & of.names.keys():
                of.addresses.setdefault(at[name], of.names[name])


Decoded = tuple[Line, dict[str, Any]]


def read(files: tuple[str, ...], partial: bool = False) -> Reading:
    """The runs of the processes whose files these are: one for each shard of each namespace (`adapter.Joined`)."""
    reading = Reading()
    files = distinct(files, reading)
    decoded = [(file, list(_decoded(file, reading))) for file in files]
    reader = Reader(partial=partial)
    for _, part in decoded:
        for _, f in part:
            reader.meet(_shard(f), f.get("new-ensemble") or f.get("ensemble"))
            shard = f.get("shard-metadata")
            reader.meet(_shard(f), shard.get("ensemble") if isinstance(shard, dict) else None)
    if not reader.ensembles:
        _from_starts(reader, decoded)
    watched = [one for file, part in decoded for one in _watched(file, part)]
    mixed = [alone.mixed for alone in watched if alone.mixed]
    known = {file: name for file, part in decoded if (name := _process(reader, part))}
    siblings = {_stem(file): name for file, name in known.items()}
    whose = {file: known.get(file) or siblings.get(_stem(file)) or _stem(file)[1] for file, _ in decoded}
    decoded.sort(key=lambda part: _time(part[1][0][1]) if part[1] else 0.0)
    rows = [(whose[file], line, f) for file, part in decoded for line, f in part]
    members = {name for of in reader.ensembles.values() for name in of.names}
    if not members <= {str(f.get("node", own)) for own, _, f in rows}:
        mixed += [alone.twice for alone in watched if alone.twice]
    shards = sorted({_shard(f) or "" for _, _, f in rows if f.get("component") in CHANGING and "shard" in f})
    for name in shards:
        printers = {
            str(f.get("node", own)) for own, _, f in rows if _shard(f) == name and f.get("component") in OF_SERVERS
        }
        if mixed:
            reading.runs.append(LoggedRun(run_of(files, name if len(shards) > 1 else ""), {}, [], tuple(mixed)))
        elif reader.begin(name, printers):
            reading.runs.append(_at_debug_level(_run(reader, name, rows, reading, files, alone=len(shards) == 1)))
        else:
            reading.runs.append(LoggedRun(run_of(files, name if len(shards) > 1 else ""), {}, [], (NO_ENSEMBLE,)))
    return reading


def _decoded(file: str, reading: Reading) -> Iterator[Decoded]:
    stopped = False
    for line in lines_of(file, reading):
        if not line.text.strip():
            continue
        try:
            fields = msgspec.json.decode(line.text)
        except (msgspec.DecodeError, UnicodeError) as error:
            if line.text.startswith(STOPPED) and not stopped:
                stopped = True
                reading.missing.append(f"{line.file}:{line.number}: a server stopped itself: {line.text[:160]}")
            if stopped:
                continue
            reading.problems.append(line.problem(Malformed("", "a line of JSON", str(error)[:80])))
            continue
        if not isinstance(fields, dict):
            reading.problems.append(line.problem(Malformed("", "an object", line.text[:80])))
            continue
        try:
            _time(fields)
        except Malformed as error:
            reading.problems.append(line.problem(error))
            continue
        stopped = False
        yield line, fields


def _time(fields: Fields) -> float:
    found = seconds(str(fields.get("time")))
    if found is None:
        raise Malformed("time", "a time as 2026-11-28T11:42:02.17Z", got(fields, "time"))
    return found


def _message(fields: Fields) -> str:
    return str(fields.get("message") or fields.get("msg") or "")


def _shard(fields: Fields) -> str | None:
    """The shard that a line is about; None: it does not say."""
    request = fields.get("request")
    of = fields if "shard" in fields or not isinstance(request, dict) else request
    return f"{of.get('namespace', 'default')}/{of['shard']}" if "shard" in of else None


def _bound(fields: Fields) -> str:
    """The internal address that a starting data server binds."""
    options: Any = fields.get("options")
    for name in ("server", "internal"):
        options = options.get(name) if isinstance(options, dict) else None
    return str(options.get("bindAddress")) if isinstance(options, dict) else ""


def _from_starts(reader: Reader, decoded: Iterable[tuple[str, list[Decoded]]]) -> None:
    """Without a coordinator's file: the servers that start, by the addresses that they bind, and a leader's followers.

    These are the ensemble only if they are as many as a leader was told that it has.
    """
    found: dict[str, str] = {}
    followers: set[str] = set()
    factor = None
    for file, rows in decoded:
        for _, f in rows:
            if _message(f) == STARTS and _bound(f):
                found.setdefault(_bound(f), str(f.get("node", file)))
            request = f.get("request")
            if isinstance(request, dict) and isinstance(request.get("followerMaps"), dict):
                factor = request.get("replicationFactor", factor)
                followers |= set(request["followerMaps"])
            if f.get("component") == "leader-controller" and isinstance(f.get("follower"), str):
                followers.add(f["follower"])
    known = {address: address for address in followers} | found
    if len(known) == factor:
        reader.meet(None, [{"name": name, "internal": address} for address, name in sorted(known.items())])


def _watched(file: str, rows: Iterable[Decoded]) -> list[OneProcess]:
    """What lines that name nobody say of the process that prints them: the address that it binds, whether it leads a
    shard, what it appends; of lines that name somebody, the times.
    """
    alone, named = OneProcess(file), dict[str, OneProcess]()
    for line, f in rows:
        if "node" in f:
            node = str(f["node"])
            named.setdefault(node, OneProcess(file, node)).sees(line.number, _time(f), line.text)
            continue
        message, shard = _message(f), _shard(f)
        alone.sees(line.number, _time(f), line.text, *(("address", _bound(f)) if message == STARTS else ()))
        pattern = TABLE.get((str(f.get("component", "")), message))
        if message == STARTS:
            alone.begins()
        elif pattern is not None and pattern.event in ("on_new_term", "created"):
            alone.begins(shard)
        elif pattern is not None and pattern.event in ("proposed", "added"):
            alone.leads(line.number, shard, leads=pattern.event == "proposed")
            alone.does(line.number, shard, f.get("offset"))
        elif pattern is not None and pattern.event == "duplicate":
            alone.done[shard].discard(f.get("offset"))
    return [alone, *named.values()]


def _stem(file: str) -> tuple[str, str]:
    """The directory of a file, and its name up to the first dot: pieces of a rotated log have the same."""
    folder, _, name = file.rpartition("/")
    return folder, name.split(".")[0]


def _process(reader: Reader, rows: Iterable[Decoded]) -> str:
    """Who printed the lines of a file, where they show it: the name of a server, or `coordinator`; else ""."""
    names = {
        address: name
        for of in reader.ensembles.values()
        for name, number in of.names.items()
        for address, at in of.addresses.items()
        if at == number
    }
    for _, f in rows:
        if _message(f) == STARTS and _bound(f) in names:
            return names[_bound(f)]
        if str(f.get("component", "")).startswith(("shard-controller", "coordinator")):
            return "coordinator"
    return ""


def _run(
    reader: Reader,
    shard: str,
    rows: list[tuple[str, Line, dict[str, Any]]],
    reading: Reading,
    files: tuple[str, ...],
    *,
    alone: bool,
) -> LoggedRun:
    run = LoggedRun(run_of(files, "" if alone else shard), {"members": len(reader.names)}, [])
    seen: set[int] = set()
    coordinator, nameless = False, set[str]()
    for process, line, f in rows:
        run.lines += 1
        component, message = str(f.get("component", "")), _message(f)
        node = reader.names.get(str(f.get("node", process)), -1)
        coordinator = coordinator or component == "shard-controller"
        if node >= 0:
            seen.add(node)
        if message == STARTS and node >= 0:
            run.records.append(Record("started", node, line.file, line.number, _time(f), {}, line.text[:200]))
            continue
        if _shard(f) not in (shard, None):
            continue
        pattern = TABLE.get((component, message))
        reader.note(component, message, node, f)
        if pattern is None:
            if component in CHANGING:
                _noted(reader, run, component, message, node, line, f)
            continue
        if pattern.by_server and node < 0 and "node" not in f:
            nameless.add(line.file)
            continue
        try:
            if pattern.by_server and node < 0:
                raise Malformed(
                    "node", f"a member of the ensemble {', '.join(reader.names)}", str(f.get("node", process))
                )
            columns = pattern.columns(reader, f)
        except Malformed as error:
            reading.problems.append(line.problem(error))
            continue
        node = node if pattern.by_server else -1
        gives, needs = pattern.gives(reader, node, columns), pattern.needs(reader, node, columns)
        text = line.text[:300]
        about = columns.pop("leader", None) or 0
        run.records.append(
            Record(pattern.event, node, line.file, line.number, _time(f), columns, text, needs, gives, about)
        )
    if not coordinator:
        run.missing = ("no line of the coordinator is in the input",)
    _in_order(reader, run, rows, seen, nameless)
    return run


def _in_order(
    reader: Reader, run: LoggedRun, rows: list[tuple[str, Line, dict[str, Any]]], seen: set[int], nameless: set[str]
) -> None:
    """Put the records in order, with what later lines tell, up to where the run is judged; say what is missing."""
    begins_late = late(run.records)
    run.late_nodes = frozenset(begins_late)
    members = len(reader.names)
    records = with_majorities(with_silence(run.records, members, _own_ends(reader, rows)), members)
    ordered = in_order(with_duplicates(with_restarts(steady(records))))
    run.records, ended = judged_up_to(list(ordered), until)
    if reader.partial:
        run.records = [by_itself(record) for record in run.records]
    silent = tuple(f"no line of {name} is in the input" for name, at in reader.names.items() if at not in seen)
    begun = tuple(f"{at.file}:{at.line}: the lines of {[*reader.names][n]} begin late" for n, at in begins_late.items())
    whose = (f"whose lines are in {file}: no line of it says which server printed them" for file in sorted(nameless))
    run.missing = (*ended, *whose, *silent, *begun, *run.missing)


def _noted(reader: Reader, run: LoggedRun, component: str, message: str, node: int, line: Line, fields: Fields) -> None:
    """A line that is no step: what a server has is not shown any more, or the run is judged up to it."""

    def add(event: str, whose: int, text: str, about: int = 0) -> None:
        run.records.append(Record(event, whose, line.file, line.number, _time(fields), {}, text, about=about))

    if not is_known(component, message):
        run.unknown.add(f"{component}: {message}", line)
    emptied = reader.addresses.get(str(fields.get("follower"))) if (component, message) == EMPTIED else None
    if emptied is not None:
        add("replaced", -1, line.text[:200], emptied)
    elif replaces(component, message) and node >= 0:
        add("replaced", node, line.text[:200])
    elif (component, message) in UNTIL:
        add(FOREIGN, -1, UNTIL[component, message])


def _at_debug_level(run: LoggedRun) -> LoggedRun:
    """The run, if its lines tell of entries, or there are none; else what is missing."""
    told = {record.event for record in run.records}
    if told & DEBUGGED or not any(record.columns.get("head") for record in run.records):
        return run
    return LoggedRun(run.run_id, {}, [], (*run.missing, NO_DEBUG), lines=run.lines)


def _own_ends(reader: Reader, rows: Iterable[tuple[str, Line, Fields]]) -> dict[int, float]:
    """When the lines of each server end whose file has those of no other."""
    printed: dict[str, set[int]] = defaultdict(set)
    last: dict[int, tuple[str, float]] = {}
    for process, line, f in rows:
        node = reader.names.get(str(f.get("node", process)), -1)
        printed[line.file].add(node)
        last[node] = line.file, _time(f)
    return {node: time for node, (file, time) in last.items() if len(printed[file]) == 1}


def is_merged(lines: Iterable[Line]) -> bool:
    """Do the first lines name the node that printed them? Then they are those of several."""
    return any('"node"' in line.text for line in itertools.islice(lines, SEARCH_LINES))
