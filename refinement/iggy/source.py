"""Lines of Iggy's logs as typed records, group by group (`patterns.py` and `noted.py` say which line is what).

A replica's lines are known by a span or a number in front where they are merged, else by the replica that its own lines
name. Each group (the metadata, each partition) is a run of its own. An entry is named by the view that prepared it: the
checksum of its `PrepareQueued` is its name in all later lines.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from viewproof.refinement.iggy.files import STARTS, first_time, own_replica, watch
from viewproof.refinement.iggy.lines import METADATA, Parsed, parse
from viewproof.refinement.iggy.names import Names
from viewproof.refinement.iggy.noted import DELETED, LOSES, PANICKED, STOPS, is_noted
from viewproof.refinement.iggy.patterns import (
    DEBUGGED,
    HARNESS,
    OTHERS,
    REPLICAS_MAX,
    SIM,
    SIM_NOTED,
    WIRE,
    Columns,
    Make,
    nothing,
)
from viewproof.refinement.iggy.records import (
    FOREIGN,
    PANIC,
    alone,
    look_ahead,
    quorum_of,
    until,
    with_ends,
    with_floors,
    with_frames,
    with_proofs,
    with_quorums,
    with_returns,
    without_sessions,
)
from viewproof.refinement.joined.order import Key, Record, in_order
from viewproof.refinement.joined.pieces import OFTEN, OneProcess, distinct
from viewproof.refinement.joined.source import (
    Line,
    LoggedRun,
    Malformed,
    Reading,
    Unknown,
    judged_up_to,
    lines_of,
    run_of,
    steady,
)

SUFFIXES = (".log", ".log.zst", ".log.gz", ".txt")
SLOTS = 8192
"""Slots of the client table, where no line says otherwise."""
TICKS = 0.0
"""How long a line of a simulator waits for another: its lines are in the order of what happens."""


@dataclass
class Group:
    """What is being read of one group."""

    names: Names = field(default_factory=Names)
    records: list[Record] = field(default_factory=list)
    unknown: Unknown = field(default_factory=Unknown)


@dataclass
class Reader:
    """Reads the files of one cluster."""

    partial: bool = False
    groups: dict[int, Group] = field(default_factory=dict)
    replicas: int = 0
    slots: int = SLOTS
    wire: bool = False
    ticks: bool = False
    ended: bool = False
    lines: int = 0
    seen: set[int] = field(default_factory=set)
    begun: set[int] = field(default_factory=set)
    starting: set[int] = field(default_factory=set)
    from_start: set[int] = field(default_factory=set)
    waiting: dict[tuple[int, str], list[tuple[str, Make, Parsed, Line]]] = field(default_factory=dict)
    replayed: dict[int, int] = field(default_factory=dict)
    partitions: dict[tuple[str, ...], int] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    unjudged: list[str] = field(default_factory=list)
    size_told: bool = False

    def knows_size(self) -> bool:
        """Is it known of how many replicas the cluster is? Where no line says so: all of them have lines; or each is
        named, and the quorum that is counted is that of so many.
        """
        if self.size_told:
            return True
        acked = [r.columns for group in self.groups.values() for r in group.records if r.event == "acked"]
        senders, quorums = Counter(c["sender"] for c in acked), {c["quorum"] for c in acked}
        named = self.seen | {n for n, count in senders.items() if n is not None and count >= OFTEN}
        self.replicas = min(max(self.replicas, *(n + 1 for n in named), 1), REPLICAS_MAX)
        alone, usual = quorums == {1}, quorums <= {quorum_of(self.replicas)}
        whole = len(self.seen) == self.replicas > 1
        return whole or (len(named) == self.replicas and (alone if self.replicas == 1 else usual and self.replicas > 2))

    def group(self, number: int) -> Group:
        """The group of that number."""
        return self.groups.setdefault(number, Group(Names(killed=self.partial)))

    def add(self, group: int, event: str, node: int, p: Parsed, line: Line, columns: Columns) -> None:
        """A record of a group."""
        if node >= 0:
            self.seen.add(node)
            self.replicas = max(self.replicas, node + 1)
        needs, gives = _messages(event, node, columns)
        self.group(group).records.append(
            Record(event, node, line.file, line.number, p.time, columns, line.text[:400], needs, gives)
        )


def _messages(event: str, node: int, c: Columns) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """What a record uses of others, and gives them. A commit number that a line shows was made by then."""
    told = (("commit", c["commit"]),) if c.get("commit") else ()
    match event:
        case "queued":
            return (), (("queued", c["op"]),)
        case "gapped":
            return ((("queued", c["op"]),) if c["op"] else ()), ()
        case "acked":
            needs = (("in", c["view"], c["sender"]),) if c["view"] and c["sender"] != node else ()
            return needs, ((("commit", c["op"]),) if c["reached"] else ())
        case "executed":
            return (("commit", c["op"]),), ()
        case "lagging":
            return ((("commit", c["commit_max"]),) if c["commit_max"] else ()), ()
        case "view_changed":
            return told, ()
        case "elected":
            return (), (("started", c["view"]), ("in", c["view"], node))
        case "adopted":
            return (*((("started", c["view"]),) if c["view"] else ()), *told), (("in", c["view"], node),)
    return (), ()


def read(files: tuple[str, ...], partial: bool = False) -> Reading:
    """The runs of the cluster whose files these are: one for each group (`adapter.Joined`)."""
    reading, reader = Reading(), Reader(partial=partial)
    files = distinct(files, reading)
    for file in sorted(files, key=first_time):
        own, alone, named = own_replica(file), OneProcess(file), dict[int, OneProcess]()
        for line in lines_of(file, reading):
            p = parse(line.text)
            if p is None:
                if PANICKED in line.text:
                    reader.stopped.append(f"{line.file}:{line.number}: a server stopped itself: {line.text[:160]}")
                continue
            reader.lines += 1
            if p.own is not None:
                named.setdefault(p.own, OneProcess(file, f"replica {p.own}")).sees(line.number, p.time, line.text)
            elif not p.harness:
                watch(alone, line, p)
            try:
                _take(reader, p, line, own)
            except Malformed as error:
                reading.problems.append(line.problem(error))
        reader.mixed += [one.mixed for one in (alone, *named.values()) if one.mixed]
        reader.twice += [alone.twice] * bool(alone.twice)
    if not reader.knows_size():
        reader.unjudged.append("how many replicas the cluster has: no line says it, and not all of them have lines")
    if len(reader.seen) < reader.replicas:
        reader.mixed += reader.twice
    for number in sorted(reader.groups):
        reading.runs.append(_run(reader, number, files))
    return reading


def _run(reader: Reader, number: int, files: tuple[str, ...]) -> LoggedRun:
    group = reader.groups[number]
    metadata = number == METADATA
    name = run_of(files, "" if metadata else f"partition:{number}")
    judged = metadata and not group.names.logs_out
    configuration = {
        "replicas": reader.replicas, "slots": reader.slots, "metadata": int(judged), "wire": int(reader.wire),
    }  # fmt: skip
    records = without_sessions(group.records) if metadata and not judged else group.records
    records = steady(records if reader.ticks else with_returns(with_quorums(records, reader.replicas)))
    records = with_floors(list(in_order(records, TICKS)) if reader.ticks else with_ends(list(in_order(records))))
    records = [alone(record) for record in records] if reader.partial else with_proofs(look_ahead(records))
    with_frames(records, group.names.frames)
    records, missing = judged_up_to(records, until)
    missing += reader.stopped
    if group.names.begins > 1:
        missing.append(f"the log begins late, at op {group.names.begins}")
    else:
        missing += [f"no line of replica {n} is in the input" for n in range(reader.replicas) if n not in reader.seen]
    late = {} if reader.wire else _late(group.records, reader.from_start)
    missing += [f"{at.file}:{at.line}: the lines of replica {n} begin late" for n, at in late.items()]
    if reader.wire and not reader.ended:
        missing.append("the end of the run: the log is cut off before the simulator says that it is done")
    if group.names.logs_out:
        missing.append("the client table: clients log out, which is not judged")
    told = {record.event for record in group.records}
    if not told & DEBUGGED and any(r.columns.get("op") for r in group.records if r.event in ("executed", "adopted")):
        missing.append("lines of iggy.sim: there are none, as of a log that is not recorded at debug level")
        configuration, records = {}, []
    if unjudged := reader.mixed or reader.unjudged:
        missing, configuration, records = unjudged, {}, []
    run = LoggedRun(name, configuration, records, tuple(missing), group.names.begins > 1)
    run.late_nodes = frozenset(late)
    run.unknown = group.unknown
    run.lines = reader.lines
    return run


def _late(records: list[Record], from_start: set[int]) -> dict[int, Record]:
    """The first line of each replica that was not its first: others print their starts and it does not, or what it
    executes first is a later op.
    """
    first: dict[int, Record] = {}
    for record in records:
        if record.node >= 0:
            first.setdefault(record.node, record)
    return {
        node: record
        for node, record in first.items()
        if node not in from_start and (from_start or (record.event == "executed" and record.columns["op"] != 1))
    }


def _take(reader: Reader, p: Parsed, line: Line, own: int | None) -> None:
    reader.ticks = reader.ticks or (float(p.time).is_integer() and p.time < 1e8)
    target = p.target
    if target == "harness":
        _harness(reader, p, line)
    elif target == "wire":
        _wire(reader, p, line)
    elif target == "iggy.sim":
        _sim(reader, p, line)
    elif target == STARTS:
        node = p.own if p.own is not None else own
        if node is not None and node not in reader.seen:
            reader.from_start.add(node)
    elif "replica mesh complete" in p.text and p.fields.get("expected", "").isdecimal():
        reader.replicas, reader.size_told = max(reader.replicas, p.number("expected") + 1), True
    elif "server running; waiting" in p.text or "recovery replayed op" in p.text:
        _started(reader, p, own)
    elif (target, p.words) == DELETED:
        number = reader.partitions.get(_partition(p))
        if number is not None:
            reader.add(number, FOREIGN, -1, p, line, {})
    else:
        _by_text(reader, p, line, own)


def _started(reader: Reader, p: Parsed, own: int | None) -> None:
    """A process is starting; what it replays it had executed."""
    node = p.own if p.own is not None else own
    if node is None:
        return
    reader.starting.add(node)
    if "op" in p.fields:
        reader.replayed[node] = p.number("op")
    if node in reader.seen:
        for group in reader.groups.values():
            group.names.killed = True


def _by_text(reader: Reader, p: Parsed, line: Line, own: int | None) -> None:
    """A line that is known by its target and how its text begins, or a problem that is not known at all."""
    for begins, event, make in OTHERS.get(p.target, ()):
        if p.text.startswith(begins):
            _other(reader, event, make, p, line, own)
            return
    if p.text.startswith(LOSES.get(p.target, "\n")):
        _other(reader, "lost", nothing, p, line, own)
    elif p.target == STOPS:
        reader.stopped.append(f"{line.file}:{line.number}: a server stopped itself: {p.text[:160]}")
    elif p.level in ("WARN", "ERROR") and not is_noted(p):
        reader.group(p.known("namespace_raw") or METADATA).unknown.add(f"{p.target}: {p.words[:80]}", line)


def _partition(p: Parsed) -> tuple[str, ...]:
    """The partition that a line names."""
    return tuple(p.fields.get(name, "") for name in ("stream_id", "topic_id", "partition_id"))


def _sim(reader: Reader, p: Parsed, line: Line) -> None:
    kind = p.word("sim_event")
    if kind == "ControlMessageScheduled":
        kind = p.word("action")
    node, number = p.number("replica_id"), p.number("namespace_raw")
    if number != METADATA:
        reader.partitions[_partition(p)] = number
    for event, make, earlier, earlier_line in reader.waiting.pop((node, p.thread), ()):
        reader.add(number, event, node, earlier, earlier_line, make(reader.group(number).names, earlier))
    reader.starting.discard(node)
    if kind in SIM:
        event, make = SIM[kind]
        reader.add(number, event, node, p, line, make(reader.group(number).names, p))
    elif kind not in SIM_NOTED:
        reader.group(number).unknown.add(f"iggy.sim {kind}", line)


def _other(reader: Reader, event: str, make: Make, p: Parsed, line: Line, own: int | None) -> None:
    named = p.known("replica") if event != "repaired" else None
    node = p.own if p.own is not None else named if named is not None else p.known("replica_id")
    node = own if node is None else node
    if node is None:
        reader.group(METADATA).unknown.add(f"{p.target}: {p.words} (no replica named)", line)
        return
    if event in ("adopted", "merged") and "namespace_raw" not in p.fields:
        reader.waiting.setdefault((node, p.thread), []).append((event, make, p, line))
        return
    number = p.known("namespace_raw") or METADATA
    if event == "probing":
        back = node in reader.starting
        reader.starting.discard(node)
        last = reader.group(number).records[-1:]
        if last and last[0].event == "restarted" and last[0].node == node:
            return
        event = "restarted" if back and node in reader.seen else "probing"
        replayed = reader.replayed.pop(node, None)
        if back and node not in reader.seen:
            return
        reader.add(number, event, node, p, line, make(reader.group(number).names, p) | {"replayed": replayed})
        return
    reader.add(number, event, node, p, line, make(reader.group(number).names, p))


def _harness(reader: Reader, p: Parsed, line: Line) -> None:
    kind = p.text.split(" ", 1)[0]
    if kind in ("end", "panic"):
        reader.ended = True
    if kind == "start" and "replicas" in p.fields:
        reader.replicas, reader.wire, reader.size_told = p.number("replicas"), True, True
        reader.slots = p.known("client_slots") or SLOTS
    elif kind == "kill":
        for known in reader.groups.values():
            known.names.killed = True
    elif kind == "panic":
        for number in list(reader.groups) or [METADATA]:
            reader.add(number, PANIC, -1, p, line, {})
    elif kind == "table":
        names = reader.group(METADATA).names
        for client, epoch, watermark in p.slots():
            columns: Columns = {
                "commit_min": p.number("commit_min"), "client": names.client(client), "epoch": epoch, "mark": watermark,
            }  # fmt: skip
            reader.add(METADATA, "slot", p.number("replica"), p, line, columns)
    elif kind == "journal_gone":
        reader.group(METADATA).names.journals.pop((p.number("replica"), p.number("op")), None)
    elif kind in HARNESS:
        event, make = HARNESS[kind]
        group = p.fields.get("group", "metadata")
        numbers = [METADATA] if group == "metadata" else [int(group)]
        if kind == "restart":
            numbers = sorted({METADATA, *reader.groups})
        for number in numbers:
            reader.add(number, event, p.number("replica"), p, line, make(reader.group(number).names, p))


def _wire(reader: Reader, p: Parsed, line: Line) -> None:
    reader.wire = True
    event = WIRE.get(p.fields.get("command", ""))
    to, sender = p.word("to"), p.word("from")
    if event is None or not (_is_replica(to) and _is_replica(sender)):
        return
    node, other, number = int(to[1:]), int(sender[1:]), p.number("group")
    names = reader.group(number).names
    columns: Columns = {"view": p.number("view"), "sender": other}
    if event:
        if p.text.startswith("recv"):
            reader.add(number, event, node, p, line, columns)
    elif p.text.startswith("recv"):
        names.offers.add((node, p.number("view"), other))
    elif names.frame((p.time, other, p.number("view")), node) and not reader.partial:
        reader.add(number, "unscheduled", other, p, line, columns)


def _is_replica(name: str) -> bool:
    return name.startswith("r") and name[1:].isdecimal()
