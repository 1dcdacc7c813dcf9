"""What the lines of a kind of log are, and what they stand for: record, events, and the specification to judge by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from viewproof.refinement.events.lines import Observation, Rule
from viewproof.refinement.events.nested import Departs, all_lines
from viewproof.refinement.events.terms import TEXT, TEXTS
from viewproof.refinement.events.words import Body, Event, record_observations, record_rule
from viewproof.refinement.schema import BASE, Column
from viewproof.spec.lang import Action, Spec, SpecError
from viewproof.spec.lang.errors import source_of
from viewproof.spec.lang.kinds import NUMBER, Kind

Record = Mapping[str, Any]
"""An event: columns by name."""


@dataclass(frozen=True)
class Deviations:
    """Permitted deviations: those of the configuration, the actions that others add, and what these stand in for.

    `added` are (action, stand-in), `by_action` the names of stand-ins by action.
    """

    configuration: frozenset[str] = frozenset()
    added: tuple[tuple[str, Action], ...] = ()
    by_action: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def only(self, fits: Callable[[str, Action], bool]) -> Deviations:
        """Those of which the stand-in for an action fits."""
        fitting = tuple((name, act) for name, act in self.added if fits(name, act))
        kept = {act.name for _, act in fitting}
        by_action = {name: tuple(one for one in found if one in kept) for name, found in self.by_action.items()}
        return Deviations(self.configuration, fitting, {name: found for name, found in by_action.items() if found})


def no_deviations(allow: tuple[str, ...]) -> Deviations:
    """Those of a specification that has none."""
    if allow:
        raise SpecError(f"{allow[0]} cannot be allowed: there are no known deviations for this kind of log")
    return Deviations()


def no_numbers(cfg: Any) -> tuple[Any, Mapping[str, int]]:
    """Every configuration is a kind of its own."""
    return cfg, {}


def as_it_is(cfg: Any) -> Any:
    """The same configuration."""
    return cfg


def no_weaknesses(record: Record) -> tuple[str, ...]:
    """It promises all that it says."""
    return ()


def all_shown(record: Record, judged: Mapping[str, int]) -> tuple[str, ...]:
    """Lines show all that happens."""
    return ()


def replicas_of(cfg: Any) -> int:
    """Its nodes are its replicas."""
    return int(cfg.replicas)


@dataclass(frozen=True, eq=False)
class Profile:
    """The specification that a run is judged by, and how its first boot configures it.

    `configure(record, faults)` makes a configuration, which can be hashed and has `replicas`, of the columns of the
    first boot (those in `configuration` are the same in all boots); it raises `SpecError` for an impossible one.
    `spec(cfg)` is the specification for it, with any number of everything but the replicas, and with the actions that
    this system has beyond it. `replica` is the sort of `node`.

    `boots` are the events that show a configuration, the first of them a node's first event ("" is: any may be); a log
    that begins with another one is of a node that ran before (`begins_late`).
    Without `needed` nothing is judged; `if_shown` are values of columns that a run may have had although it does not
    show them. `once` and `rising` are variables of no replica whose cells are written once, or only rise.
    `silent` are variables, or fields of messages, whose cells may rise at any time without a line: a backup that
    appends, and acknowledges, and writes nothing about it. Their absence is never known.
    `whole`: a log has the lines of all nodes in the order of the events, and none is missing before its end; of such a
    log the numbers `seq` and `clock` are those of its lines. `nodes(cfg)` is how many there are, if not `replicas`.
    `known` names deviations that, where one explains a violation, the report says so.
    `kind(cfg)` is the configuration with numbers that are given at run time (`engines.replay.given`), and these: one
    compiled audit serves all configurations of a kind. `numbered` are columns whose values are only compared, those
    with the same values together: the flat replay numbers large ones from 0 on, and judges by
    `numbered_configuration(cfg)`. `parameters` says which columns suggest a parameter of an action, to explain what
    else was not possible; `view` is the column in which a node shows its view (or term), for a
    run's timeline. `to_the_end`: a log shows all nodes to its end, so that a node's last event is not the end of what
    is known of it. `unshown(record, judged)` names what no line of such a run shows, by how many events of each name
    were judged. `weaknesses(record)` says what a configuration does not promise, by its design, for whoever reads the
    verdict.
    """

    configure: Callable[[Record, frozenset[str]], Any]
    spec: Callable[[Any], Spec]
    replica: Any
    configuration: tuple[str, ...]
    needed: tuple[str, ...]
    boots: tuple[str, ...] = ("start",)
    if_shown: Mapping[str, int] = field(default_factory=dict)
    once: tuple[str, ...] = ()
    rising: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    parameters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    view: str = "view"
    deviations: Callable[[tuple[str, ...]], Deviations] = no_deviations
    kind: Callable[[Any], tuple[Any, Mapping[str, int]]] = no_numbers
    weaknesses: Callable[[Record], tuple[str, ...]] = no_weaknesses
    to_the_end: bool = False
    unshown: Callable[[Record, Mapping[str, int]], tuple[str, ...]] = all_shown
    numbered: tuple[tuple[str, ...], ...] = ()
    numbered_configuration: Callable[[Any], Any] = as_it_is
    whole: bool = False
    nodes: Callable[[Any], int] = replicas_of
    known: tuple[str, ...] = ()

    def begins_late(self, event: str) -> bool:
        """Is a node's first event one of a node that ran before?"""
        return event in self.boots[1:]


