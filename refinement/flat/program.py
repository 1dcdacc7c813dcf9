"""The compiled audit of one kind of configuration over flat memory: one call for a batch of events.

It only ever says that everything plainly holds up to some event. `drive` stops at the first that does not, that lacks a
column, that reads a cell which was let go, or that cannot be said here; then the run is judged by the replays of
`checker`, from its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from viewproof.refinement.events.lines import Rule
from viewproof.refinement.events.system import System
from viewproof.refinement.flat import books as books_source
from viewproof.refinement.flat.emit import NULL, Books, EventText
from viewproof.spec.engines.flat import memory as memory_source
from viewproof.spec.engines.flat.actions import action_units
from viewproof.spec.engines.flat.layout import COUNT, HEADER, FlatLayout
from viewproof.spec.engines.llvm.lower import Site
from viewproof.spec.engines.llvm.objects import Unit, function, kept, link, objects
from viewproof.spec.lang import SpecError

Words = NDArray[np.int64]
PREPARING = ("on_request", "on_prepare")
FACTS = ("m_view", "m_op", "m_checksum", "commit_min", "digest", "m_namespace", "m_offset", "m_count")
"""Columns that the global facts look at, as `books.facts` takes them."""

NO_NODE, NO_ORDER, NO_BOOT, NO_EVENT, NO_FACT, NO_CELL = range(-6, 0)
STOPPED = {
    NO_NODE: "a node that is no replica",
    NO_ORDER: "sequence numbers and clocks that do not rise",
    NO_BOOT: "a first event that is no boot",
    NO_EVENT: "an event that there is not under this configuration",
    NO_FACT: "a global fact is contradicted, or one that is not compiled",
    NO_CELL: "a cell that was let go, or no memory",
}
"""Why `drive` stops, but for the places in an event's function (above 0)."""
SENT_KEPT = 1 << 18
"""Events of each node of which the message that they sent is remembered, where a run is streamed."""
MEMORY_MAX = 4 << 30


@lru_cache(maxsize=8)
def vocabulary(system: System) -> Mapping[str, int]:
    """Codes of the texts that columns are declared to have; "" is 0, any other text comes after them."""
    known = sorted({text for column in system.table for text in column.choices} - {""})
    return {text: code for code, text in enumerate(("", *known))}


@dataclass(frozen=True, eq=False)
class FlatProgram:
    """The compiled audit of a kind; `compiled` functions were not in the cache, and took `seconds`."""

    system: System
    layout: FlatLayout
    books: Books
    sites: Mapping[str, list[Site]]
    drive: Callable[..., int]
    begin: Callable[..., int]
    release: Callable[..., int]
    let_go: Callable[..., int]
    engine: Any
    compiled: int
    seconds: float

    def place(self, stopped: int, code: int) -> str:
        """Why `drive` stopped: in words, for whoever wants to know why a run was not judged here."""
        if stopped in STOPPED:
            return STOPPED[stopped]
        event = list(self.books.judged)[code]
        site = self.sites[event][stopped - 1] if stopped <= len(self.sites[event]) else None
        return event if site is None else f"{event}: {site.what}"

    def new_run(self, first: Mapping[str, int | None], numbers: Mapping[str, int]) -> FlatRun:
        """A run whose configuration its first boot shows."""
        words = self.layout.memory(MEMORY_MAX)
        for name, value in numbers.items():
            words[self.layout.at[f"g_{name}"]] = value
        for column, name in self.books.configured.items():
            shown = first[column]
            words[self.layout.at[name]] = NULL if shown is None else shown
        return FlatRun(self, words)


class FlatRun:
    """The memory of one run, and how far it came. A context manager: its windows are gone at the end."""

    def __init__(self, program: FlatProgram, words: Words) -> None:
        self.program = program
        self.words = words
        self.events = 0
        self.stopped = 0
        self.place = ""
        program.begin(words)

    def __enter__(self) -> FlatRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.program.release(self.words)

    def take(self, columns: Words, facts: Words, order: Words, first: int, last: int) -> bool:
        """Take the events order[first] .. order[last - 1]; False where one does not plainly hold (`stopped`, `place`).

        `columns` and `facts` are addresses of columns.
        """
        self.stopped = self.program.drive(self.words, columns, facts, order, first, last)
        self.events = int(self.words[6])
        if self.stopped:
            self.place = self.program.place(self.stopped, int(self.words[7]))
        return self.stopped == 0

    def counted(self, area: str, names: Mapping[str, int]) -> dict[str, int]:
        """What was counted, by name."""
        at = self.program.layout.at[area]
        return {name: int(self.words[at + number]) for name, number in names.items()}

    @property
    def coverage(self) -> dict[str, int]:
        """Steps taken, by action."""
        return self.counted("coverage", self.program.books.coverage)

    @property
    def judged(self) -> dict[str, int]:
        """Events taken, by name."""
        return self.counted("judged", self.program.books.judged)

    @property
    def all_began(self) -> bool:
        """Has every replica an event?"""
        at = self.program.layout.at["last_seq"]
        return bool(self.words[at : at + self.program.layout.members].all())

    def forget_sent(self) -> None:
        """Let go of messages that were sent long ago: a run with an event about one is left to the other replay."""
        layout, books = self.program.layout, self.program.books
        for node in range(layout.members):
            header = layout.at[books.sent.name] + HEADER * node
            last, base = int(self.words[layout.at["last_seq"] + node]), int(self.words[header + 1])
            if last - base > 2 * SENT_KEPT:
                address = self.words.ctypes.data + 8 * header
                self.program.let_go(self.words, address, last - SENT_KEPT, books.sent_words)

    @property
    def bytes(self) -> int:
        """Memory that windows take."""
        return int(self.words[4])


