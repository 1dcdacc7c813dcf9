"""What is done with the records of a run, once all are read: what later lines tell, and which servers' begin late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

from viewproof.refinement.joined.order import SLACK, Record


def by_itself(record: Record) -> Record:
    """The record without what others give it."""
    columns = {name: value for name, value in record.columns.items() if name != "next"}
    if record.event == "started":
        columns = {}
    for name in ("again", "dropped"):
        if columns.get(name) == 0:
            del columns[name]
    return replace(record, columns=columns)


def with_duplicates(records: list[Record]) -> list[Record]:
    """An entry that a follower drops has a line that says so, right after."""
    last: dict[int, Record] = {}
    for record in records:
        if record.event == "added":
            record.columns["dropped"] = 0
            last[record.node] = record
        elif record.event == "duplicate":
            before = last.pop(record.node, None)
            if before is not None and before.columns["offset"] == record.columns["offset"]:
                before.columns["dropped"] = 1
    return records


def with_restarts(records: list[Record]) -> list[Record]:
    """A process that starts again shows with its first lines what its log and its database came back with."""
    waiting: dict[int, Record] = {}
    begun: set[int] = set()
    found = []
    for record in records:
        node = record.node
        if record.event == "started":
            if node in begun:
                waiting[node] = record
                record.columns = {"head": None, "commit": None}
                found.append(record)
            begun.add(node)
            continue
        start = waiting.pop(node, None) if record.event in ("created", "on_new_term") else None
        if start is not None:
            start.columns = {"head": record.columns["head"], "commit": record.columns.get("commit")}
        found.append(record)
    return found


def with_majorities(records: list[Record], members: int) -> list[Record]:
    """The records; a server is elected once a majority answered."""
    answered: dict[int, set[int]] = defaultdict(set)
    for record in sorted(records, key=lambda r: r.time):
        term = record.columns.get("term") or 0
        if record.event == "on_new_term":
            answered[term].add(record.node)
            record.gives = (*record.gives, ("answered", term, len(answered[term])))
        elif record.event == "elected":
            record.needs = (*record.needs, ("answered", term, members // 2 + 1))
    return records


def with_silence(records: list[Record], members: int) -> list[Record]:
    """The records; a server of which there is no line is not known at all, and one whose lines end while those of
    others go on is not known from there: it died, or its file was cut off.
    """
    if not records:
        return records
    first, end = min(records, key=lambda r: r.time), max(record.time for record in records)
    last = {record.node: record for record in sorted(records, key=lambda r: r.time)}
    found = [
        replace(first, event="unheard", node=node, time=first.time - 1, columns={}, needs=(), gives=(), about=0)
        for node in range(members)
        if node not in last
    ]
    for record in records:
        found.append(record)
        if last.get(record.node) is record and record.node >= 0 and record.time + SLACK < end:
            found.append(replace(record, event="unheard", columns={}, needs=(), gives=()))
    return found


def late(records: Iterable[Record]) -> dict[int, Record]:
    """The first line of each server that was not its first: others print their start and it does not, it is no answer
    to a new term, or what it starts with is not empty.
    """
    first: dict[int, list[Record]] = {}
    for record in records:
        if record.node >= 0 and len(first.setdefault(record.node, [])) < 2:
            first[record.node].append(record)
    starts = any(lines[0].event == "started" for lines in first.values())
    begins = ("started",) if starts else ("on_new_term", "created")
    return {n: lines[0] for n, lines in first.items() if lines[0].event not in begins or any(map(_has_state, lines))}


def _has_state(record: Record) -> bool:
    """Does a server show, as it starts, that it had a log or a term before?"""
    columns = record.columns
    of_log = record.event in ("created", "on_new_term") and bool(columns["head"])
    return of_log or (record.event == "created" and bool(columns["term"]))
