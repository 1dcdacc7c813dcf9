"""The adapter `oxia`: its logs, and the specification that judges them, as Oxia is built."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from viewproof.refinement.adapter import Adapter, Joined
from viewproof.refinement.events import Column, Profile, System, events_of
from viewproof.refinement.events.system import Record
from viewproof.refinement.joined.order import Record as Line
from viewproof.refinement.joined.source import lines_of
from viewproof.refinement.oxia import events
from viewproof.refinement.oxia.source import SUFFIXES, is_merged, read
from viewproof.spec.lang import Instance
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.faults import AS_BUILT
from viewproof.spec.oxia.models import build
from viewproof.spec.oxia.state import Length, Offset, Replica, Term

COLUMNS = (
    Column("members", "int", False, "members of the ensemble", minimum=1, maximum=9),
    Column("term", "int", False, "the term of the line", sort=Term),
    Column("entry", "int", False, "term of the entry at the head", sort=Term),
    Column("head", "int", False, "last offset of the log", sort=Length),
    Column("commit", "int", False, "commit offset", sort=Length),
    Column("offset", "int", False, "the entry that the line is about", sort=Offset),
    Column("next", "int", False, "the entry that the cursor has to send next", sort=Offset),
    Column("follower", "int", False, "the follower that the line names", sort=Replica),
    Column("below", "int", False, "last offset that is applied already", sort=Length),
    Column("top", "int", False, "last offset to apply", sort=Length),
    Column("again", "int", False, "1 if the follower dropped entries of this term as duplicates"),
    Column("dropped", "int", False, "1 if the entry is dropped as a duplicate"),
)


def configure(first: Record, faults: frozenset[str]) -> Config:
    """That of an ensemble of so many members, with what the build does otherwise than is safe (docs/oxia.md).

    Each of these steps is taken as built; a log in which one did harm breaks an invariant, and that is held.
    """
    return Config(first["members"], faults=frozenset(fault.id for fault in AS_BUILT) | faults)


def specification(cfg: Config) -> Spec:
    """The specification, for any number of terms and offsets."""
    return build(cfg, Instance({"Replica": cfg.replicas - 1}))


def observed(state: Any, e: Any) -> None:
    """What a line shows of its server differs from line to line."""


def exchangeable(one: Line, other: Line) -> bool:
    """Acknowledgements come on a stream of their own for each follower, and proposals wait for none: of different
    followers, or for another offset than a proposal before it, they may come in either order.
    """
    match one.event, other.event:
        case "acked", "acked":
            return one.columns["follower"] != other.columns["follower"]
        case "acked", "proposed":
            return True
        case "proposed", "acked":
            return other.columns["offset"] != one.columns["offset"]
    return False


def omissible(line: Line, later: Sequence[Line]) -> bool:
    """An acknowledgement stands for all below: a follower that syncs two entries at once sends one for both."""
    stream = line.columns.get("term"), line.columns.get("follower")
    again = (one for one in later if one.event == "acked" and line.event == "acked")
    return any((one.columns["term"], one.columns["follower"]) == stream for one in again)


SYSTEM = System(
    "oxia",
    COLUMNS,
    events_of(events),
    observed,
    Profile(
        configure,
        specification,
        Replica,
        ("members",),
        ("members",),
        boots=(),
        to_the_end=True,
        once=("elected", "seen", "seen_in"),
        rising=("election",),
        view="term",
    ),
    histories=True,
)
ADAPTER = Adapter(
    "oxia",
    "logs of Oxia's servers and coordinator",
    SUFFIXES,
    None,
    SYSTEM,
    Joined(
        read,
        lambda file: is_merged(lines_of(file)),
        frozenset(SYSTEM.docs) - {"applies", "applied", "duplicate", "sent"},
        ("term", "offset", "commit-offset", "head-offset", "max-inclusive", "min-exclusive"),
        exchangeable,
        omissible,
    ),
)
