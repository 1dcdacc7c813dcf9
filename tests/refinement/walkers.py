"""A system whose lines have neither numbers nor clocks: counting nodes (`counters`) that write little of what they do.

    12 1 walked 4

is second 12, node 1: it counted on until it was at 4. A file `*.walk` has the lines of all nodes.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.refinement import counters
from tests.refinement.counters import Count, Node, count_to, follow
from viewproof.refinement.adapter import Adapter, Joined
from viewproof.refinement.events import (
    Column,
    System,
    arrived,
    departs,
    each,
    event,
    forget,
    havoc,
    holds,
    may_step,
    one_of,
    otherwise,
    received,
    settle,
    step,
    when,
)
from viewproof.refinement.joined.order import Record, in_order
from viewproof.refinement.joined.pieces import distinct
from viewproof.refinement.joined.source import LoggedRun, Malformed, Reading, lines_of, steady
from viewproof.spec.lang import NONE, Instance, Schema, Spec, action, as_index, between, optional, require, some

SKIPS = "counters.skips"


@action
def send(state: Any, r: Node) -> None:
    """A node sends how far it is."""
    require(state.letter[r] == NONE)
    state.letter[r] = some(state.count[r])


@action
def skip(state: Any, r: Node, n: Count) -> None:
    """A node passes over numbers."""
    require(n > state.count[r] + 1)
    state.count[r] = n
    state.told[r] = n


def spec(cfg: counters.Config) -> Spec:
    """The specification for so many nodes: they count, follow, and send one letter each."""
    schema = Schema()
    base = counters.spec(cfg)
    for var in base.schema.vars.values():
        schema.vars[var.name] = var
    schema.register("letter", (Node,), optional(Count), sender=lambda r: r, doc="how far the node was when it sent it")
    return Spec(
        "walkers", schema, cfg, (count_to, follow, send, skip), (), instance=Instance({"Node": cfg.replicas - 1})
    )


@event()
def walked(state: Any, e: Any) -> None:
    """A node counted on until it was there; what it told others they may have heard, and follow."""
    with each(between(Count, state.count[e.node] + 1, e.number)) as n:
        step(count_to, r=e.node, n=n)
        with each(between(Node, 0, state.cfg.replicas - 1)) as q, when(q != e.node):
            received(state.told[e.node], n, by=q)
    holds(state.count[e.node] == e.number, "a node does not count back", e.number)


@event()
def moved(state: Any, e: Any) -> None:
    """A node counted one further, or followed another: the line does not say which."""
    r = e.node
    others = [as_index(Node, q) for q in range(state.cfg.replicas)]
    one_of(
        lambda: step(count_to, r=r, n=e.number),
        *(lambda q=q: step(follow, r=r, q=q, n=e.number) for q in others),
    )


@event()
def wrote(state: Any, e: Any) -> None:
    """A node sends a letter, and, the first time, is where the line says."""
    with when(state.letter[e.node] == NONE):
        step(send, r=e.node)
    with otherwise():
        holds(state.letter[e.node] == some(e.number), "a letter that is sent again is as it was", rule="again")


@event()
def got(state: Any, e: Any) -> None:
    """A node has the letter of another."""
    arrived(state.letter[e.whose])
    holds(state.received(e.node).letter[e.whose] == some(e.number), "a letter arrives as it was sent", rule="letter")


@event()
def dozed(state: Any, e: Any) -> None:
    """A node wrote nothing for a while, and counted at most two further."""
    havoc(state.count[e.node], least=state.count[e.node], most=state.count[e.node] + 2)


@event()
def guessed(state: Any, e: Any) -> None:
    """A node may have counted; if it did, it did so twice."""
    r = e.node
    may_step(count_to, r=r, n=state.count[r] + 1)
    with when(state.count[r] == e.number):
        settle(count_to, r=r, n=e.number + 1)


@event()
def replaced(state: Any, e: Any) -> None:
    """Another node comes in the place of this one."""
    forget(e.node, "what the node that came in its place had counted")


@event()
def leapt(state: Any, e: Any) -> None:
    """A node passes over numbers."""
    departs(SKIPS)
    step(skip, r=e.node, n=e.number)


def observed(state: Any, e: Any) -> None:
    """A line shows nothing more."""


COLUMNS = (
    Column("nodes", "int", False, "how many nodes there are", minimum=1),
    Column("number", "int", False, "the number that the line is about", sort=Count),
    Column("whose", "int", False, "whose letter it is", sort=Node),
)
PROFILE = replace(counters.PROFILE, spec=spec, boots=(), to_the_end=True)
SYSTEM = System(
    "walkers",
    COLUMNS,
    events=(walked, moved, wrote, got, dozed, guessed, replaced, leapt),
    observed=observed,
    profile=PROFILE,
    histories=True,
    departures={SKIPS: "a node passes over numbers"},
)


def read(files: tuple[str, ...], partial: bool) -> Reading:
    """The run that the files are; what is heard or got waits for what tells it."""
    reading = Reading()
    files = distinct(files, reading)
    run = LoggedRun(files[0], {"nodes": 2}, [])
    for file in files:
        for line in lines_of(file, reading):
            time, node, word, *rest = line.text.split()
            run.lines += 1
            if word not in SYSTEM.docs:
                run.unknown.add(word, line)
                continue
            columns = {name: int(value) for name, value in zip(("number", "whose"), rest, strict=False)}
            letter = ("letter", columns.get("whose", int(node)))
            needs, gives = ((letter,) if word == "got" else ()), ((letter,) if word == "wrote" else ())
            if len(rest) > 2:
                reading.problems.append(line.problem(Malformed("", "at most two numbers", line.text)))
            run.records.append(
                Record(word, int(node), file, line.number, float(time), dict(columns), line.text, needs, gives)
            )
    run.records = list(in_order(steady(run.records)))
    reading.runs.append(run)
    return reading


WALKERS = Adapter(
    "walkers",
    "logs of nodes that write little",
    (".walk",),
    None,
    SYSTEM,
    Joined(read, lambda file: Path(file).name.startswith("all")),
)
