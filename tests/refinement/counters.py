"""A system of its own: nodes that count, and follow what they hear; its specification, its log and its adapter.

    3 1 2 heard 0:2 4

is clock 3, node 1, its line 2: it heard 4, said by line 2 of node 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from viewproof.refinement.adapter import Adapter, Record
from viewproof.refinement.events import (
    Column,
    Profile,
    System,
    check,
    configured,
    event,
    havoc,
    observe,
    received,
    step,
    when,
)
from viewproof.spec.lang import Index, Instance, Schema, Spec, SpecError, action, require, up_to


class Node(Index):
    """A node."""


class Count(Index):
    """What it counts."""


@dataclass(frozen=True)
class Config:
    """How many nodes there are."""

    replicas: int


@action
def count_to(state: Any, r: Node, n: Count) -> None:
    """A node counts one further, and tells the others."""
    require(n == state.count[r] + 1)
    state.count[r] = n
    state.told[r] = n


@action
def follow(state: Any, r: Node, q: Node, n: Count) -> None:
    """A node that hears of a larger number goes on from there."""
    require(n <= state.received(r).told[q])
    require(n > state.count[r])
    state.count[r] = n


def spec(cfg: Config) -> Spec:
    """The specification for so many nodes."""
    schema = Schema()
    schema.state("count", (Node,), up_to(Count), doc="how far the node has counted")
    schema.watermark("told", (Node,), up_to(Count), sender=lambda r: r, doc="numbers that the node told")
    return Spec("counters", schema, cfg, (count_to, follow), (), instance=Instance({"Node": cfg.replicas - 1}))


def configure(first: dict[str, Any], faults: frozenset[str]) -> Config:
    """The configuration that a node's first line shows."""
    if first["nodes"] > 9:
        raise SpecError("there are at most 9 nodes")
    return Config(first["nodes"])


@event()
def up(state: Any, e: Any) -> None:
    """A node begins."""
    check(e.seq, 1)
    configured(e.nodes)


@event(sends="number")
def counted(state: Any, e: Any) -> None:
    """A node counted, and told the others."""
    step(count_to, r=e.node, n=e.number)


@event(receives="number")
def heard(state: Any, e: Any) -> None:
    """A node heard of a number."""
    received(state.told[e.m_from], e.number)
    with when(e.number > state.count[e.node]):
        step(follow, r=e.node, q=e.m_from, n=e.number)


@event()
def slept(state: Any, e: Any) -> None:
    """A node wrote nothing for a while; it may have counted."""
    havoc(state.count[e.node], rising=True)


def observed(state: Any, e: Any) -> None:
    """After each line: how far the node has counted."""
    observe(e.count, state.count[e.node])


PROFILE = Profile(configure, spec, Node, configuration=("nodes",), needed=("nodes",), boots=("up",))
SYSTEM = System(
    "counters",
    columns=(
        Column("nodes", "int", False, "how many nodes there are", minimum=1),
        Column("number", "int", False, "the number that the line is about", sort=Count),
        Column("count", "int", False, "how far the node has counted", sort=Count),
        Column("m_from", "int", False, "who told it", sort=Node),
        Column("m_seq", "int", False, "by which line"),
    ),
    events=(up, counted, heard, slept),
    observed=observed,
    profile=PROFILE,
    messages={"number": ("number",)},
)


def records(file: str) -> Iterator[tuple[int, Record | None]]:
    """The lines of a log."""
    for number, line in enumerate(Path(file).read_text().splitlines(), 1):
        clock, node, seq, word, *rest = line.split()
        record: Record = {
            "run": Path(file).stem,
            "node": int(node),
            "seq": int(seq),
            "clock": int(clock),
            "event": word,
        }
        if word == "up":
            record |= {"nodes": int(rest[0]), "count": 0}
        elif word == "counted":
            record |= {"number": int(rest[0]), "count": int(rest[0])}
        elif word == "heard":
            sender, line_of = rest[0].split(":")
            record |= {"m_from": int(sender), "number": int(rest[1]), "count": int(rest[2])}
            record |= {} if line_of == "-" else {"m_seq": int(line_of)}
        elif word == "slept":
            pass
        else:
            yield number, None
            continue
        yield number, record


QUIET = Adapter(
    "quiet counters",
    "logs of nodes that count without a line",
    (".count",),
    records,
    replace(SYSTEM, profile=replace(PROFILE, silent=("count", "told"))),
)
COUNTERS = Adapter("counters", "logs of counting nodes", (".count",), records, SYSTEM)
