"""The adapter of the toy replica: its lines, and what they stand for (`--adapter tests.refinement.toy.adapter:TOY`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from viewproof.refinement.adapter import Adapter, Record
from viewproof.refinement.events import (
    Column,
    Profile,
    System,
    agrees,
    check,
    configured,
    each,
    event,
    first_clear_of,
    holds,
    named,
    observe,
    observe_agreed,
    observe_name,
    received,
    step,
    when,
)
from viewproof.spec.lang import NONE, between, smallest, some
from viewproof.spec.vsr import Config, unbounded
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.state import Client, Op, Replica, Request

VIEW = 0
"""The toy's leader is fixed: all it does is in one view."""

# --- 1. the record ---------------------------------------------------------------------------------------------------

COLUMNS = (
    Column("nodes", "int", False, "how many nodes there are", minimum=1),
    Column("majority", "int", False, "how many of them decide", minimum=1),
    Column("op", "int", False, "the entry that the line is about", sort=Op),
    Column("hash", "string", False, "its checksum"),
    Column("prev", "string", False, "that of the entry before it"),
    Column("client", "int", False, "who asked for it", sort=Client),
    Column("number", "int", False, "number of the client's request", sort=Request),
    Column("told", "int", False, "commit number of the message", sort=Op),
    Column("answer", "string", False, "what the client is answered"),
    Column("m_from", "int", False, "the node that sent the message", sort=Replica),
    Column("m_seq", "int", False, "by which of its lines", minimum=1),
    Column("top", "int", False, "entries in the node's log", sort=Op),
    Column("head", "string", False, "checksum of the last of them"),
    Column("applied", "int", False, "entries that it has executed", sort=Op),
    Column("known", "int", False, "entries that it knows to be agreed", sort=Op),
    Column("sum", "string", False, "digest of what it has executed"),
)

# --- 2. what each line stands for ------------------------------------------------------------------------------------


def observed(state: Any, e: Any) -> None:
    """After every line: the node's log, and how far it has executed it."""
    r = e.node
    observe(e.top, state.op[r])
    observe_name(e.head, state.entry[r, state.op[r]], state.op[r])
    observe(e.applied, state.commit_min[r])
    observe(e.known, state.commit_max[r])
    observe_agreed(e.sum, state.commit_min[r], rule="I14", distinct=True)


@event()
def up(state: Any, e: Any) -> None:
    """A node begins."""
    check(e.seq, 1)
    configured(e.nodes, e.majority)


@event(sends="entry")
def asked(state: Any, e: Any) -> None:
    """The leader takes a request into its log, and sends the entry."""
    check(e.op, state.op[e.node] + 1)
    step(normal.on_request, r=e.node, c=e.client, s=e.number)
    named(e.hash, state.entry[e.node, e.op], e.op)
    named(e.prev, state.prepare[VIEW, e.op].parent, e.op - 1)


@event(receives="entry")
def took(state: Any, e: Any) -> None:
    """A follower has the entry in its log; not durable yet."""
    received(state.prepare[VIEW, e.op].client, e.client, sent=True)
    received(state.prepare[VIEW, e.op].request, e.number)
    received(state.prepare[VIEW, e.op].parent)
    received(state.commit_sent[VIEW], e.told)
    named(e.hash, some(VIEW), e.op)
    named(e.prev, state.prepare[VIEW, e.op].parent, e.op - 1)
    step(normal.on_prepare, r=e.node, o=e.op)
    with when(e.told > state.commit_max[e.node]):
        step(normal.on_commit, r=e.node, k=e.told)


@event()
def kept(state: Any, e: Any) -> None:
    """Everything up to the entry is durable."""
    first = first_clear_of(state.written, e.node, smallest(e.op, state.op[e.node]))
    with each(between(Op, first, e.op), at_least=1) as o:
        step(normal.append, r=e.node, o=o)


@event(sends="vote")
def voted(state: Any, e: Any) -> None:
    """The entry is acknowledged."""
    ack = state.ack[VIEW, e.node, e.op]
    holds(ack != NONE, "a node votes only for an entry that it has kept", e.op, rule="I3")
    named(e.hash, ack, e.op)


@event(receives="vote")
def counted(state: Any, e: Any) -> None:
    """The leader counts an acknowledgement."""
    ack = state.ack[VIEW, e.m_from, e.op]
    received(ack, sent=True)
    named(e.hash, ack, e.op)


@event()
def agreed(state: Any, e: Any) -> None:
    """The leader has enough votes for the entry."""
    step(normal.commit, r=e.node, o=e.op)


@event(sends="known")
def tells(state: Any, e: Any) -> None:
    """The leader sends how far entries are agreed."""
    check(e.told, state.commit_max[e.node])


@event(receives="known")
def heard(state: Any, e: Any) -> None:
    """A follower learns it."""
    received(state.commit_sent[VIEW], e.told)
    step(normal.on_commit, r=e.node, k=e.told)


@event()
def applied(state: Any, e: Any) -> None:
    """The next entry is executed; the leader answers the client."""
    check(e.op, state.commit_min[e.node] + 1)
    step(normal.execute, r=e.node)
    named(e.hash, state.executed[e.node, e.op], e.op)
    check(e.client, state.prepare[VIEW, e.op].client)
    check(e.number, state.prepare[VIEW, e.op].request)
    agrees(e.answer, e.op, "I8")


# --- 3. the specification that it is judged by -----------------------------------------------------------------------


def configure(first: Mapping[str, Any], faults: frozenset[str]) -> Config:
    """The core of the protocol, for so many nodes."""
    return Config(first["nodes"], first["majority"], first["majority"], faults=faults)


PROFILE = Profile(
    configure,
    unbounded,
    replica=Replica,
    configuration=("nodes", "majority"),
    needed=("nodes", "majority"),
    boots=("up",),
)
SYSTEM = System(
    "toy",
    COLUMNS,
    events=(up, asked, took, kept, voted, counted, agreed, tells, heard, applied),
    observed=observed,
    profile=PROFILE,
    messages={"entry": ("op", "hash", "prev", "client", "number"), "vote": ("op", "hash"), "known": ("told",)},
    rules={
        "I8": "the answer to an entry is the same, whoever gives it and however often",
        "I14": "nodes that executed the same entries have the same digest",
    },
)

# --- 4. the lines ----------------------------------------------------------------------------------------------------


def records(file: str) -> Iterator[tuple[int, Record | None]]:
    """The events of a log, each with its line; None for a line that is none."""
    with open(file) as lines:
        for number, line in enumerate(lines, 1):
            if line.startswith("#"):
                continue
            words = line.split()
            known = len(words) > 3 and words[3] in SYSTEM.docs
            yield number, record(Path(file).stem, words) if known else None


def number(text: str) -> int | str:
    """A number; text that is none stays text, which the audit refuses with its file, line and column."""
    return int(text) if text.isdecimal() else text


def record(run: str, words: list[str]) -> Record:
    """One line as a record: clock, node, its line, what happened, and keys with values."""
    clock, node, seq, what = words[:4]
    shown: Record = {"run": run, "node": number(node.removeprefix("node")), "seq": number(seq), "clock": number(clock)}
    shown["event"] = what
    for key, _, value in (word.partition("=") for word in words[4:]):
        if key == "via":
            shown["m_from"], shown["m_seq"] = map(number, value.partition(":")[::2])
        elif key in SYSTEM.by_name and SYSTEM.by_name[key].kind == "int":
            shown[key] = number(value)
        else:
            shown[key] = "" if value == "-" else value
    return shown


TOY = Adapter("toy", "logs of the toy replica", (".toy",), records, SYSTEM)
