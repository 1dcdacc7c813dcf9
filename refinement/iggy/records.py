"""What is done with the records of a run, once all are read: what later lines tell, what a log lacks, where it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from viewproof.refinement.iggy.names import Moment
from viewproof.refinement.joined.order import SLACK, Record
from viewproof.spec.vsr.profiles import profile_options

PANIC = "panic"
"""The system stopped itself: the run is judged up to it."""
FOREIGN = "deleted"
"""A partition is deleted: another of that name may follow, and the run is judged up to it."""
WHY = {
    PANIC: "the build stopped itself",
    FOREIGN: "the partition is deleted, and what follows of that name is another",
}


def until(record: Record) -> str:
    """Why the run is judged up to this record; "": it is not."""
    return f"{WHY[record.event]}, judged up to there: {record.text[:160]}" if record.event in WHY else ""


def with_floors(records: list[Record]) -> list[Record]:
    """The records; where a replica of a partition took over a commit number without what is below it (it tells so after
    it executed what is above), it is not known from there.
    """
    found: list[Record] = []
    for record in records:
        if record.event != "walked":
            found.append(record)
            continue
        floor, first = record.columns["op"] or 0, len(found)
        own = [n for n, one in enumerate(found) if one.node == record.node and one.event == "committed"]
        while own and (found[own[-1]].columns["op"] or 0) > floor:
            first = own.pop()
        done = (found[own[-1]].columns["op"] or 0) if own else 0
        if done < floor:
            found.insert(first, replace(record, event="lost", columns={}))
    return found


def with_proofs(records: list[Record]) -> list[Record]:
    """The records; of a replica that comes back, the last view in which another counted an acknowledgement of it."""
    acknowledged: dict[int, int] = {}
    for record in records:
        sender, view = record.columns.get("sender"), record.columns.get("view") or 0
        if record.event == "acked" and sender is not None and sender != record.node:
            acknowledged[sender] = max(view, acknowledged.get(sender, 0))
        elif record.event in ("restarted", "probing"):
            record.columns["proved"] = acknowledged.get(record.node)
    return records


def without_sessions(records: list[Record]) -> list[Record]:
    """The records of a log in which clients log out: what its table has then is not judged."""
    for number, record in enumerate(records, 1):
        if record.event == "queued":
            record.columns.update(client=number, request=1, register=0)
        elif record.event == "committed":
            record.columns.update(client=None, request=None)
    return [record for record in records if record.event != "slot"]


def with_ends(records: list[Record]) -> list[Record]:
    """After the last line of a server's process, perhaps killed, it may have done more than it could print; where the
    others' lines go on, its file may have been cut off.
    """
    last: dict[int, Record] = {}
    ends: set[int] = set()
    for record in records:
        if record.event in ("restarted", "probing") and record.node in last:
            ends.add(id(last[record.node]))
        last[record.node] = record
    ends |= {id(record) for record in last.values()}
    end = max((record.time for record in records), default=0.0)
    found = []
    for record in records:
        found.append(record)
        if id(record) in ends and record.event not in WHY:
            found.append(replace(record, event="cut_off", columns={}, text=record.text))
        if last.get(record.node) is record and record.time + SLACK < end:
            found.append(replace(record, event="ended_early", columns={}, text=record.text))
    return found


def with_returns(records: list[Record]) -> list[Record]:
    """The records; an acknowledgement of an op above the head that its sender took over when it came back in that view
    is one that it made since.
    """
    heads: dict[tuple[int, int], list[int]] = defaultdict(list)
    for record in sorted(records, key=lambda r: r.time):
        if record.event == "adopted":
            taken = heads[record.columns["view"] or 0, record.node]
            record.gives = (*record.gives, ("back", record.columns["view"] or 0, record.node, len(taken)))
            taken.append(record.columns["op"] or 0)
    for record in records:
        sender, op = record.columns.get("sender"), record.columns.get("op") or 0
        if record.event == "acked" and sender is not None and sender != record.node:
            view = record.columns["view"] or 0
            below = [at for at, head in enumerate(heads.get((view, sender), ())) if head < op]
            record.needs = (*record.needs, *(("back", view, sender, at) for at in below))
    return records


def quorum_of(replicas: int) -> int:
    """How many acknowledgements commit an op in a cluster of so many."""
    return int(profile_options("iggy", replicas)["quorum_replication"])


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


def with_frames(records: list[Record], frames: Mapping[Moment, Mapping[int, int]]) -> None:
    """Where a log shows do_view_changes on the network, each that was scheduled is sent in its tick. Of the last tick
    the log may not have all.
    """
    last = max((record.time for record in records), default=0.0)
    for record in records if frames else ():
        if record.event == "offered" and record.time < last:
            moment = record.time, record.node, record.columns["view"] or 0
            record.columns["frames"] = max(frames.get(moment, {}).values(), default=0)


def look_ahead(records: list[Record]) -> list[Record]:
    """What later lines of a replica tell of an earlier moment: how far its log and its executions had come."""
    op: dict[int, int | None] = {}
    known: dict[int, int | None] = {}
    next_executed: dict[int, int | None] = {}
    perhaps: dict[int, int | None] = {}
    was: dict[int, int | None] = {}
    was_log: dict[int, int | None] = {}
    counted: dict[tuple[int | None, int | None], int] = defaultdict(int)
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
                op[node] = known[node] = perhaps[node] = was_log[node] = None
                was[node] = c.get("old")
                counted[node, c["view"]] = 0
            case "view_changed":
                was[node], was_log[node] = c["old"], c["log_view"]
                c["op"], c["known"] = op.get(node), known.get(node)
                c["perhaps"] = perhaps.get(node) if c["op"] is None else None
                if c["op"] is None:
                    c["op"] = counted[node, c["old"]] or None
            case "acked":
                counted[c["sender"], c["view"]] = max(c["op"] or 0, counted[c["sender"], c["view"]])
            case "executed" | "committed":
                next_executed[node] = c["op"]
                if record.event == "committed":
                    op[node] = None
            case "restarted" | "probing":
                after = next_executed.get(node)
                c["op"], c["done"] = op.get(node), None if after is None else after - 1
                c["was"], c["was_log"] = was.get(node), was_log.get(node)
                c["acked"] = counted[node, was.get(node)] or None
                op[node] = known[node] = perhaps[node] = next_executed[node] = was[node] = was_log[node] = None
    return records
