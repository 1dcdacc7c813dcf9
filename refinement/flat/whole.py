"""The compiled audit of logs whose lines are owed (`Profile.whole`), of one configuration: rows of words, one call for
many of them.

Like that of `program` it only ever says that all plainly holds up to some line; then the log is judged from its
beginning by `checker.whole`. Functions of the adapter that have no compiled form are asked in Python.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any, Self

from viewproof.refinement.checker.compile import permitted
from viewproof.refinement.events.system import System
from viewproof.refinement.flat import owing as owing_source
from viewproof.refinement.flat.compile import assembled, keep_shape, kept_shape, shape_file
from viewproof.refinement.flat.dictionary import Dictionary, Words
from viewproof.refinement.flat.lines import Frames, LineText, texts_of
from viewproof.refinement.flat.run import Code, Run, linked
from viewproof.refinement.flat.shape import NO_CELL, NO_EVENT, NO_NODE, Shape
from viewproof.refinement.flat.terms import ASK, ASKED, Ask, Asks, Books
from viewproof.spec.engines.flat.actions import action_units
from viewproof.spec.engines.flat.layout import COUNT, HEADER, FlatLayout, window
from viewproof.spec.engines.llvm.objects import Unit, kept, objects
from viewproof.spec.lang import SpecError

USE_WORDS = 5


@dataclass(frozen=True)
class LinesShape:
    """The memory of a configuration (`Shape`), the texts that have codes from 0 on, the functions that are asked, the
    names of stand-ins by number, and the rows of variables that functions look at: first word, depth of windows.
    """

    shape: Shape
    texts: list[str]
    asks: list[Ask]
    stand_ins: list[str]
    rows: dict[str, tuple[int, int]]


def compile_lines(system: System, cfg: Any, allow: tuple[str, ...]) -> tuple[LinesShape, list[Unit]]:
    """The shape of a configuration, and its functions. Raises `SpecError`, naming the word, for what there is no
    compiled form of.
    """
    if system.histories or system.profile.silent or system.messages:
        raise SpecError("there is no compiled form of such lines")
    spec = system.profile.spec(cfg)
    rules, observed = system.rules_for(spec), system.observations_for(spec, optional=False)
    extra = permitted(system, spec, allow)
    full = spec.with_stand_ins(extra.added)
    layout = FlatLayout(full.schema, full.instance, ())
    actions = action_units(full, layout)
    books = Books(system, layout, list(actions), rules)
    asks, frames, texts = Asks(layout), Frames(layout, rules.values()), texts_of(rules.values())
    codes = {text: code for code, text in enumerate(texts)}
    params = {action.name: action.params for action in full.actions}
    events = {
        name: LineText(
            system, rule, layout, books, observed, actions, params, codes, asks, frames, extra.by_action
        )
        for name, rule in rules.items()
    }  # fmt: skip
    driver = Unit("lines", "drive", _driver(system, {name: text.unit() for name, text in events.items()}, books))
    shape, everything = assembled(layout, books, events, actions, driver, owing_source)
    rows = {one.row: layout.places[one.row] for one in asks.known if one.row}
    found = LinesShape(
        shape,
        texts,
        list(asks.known),
        [name for some in extra.by_action.values() for name in some],
        {name: (layout.at[place.name], place.depth) for name, place in rows.items()},
    )
    return found, everything


def _driver(system: System, units: Mapping[str, Unit], books: Books) -> str:
    """The loop over rows of `width` words from the address R on, in which an event is the number of its function."""
    lines = [
        "def drive(M: I64, R: I64, count: I64, width: I64):",
        "    for i in range(count):",
        "        C = R + 8 * width * i",
        f"        if load(C + {8 * system.index['node']}) >= external('o_{COUNT}'):",
        f"            return {NO_NODE}",
        f"        event = load(C + {8 * system.index['event']})",
    ]
    for number, (name, unit) in enumerate(units.items()):
        lines.append(f"        {'el' if number else ''}if event == {books.judged[name]}:")
        lines.append(f"            code = {unit.symbol}(M, C, 0)")
    lines += [
        "        else:",
        f"            return {NO_EVENT}",
        "        if code != 0:",
        "            store(M + 56, event)",
        "            return code",
        "        if load(M) != 0:",
        f"            return {NO_CELL}",
        "        at = M + external('o_judged') + 8 * event",
        "        store(at, load(at) + 1)",
        "        store(M + 48, load(M + 48) + 1)",
        "    return 0",
    ]
    return "\n".join(lines) + "\n"


@dataclass(frozen=True, eq=False)
class LinesProgram:
    """The compiled audit of one configuration."""

    found: LinesShape
    code: Code

    def new_run(self, first: Mapping[str, int], texts: Dictionary) -> LinesRun:
        """A run whose configuration these columns show; of its texts those of the shape have the first codes."""
        return LinesRun(self, first, texts)


class LinesRun(Run):
    """The memory of one run, of which events come in rows of words."""

    def __init__(self, program: LinesProgram, first: Mapping[str, int], texts: Dictionary) -> None:
        super().__init__(program.code, first, {})
        self.found = program.found
        self.texts = texts
        self.functions = [_function_of(ask) for ask in program.found.asks]
        self.answers: dict[tuple[int, ...], int] = {}
        self.stopped: BaseException | None = None

    def __enter__(self) -> Self:
        _RUNS[self.words.ctypes.data] = self
        return self

    def __exit__(self, *_: object) -> None:
        del _RUNS[self.words.ctypes.data]
        super().__exit__()

    def take(self, rows: Words) -> bool:
        """Take rows; False where one does not plainly hold (`place` says why)."""
        code = self.code.drive(self.words, rows, rows.shape[0], rows.shape[1])
        if self.stopped is not None:
            raise self.stopped
        return self.taken(code)

    def uses(self) -> list[tuple[str, int, int]]:
        """The permitted deviations that were used: stand-in, node, seq."""
        at = self.shape.at
        count = int(self.words[at["used"]])
        if not count:
            return []
        address, base = self.words[at["uses"] : at["uses"] + 2].tolist()
        some = (ctypes.c_int64 * (USE_WORDS * count)).from_address(address - 8 * USE_WORDS * base)
        names = self.found.stand_ins
        return [(names[some[n]], some[n + 1], some[n + 2]) for n in range(0, USE_WORDS * count, USE_WORDS)]

    def answer(self, number: int) -> int:
        """What a function of the adapter says of the arguments that lie in memory."""
        ask, at = self.found.asks[number], self.shape.at[ASKED]
        given: list[Any] = self.words[at : at + len(ask.texts)].tolist()
        if ask.row:
            return self._asked(number, ask, given)
        key = (number, *given)
        answer = self.answers.get(key)
        if answer is None:
            answer = self.answers[key] = self._asked(number, ask, given)
        return answer

    def _asked(self, number: int, ask: Ask, given: list[Any]) -> int:
        given = [self.texts.text(x) if text else x for x, text in zip(given, ask.texts, strict=True)]
        if ask.row:
            given[0] = self._row(ask.row, given[0])
        return int(self.functions[number](*given))

    def _row(self, name: str, node: int) -> dict[int, int]:
        """The cells of a node's row that are not as at first."""
        at, depth = self.found.rows[name]
        if depth:
            header = self.words[at + HEADER * node :][:HEADER].tolist()
            return {index[0]: value for index, value in window(header, depth, 0)}
        members = self.shape.members
        cells = self.words[at + members * node :][:members].tolist()
        return {place: value for place, value in enumerate(cells) if value}