@dataclass(frozen=True, eq=False)
class System:
    """A kind of log: `columns` of its record beside run, node, seq, clock and event; `events`; `observed`, a function
    like those of events that says what each event shows of its node; and the profile.

    With `histories` the functions of events may nest conditions and ranges, and speak of alternative histories
    (`events.histories`); `departures` are what the system is known to do although it is not safe, by id, in words.
    `messages` gives each kind of message the columns in which the event that receives it (columns `m_from` and `m_seq`
    name the one that sent it) must equal that one; `optional` columns are looked at after an event only in a run whose
    first event shows one of them; `rules` says in words what a rule that no action states means.
    """

    name: str
    columns: tuple[Column, ...]
    events: tuple[Event, ...]
    observed: Body
    profile: Profile
    messages: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    optional: tuple[str, ...] = ()
    rules: Mapping[str, str] = field(default_factory=dict)
    histories: bool = False
    departures: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for what, names in (("column", self.names), ("event", [declared.name for declared in self.events])):
            twice = [name for name, count in Counter(names).items() if count > 1]
            if twice:
                raise ValueError(f"{self.name}: two {what}s have the name {twice[0]}")

    @cached_property
    def table(self) -> tuple[Column, ...]:
        """All columns, in the order of a row."""
        known = tuple(sorted(declared.name for declared in self.events))
        sorts = {"node": self.profile.replica}
        base = [replace(column, sort=sorts.get(column.name)) for column in BASE]
        base = [replace(column, choices=known) if column.name == "event" else column for column in base]
        return (*base, *self.columns)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.table)

    @cached_property
    def index(self) -> Mapping[str, int]:
        """Place of each column in a row."""
        return {name: place for place, name in enumerate(self.names)}

    @cached_property
    def by_name(self) -> Mapping[str, Column]:
        """The columns by name."""
        return {column.name: column for column in self.table}

    @cached_property
    def members(self) -> tuple[tuple[int, str], ...]:
        """Places and names of columns that name a replica; for systems of histories."""
        mine = [c for c in self.columns if self.histories and c.sort is self.profile.replica]
        return tuple((self.index[column.name], column.name) for column in mine)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """What the values of each column stand for."""
        return {column.name: _kind(column) for column in self.table}

    @cached_property
    def by_event(self) -> Mapping[str, Event]:
        """The events by name."""
        return {declared.name: declared for declared in self.events}

    def configuration_of(self, record: Record) -> dict[str, int]:
        """What a boot shows of the configuration."""
        names = dict.fromkeys((*self.profile.configuration, *self.profile.if_shown))
        return {name: record[name] for name in names if isinstance(record[name], int)}

    def rule_for(self, spec: Spec, event: str) -> Rule:
        """The rule of one event, recorded."""
        return record_rule(spec, self.kinds, self.by_event[event], nested=self.histories)

    @cached_property
    def docs(self) -> Mapping[str, str]:
        """What each event is, in words."""
        return {declared.name: declared.doc for declared in self.events}

    @cached_property
    def needed_by(self) -> Mapping[str, str]:
        """Event → the column of the configuration without which it is not understood."""
        return {declared.name: declared.needs for declared in self.events if declared.needs}

    def rules_for(self, spec: Spec) -> dict[str, Rule]:
        """The rules of all events that there are under the specification's configuration, recorded.

        Raises `SpecError` for an event that does not fit the specification, or of an unknown kind of message.
        """
        for declared in self.events:
            for kind in filter(None, (declared.sends, *declared.receives.split("|"))):
                if kind not in self.messages:
                    known = ", ".join(self.messages) or "none"
                    what = f"{declared.name} is about a message {kind!r}, and MESSAGES has no columns for it, only for:"
                    raise SpecError(f"{what} {known}", source_of(declared.fn))
        rules = {
            declared.name: record_rule(spec, self.kinds, declared, nested=self.histories)
            for declared in self.events
            if declared.only is None or declared.only(spec.cfg)
        }
        for line in all_lines(line for rule in rules.values() for line in rule.lines):
            if isinstance(line, Departs) and line.id not in self.departures:
                raise SpecError(f"{self.name} has no departure {line.id}", line.source)
        return rules

    def observations_for(self, spec: Spec, *, optional: bool) -> tuple[Observation, ...]:
        """What each event shows of its node; `optional`: with the columns that are."""
        found = record_observations(spec, self.kinds, self.observed)
        return tuple(one for one in found if optional or one.column not in self.optional)


def _kind(column: Column) -> Kind:
    if column.kind == "string":
        return TEXT
    if column.kind == "strings":
        return TEXTS
    return NUMBER if column.sort is None else column.sort.kind
