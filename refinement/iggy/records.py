"""What is done with the records of a run, once all are read: what later lines tell, what a log lacks, where it ends."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from viewproof.refinement.joined.order import Record
from viewproof.spec.vsr.profiles import profile_options

PANIC = "panic"
"""The system stopped itself: the run is judged up to it."""


def up_to_panic(records: list[Record]) -> tuple[list[Record], list[str]]:
    """The records before the system stopped itself, if it did, and what is missing then."""
    at = next((at for at, record in enumerate(records) if record.event == PANIC), None)
    if at is None:
        return records, []
    stopped = records[at]
    text = f"{stopped.file}:{stopped.line}: the build stopped itself, judged up to there: {stopped.text[:160]}"
    return records[:at], [text]


def without_sessions(records: list[Record]) -> list[Record]:
    """The records of a log in which clients log out: what its table has then is not judged."""
    for number, record in enumerate(records, 1):
        if record.event == "queued":
            record.columns.update(client=number, request=1, register=0)
        elif record.event == "committed":
            record.columns.update(client=None, request=None)
    return [record for record in records if record.event != "slot"]


def with_ends(records: list[Record]) -> list[Record]:
    """After the last line of a server's process, perhaps killed, it may have done more than it could print."""
    last: dict[int, Record] = {}
    ends: set[int] = set()
    for record in records:
        if record.event in ("restarted", "probing") and record.node in last:
            ends.add(id(last[record.node]))
        last[record.node] = record
    ends |= {id(record) for record in last.values()}
    found = []
    for record in records:
        found.append(record)
        if id(record) in ends and record.event != PANIC:
            found.append(replace(record, event="cut_off", columns={}, text=record.text))
    return found


def with_quorums(records: list[Record], replicas: int) -> list[Record]:
    """The records; what a replica does on messages of several others comes after so many of them: it offers its log
    once f others entered the view, and the new primary merges once a quorum but itself offered.
    """
    entered: dict[int, set[int]] = defaultdict(set)
    offered: dict[int, set[int]] = defaultdict(set)
    others = int(profile_options("iggy", max(1, replicas))["quorum_view_change"]) - 1
    for record in sorted(records, key=lambda r: r.time):
        view = record.columns.get("view") or 0
        if record.event == "view_changed":
            entered[view].add(record.node)
            record.gives = (*record.gives, ("entered", view, len(entered[view])))
        elif record.event == "offered":
            record.needs = (*record.needs, ("entered", view, (replicas - 1) // 2 + 1))
            if record.node != view % max(1, replicas):
                offered[view].add(record.node)
                record.gives = (*record.gives, ("offered", view, len(offered[view])))
        elif record.event == "merged" and others:
            record.needs = (*record.needs, ("offered", view, others))
    return records


def alone(record: Record) -> Record:
    """The record without what others give it: counts of lines, what is in a journal, what did not come."""
    gathered = ("lines", "own_line", "journaled", "hole")
    columns = {name: value for name, value in record.columns.items() if name not in gathered}
    for name in [name for name, value in columns.items() if value == 0 and name.startswith(("again", "arrived_"))]:
        del columns[name]
    return replace(record, columns=columns)


def look_ahead(records: list[Record]) -> list[Record]:
    """What later lines of a replica tell of an earlier moment: how far its log and its executions had come."""
    op: dict[int, int | None] = {}
    known: dict[int, int | None] = {}
    next_executed: dict[int, int | None] = {}
    perhaps: dict[int, int | None] = {}
    for record in reversed(records):
        node, c = record.node, record.columns
        match record.event:
            case "offered":
                op[node], known[node] = c["op"], c["known"]
            case "merged":
                perhaps[node] = c["op"]
            case "state":
                op[node], next_executed[node] = c["op"], None if c["commit_min"] is None else c["commit_min"] + 1
            case "adopted" | "elected":
                op[node] = known[node] = perhaps[node] = None
            case "view_changed":
                c["op"], c["known"] = op.get(node), known.get(node)
                c["perhaps"] = perhaps.get(node) if c["op"] is None else None
            case "executed" | "committed":
                next_executed[node] = c["op"]
                if record.event == "committed":
                    op[node] = None
            case "restarted" | "probing":
                after = next_executed.get(node)
                c["op"], c["done"] = op.get(node), None if after is None else after - 1
                op[node] = known[node] = perhaps[node] = next_executed[node] = None
    return records