_RUNS: dict[int, LinesRun] = {}
"""The runs that are judged now, by the addresses of their memory."""


def _answer(memory: int, number: int) -> int:
    """What compiled code is told; less than 0: nothing can be said. An interrupt is raised once compiled code is left:
    from here it would reach nobody.
    """
    run = _RUNS[memory]
    try:
        return run.answer(number)
    except Exception:
        return -1
    except BaseException as stop:
        run.stopped = stop
        return -1


_ANSWER = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(_answer)


def _function_of(ask: Ask) -> Callable[..., int]:
    found: Callable[..., int] = getattr(import_module(ask.module), ask.name)
    return found


@lru_cache(maxsize=64)
def lines_program(system: System, cfg: Any, allow: tuple[str, ...], own: bool, compiles: bool) -> LinesProgram | str:
    """The audit of a configuration: loaded, or, if it `compiles`, made; else why there is none. `own`: the system is
    one of the package, so that what was made of it before is known by its name.
    """
    file = shape_file(system, "lines", cfg, allow) if own else None
    found = kept_shape(file, LinesShape)
    codes = [kept(key) for key in found.shape.keys] if found is not None else []
    try:
        if found is None or None in codes:
            if not compiles:
                return "this configuration is not compiled yet, and the input is not large"
            found, units = compile_lines(system, cfg, allow)
            codes[:], _ = objects(units)
            if file is not None:
                keep_shape(file, found)
    except SpecError as error:
        return f"{system.name}: {error}"
    address = ctypes.cast(_ANSWER, ctypes.c_void_p).value or 0
    return LinesProgram(found, linked(found.shape, codes, 4, {ASK: address}))