@lru_cache(maxsize=64)
def flat_program(
    system: System, cfg: Any, given: tuple[str, ...], *, optional: bool, has_facts: bool, compiles: bool = True
) -> FlatProgram:
    """Compile the audit for all configurations of one kind (`Profile.kind`), or load what was compiled before.

    Raises `SpecError`, naming the word, for what there is no compiled form of, and, unless it `compiles`, where a
    function is not in the cache.
    """
    started = time.perf_counter()
    if system.histories:
        raise SpecError("there is no compiled form of alternative histories")
    if system.profile.whole:
        raise SpecError("there is no compiled form of logs whose lines are owed")
    if system.profile.silent:
        raise SpecError("there is no compiled form of cells that may change at any time")
    spec = system.profile.spec(system.profile.numbered_configuration(cfg))
    rules, observed = system.rules_for(spec), system.observations_for(spec, optional=optional)
    layout = FlatLayout(spec.schema, spec.instance, given)
    actions = action_units(spec, layout)
    books = Books(system, layout, list(actions), rules)
    codes = vocabulary(system)
    params = {action.name: action.params for action in spec.actions}
    texts = {
        name: EventText(system, rule, layout, books, observed, actions, params, codes) for name, rule in rules.items()
    }
    units = {name: text.unit() for name, text in texts.items()}
    driver = Unit("events", "drive", _driver(system, rules, units, books, codes, has_facts))
    events = [one for text in texts.values() for one in text.units()]
    everything = [*_kernels(), *actions.values(), *events, driver]
    if not compiles and any(kept(one) is None for one in everything):
        raise SpecError("this kind of configuration is not compiled yet, and the input is not large")
    found, compiled = objects(everything)
    engine = link(found, layout.symbols())
    return FlatProgram(
        system,
        layout,
        books,
        {name: text.sites for name, text in texts.items()},
        function(engine, "drive", 6),
        function(engine, "begin", 1),
        function(engine, "release", 1),
        function(engine, "let_go", 4),
        engine,
        compiled,
        time.perf_counter() - started,
    )


def _kernels() -> list[Unit]:
    sources = (("windows", memory_source), ("books", books_source))
    return [Unit(title, title, Path(str(module.__file__)).read_text()) for title, module in sources]


def _driver(
    system: System,
    rules: Mapping[str, Rule],
    units: Mapping[str, Unit],
    books: Books,
    codes: Mapping[str, int],
    has_facts: bool,
) -> str:
    """The loop over a batch: order and clocks, the event's function, the facts that it states, and what is counted."""
    columns = {
        name: f"load(load(C + {8 * system.index[name]}) + 8 * row)" for name in ("node", "seq", "clock", "event")
    }
    lines = [
        "def drive(M: I64, C: I64, F: I64, order: I64, first: I64, last: I64):",
        "    for i in range(first, last):",
        "        row = load(order + 8 * i)",
        *(f"        {name} = {text}" for name, text in columns.items()),
        f"        if node >= external('o_{COUNT}'):",
        f"            return {NO_NODE}",
        "        at = M + external('o_last_seq') + 8 * node",
        "        before = M + external('o_last_clock') + 8 * node",
        "        if seq != load(at) + 1 or clock <= load(before):",
        f"            return {NO_ORDER}",
    ]
    if boots := system.profile.boots:
        lines += [f"        if seq == 1 and event != {codes[boots[0]]}:", f"            return {NO_BOOT}"]
    lines += ["        prepares = 0", "        executes = 0"]
    for number, (name, unit) in enumerate(units.items()):
        lines.append(f"        {'el' if number else ''}if event == {codes[name]}:")
        lines += ["            kind = " + str(books.judged[name]), f"            code = {unit.symbol}(M, C, row)"]
        if has_facts and name in (*PREPARING, "execute"):
            lines.append(f"            {'executes' if name == 'execute' else 'prepares'} = 1")
    lines += ["        else:", f"            return {NO_EVENT}"]
    lines += ["        if code != 0:", "            store(M + 56, kind)", "            return code"]
    if has_facts:
        lines += ["        if facts(M, F, row, prepares, executes) != 0:", f"            return {NO_FACT}"]
    lines += [
        "        if load(M) != 0:",
        f"            return {NO_CELL}",
        "        count = M + external('o_judged') + 8 * kind",
        "        store(count, load(count) + 1)",
        "        store(at, seq)",
        "        store(before, clock)",
        "        store(M + 48, load(M + 48) + 1)",
        "    return 0",
    ]
    return "\n".join(lines) + "\n"
