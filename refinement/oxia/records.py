"""What is done with the records of a run, once all are read: what later lines tell, and which servers' begin late."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from viewproof.refinement.joined.order import SLACK, Key, Record

ENDED = "unheard"
"""Event: there are no lines of a server, or no more."""
BY_LEADERS = frozenset({"become_leader", "truncated", "attached", "started_leading", "proposed", "sent", "acked"})
"""Events of which only the leader of their term prints the line."""
FOREIGN = "until"
"""The run is judged up to here; the record's text says why."""


def until(record: Record) -> str:
    """Why the run is judged up to this record; "": it is not."""
    return f"{record.text}, judged up to there" if record.event == FOREIGN else ""


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
    """The records; a server is elected, and hears of it, once a majority answered. Where fewer did, each server that
    did not may have, once its lines have ended.
    """
    answered: dict[int, set[int]] = defaultdict(set)
    elected: set[int] = set()
    in_time = sorted(records, key=lambda r: r.time)
    for record in in_time:
        term = record.columns.get("term") or 0
        if record.event == "on_new_term":
            answered[term].add(record.node)
            record.gives = (*record.gives, ("answered", term, len(answered[term])))
        elif record.event in ("elected", "become_leader"):
            elected.add(term)
            record.needs = (*record.needs, ("answered", term, members // 2 + 1))
    for term in elected:
        ended = (r for r in in_time if r.event == ENDED and r.node not in answered[term])
        for count, record in enumerate(ended, len(answered[term]) + 1):
            record.gives = (*record.gives, ("answered", term, count))
    return records


def with_silence(records: list[Record], members: int, ends: Mapping[int, float]) -> list[Record]:
    """The records; a server of which there is no line is not known at all, and one whose lines end is not known from
    there: it died, or its file was cut off. `ends` says when the files end that one server alone printed.

    Of a server among others in one file it counts that theirs go on for longer than clocks differ, or that they use
    what is beyond all that its lines gave: it gave that after them.
    """
    if not records:
        return records
    first, end = min(records, key=lambda r: r.time), max(record.time for record in records)
    last = {record.node: record for record in records}
    unseen = _not_seen(records, last)
    found = [
        replace(first, event=ENDED, node=node, time=first.time - 1, columns={}, needs=(), gives=(), about=0)
        for node in range(members)
        if node not in last
    ]
    for record in records:
        found.append(record)
        node, time = record.node, max(record.time, ends.get(record.node, 0.0))
        if last[node] is record and node >= 0 and (node in ends or node in unseen or time + SLACK < end):
            found.append(replace(record, event=ENDED, time=time, columns={}, needs=(), gives=tuple(unseen[node])))
    return found


def _not_seen(records: list[Record], last: Mapping[int, Record]) -> dict[int, list[Key]]:
    """What is used of each server, about when its lines end, that none of them gives, nor goes beyond."""
    leaders = {r.columns.get("term"): r.node for r in records if r.event in BY_LEADERS}
    given = {key for record in records for key in record.gives}
    furthest: dict[tuple[Any, ...], tuple[int, ...]] = {}
    for key in given:
        of, at = _along(key)
        furthest[of] = max(at, furthest.get(of, ()))
    found: dict[int, list[Key]] = defaultdict(list)
    for record in records:
        for key in record.needs:
            of, at = _along(key)
            giver = leaders.get(key[1]) if key[0] == "sent" else key[2] if len(key) > 2 else None
            if giver is None or giver not in last or key in given or at <= furthest.get(of, ()):
                continue
            if record.time + SLACK >= last[giver].time:
                found[giver].append(key)
    return found


def _along(key: Key) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """The messages that one server gives in this order, and where in it this one is: by term, by offset."""
    kind, term, *rest = key
    return (kind, *rest[:1]), (term or 0, *rest[1:])


def late(records: Iterable[Record]) -> dict[int, Record]:
    """Of each server whose lines begin late the one that shows it: others print their start and it does not, its first
    is no answer to a new term, or what it starts with is not empty.
    """
    first: dict[int, list[Record]] = {}
    for record in records:
        if record.node >= 0 and len(first.setdefault(record.node, [])) < 2:
            first[record.node].append(record)
    starts = any(lines[0].event == "started" for lines in first.values())
    begins = ("started",) if starts else ("on_new_term", "created")
    shows = {n: [r for r in lines if lines[0].event not in begins or _has_state(r)] for n, lines in first.items()}
    return {n: lines[0] for n, lines in shows.items() if lines}


def _has_state(record: Record) -> bool:
    """Does a server show, as it starts, that it had a log or a term before?"""
    columns = record.columns
    of_log = record.event in ("created", "on_new_term") and bool(columns["head"])
    return of_log or (record.event == "created" and bool(columns["term"]))
