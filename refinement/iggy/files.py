"""What a log file is: of one process or of several, of which replica, and when it begins."""

from __future__ import annotations

import itertools

from viewproof.refinement.iggy.lines import METADATA, Parsed, parse
from viewproof.refinement.joined.pieces import OneProcess
from viewproof.refinement.joined.source import Line, lines_of

SEARCH_LINES = 4000
"""Lines of a file that are looked at."""
STARTS = "iggy_server"
"""A process prints this first, before anything of a group."""


def first_time(file: str) -> float:
    """The time of its first line."""
    for line in lines_of(file):
        p = parse(line.text)
        if p is not None:
            return p.time
    return 0.0


def own_replica(file: str) -> int | None:
    """The replica that printed a file of one process, by its own lines; None for one of several."""
    for line in lines_of(file):
        p = parse(line.text)
        if p is None:
            continue
        if _is_of_several(p):
            return None
        if p.target.startswith("iggy.") and p.fields.get("replica_id", "").isdecimal():
            return p.number("replica_id")
        if p.target == "consensus::impls" and p.fields.get("replica", "").isdecimal():
            return p.number("replica")
    return None


def watch(alone: OneProcess, line: Line, p: Parsed) -> None:
    """What a line says of the process that prints it: the replica, or where it listens; whether it is
    primary; what it executed.
    """
    kind, name = "", ""
    if p.target == "iggy.sim":
        kind, name = "replica", p.fields.get("replica_id", "")
    elif p.target == "message_bus::replica::listener" and "accepting on" in p.text:
        kind, name = "address", p.text.rpartition(" ")[2]
    number = line.number
    alone.sees(number, p.time, line.text, kind, name)
    group, op = p.fields.get("namespace_raw", str(METADATA)), p.fields.get("op")
    told = p.fields.get("sim_event", "").strip('"')
    if p.target == STARTS:
        alone.begins()
    elif p.target == "metadata::impls::metadata" and p.text.startswith("commit_journal: committed"):
        alone.leads(number, group, leads=False)
        alone.does(number, group, op)
    elif told in ("PrepareQueued", "PrepareAcked", "OperationCommitted"):
        alone.leads(number, group, leads=True)
        if told == "OperationCommitted":
            alone.does(number, group, op)
    elif told in ("ViewChangeStarted", "PrimaryElected") or p.text.startswith("adopting view"):
        alone.begins(group)


def is_merged(file: str) -> bool:
    """Is a file that of a simulator, or merged of several processes?"""
    replicas: set[str] = set()
    for line in itertools.islice(lines_of(file), SEARCH_LINES):
        p = parse(line.text)
        if p is None:
            continue
        if _is_of_several(p):
            return True
        if p.target == "iggy.sim":
            replicas.add(p.fields.get("replica_id", ""))
    return len(replicas) > 1


def _is_of_several(p: Parsed) -> bool:
    """Does a line name who printed it, or is it one of a simulator's?"""
    return p.own is not None or p.harness or p.target in ("harness", "wire")
