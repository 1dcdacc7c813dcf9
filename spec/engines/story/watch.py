"""Run an action or an invariant in the interpreter and write down what it read on the way.

The verdict is the interpreter's own; this only listens. Reads are those that were needed: a quantifier stops at the
first member that decides it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from viewproof.spec.engines import interp
from viewproof.spec.lang.concrete import Draft, OutOfRange, State
from viewproof.spec.lang.definitions import Action, Predicate, Spec
from viewproof.spec.lang.errors import Disabled, Source, SpecError
from viewproof.spec.lang.expr import Read, walk
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.vocabulary import Domain, using

Show = Callable[[Var, int], str]
"""How a value of a variable is shown to a reader."""


@dataclass(frozen=True)
class Reading:
    """One cell that was looked at, and its value.

    `receiver` is set where it was read as a received message, `after` where it was read in the state after a step.
    """

    var: Var
    index: tuple[int, ...]
    value: int
    receiver: int | None = None
    after: bool = False

    def text(self, show: Show) -> str:
        """`op[0] = 1`; in the state after a step, `op[0]′ = 1`."""
        prime = "′" if self.after else ""
        return f"{cell_name(self.var.name, self.index)}{prime} = {show(self.var, self.value)}"


@dataclass(frozen=True)
class Attempt:
    """An action tried in a state. `conjunct`: the first false guard (None: enabled). `error`: it leaves its ranges.

    `guards`: per conjunct that was evaluated, the cells it depends on. `readings`: all cells read, effects included.
    """

    action: Action
    args: dict[str, int]
    conjunct: int | None
    guards: tuple[tuple[Reading, ...], ...]
    readings: tuple[Reading, ...]
    error: str = ""

    @property
    def enabled(self) -> bool:
        """Can the step be taken?"""
        return self.conjunct is None and not self.error


@dataclass(frozen=True)
class Judgement:
    """An invariant asked of a state or step; where it fails, the members of its quantifiers for which it does."""

    holds: bool
    members: tuple[tuple[str, int], ...] = ()
    readings: tuple[Reading, ...] = ()


def guard_text(source: Source) -> str:
    """A guard conjunct as written, without the `require(…)` around it and the breaks of a formatter."""
    text = source.text
    for pattern, short in ((r"\(\s+", "("), (r",?\s+\)", ")"), (r"^require\((.*)\)$", r"\1")):
        text = re.sub(pattern, short, text)
    return text


def cell_name(var: str, index: Iterable[int]) -> str:
    """`entry[0, 1]`; a variable without indices by its name."""
    text = ", ".join(str(i) for i in index)
    return f"{var}[{text}]" if text else var


@dataclass
class _Log:
    """What a run read: each cell once, and per conjunct where its reads start."""

    readings: list[Reading] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    members: list[tuple[str, int]] = field(default_factory=list)
    start: int = 0


class Watch(Draft):
    """A concrete state handle that keeps a log."""

    _OWN = Draft._OWN | {"log"}

    def __init__(self, spec: Spec, state: State, after: State | None = None) -> None:
        super().__init__(spec.schema, spec.cfg, spec.instance, state, after)
        self.log = _Log()

    def read(self, var: Var, raw: Any, receiver: int | None, after: bool) -> Any:
        """As the interpreter reads; the cell is noted."""
        value = super().read(var, raw, receiver, after)
        if not isinstance(value, OutOfRange):
            index = tuple(int(i) for i in (raw if isinstance(raw, tuple) else (raw,)))
            known_to = None if receiver is None else int(receiver)
            self.log.readings.append(Reading(var, index, int(value), known_to, after))
        return value

    def require(self, cond: Any) -> None:
        """As the interpreter does; the reads so far belong to this conjunct or those before."""
        self.log.ends.append(len(self.log.readings))
        super().require(cond)

    def quantify(self, kind: str, domain: Domain, body: Callable[[Any], Any], default: int) -> Any:
        """As the interpreter does; the member for which a `forall` fails is noted, outermost first."""
        if kind != "forall":
            return super().quantify(kind, domain, body, default)
        name = body.__code__.co_varnames[0]
        for member in self.members(domain):
            start = len(self.log.readings)
            self.log.members = []
            if not body(member):
                if not self.log.members:
                    self.log.start = start
                self.log.members.insert(0, (name, member))
                return False
        self.log.members = []
        return True


def attempt(spec: Spec, state: State, action: Action, args: dict[str, int]) -> Attempt:
    """Try the action with these arguments in the state."""
    watch = Watch(spec, state)
    conjunct: int | None = None
    error = ""
    try:
        with using(watch):
            action.fn(watch, **args)
    except Disabled as disabled:
        conjunct = disabled.conjunct
    except SpecError:
        error = _error(spec, state, action, args)
    guards = _by_guard(spec, action, watch.log) if conjunct is not None or not error else ()
    return Attempt(action, args, conjunct, guards, _once(watch.log.readings), error)


def judge(spec: Spec, predicate: Predicate, state: State, after: State | None = None) -> Judgement:
    """Ask an invariant of a state (or of the step to `after`), and where it fails, for what."""
    watch = Watch(spec, state, after)
    with using(watch):
        holds = bool(predicate.fn(watch))
    if holds:
        return Judgement(True)
    return Judgement(False, tuple(watch.log.members), _once(watch.log.readings[watch.log.start :]))


def _error(spec: Spec, state: State, action: Action, args: dict[str, int]) -> str:
    """The interpreter's own message for a step that leaves its ranges."""
    try:
        interp.step(spec, state, action, args)
    except SpecError as problem:
        return str(problem)
    return ""


def _by_guard(spec: Spec, action: Action, log: _Log) -> tuple[tuple[Reading, ...], ...]:
    """Per evaluated conjunct the readings of the variables that its recorded text names.

    A value that was read earlier, into a local name, counts where the conjunct itself does not read that variable.
    """
    conjuncts = spec.ir(action.name).guards
    found: list[tuple[Reading, ...]] = []
    start = 0
    for guard, end in zip(conjuncts, log.ends, strict=False):
        wanted = {node.var.name for node in walk(guard.cond) if isinstance(node, Read)}
        own = [r for r in log.readings[start:end] if r.var.name in wanted]
        missing = wanted - {r.var.name for r in own}
        earlier = [r for r in log.readings[:start] if r.var.name in missing]
        found.append(_once([*earlier, *own]))
        start = end
    return tuple(found)


def _once(readings: Iterable[Reading]) -> tuple[Reading, ...]:
    return tuple(dict.fromkeys(readings))
