"""The functions of one kind of configuration, and the shape of its memory, from an adapter's events and a spec.

What was made of a kind is kept beside its compiled functions, under a name that says all it depends on: recording the
specification takes longer than loading the code.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import msgspec

import viewproof.refinement
import viewproof.spec
from viewproof.refinement.events.system import System
from viewproof.refinement.flat import books as books_source
from viewproof.refinement.flat.emit import EventText
from viewproof.refinement.flat.shape import (
    NO_BOOT,
    NO_CELL,
    NO_EVENT,
    NO_FACT,
    NO_NODE,
    NO_ORDER,
    PART,
    PART_BITS,
    PREPARING,
    Shape,
    vocabulary,
)
from viewproof.refinement.flat.terms import Books
from viewproof.spec.engines.flat import memory as memory_source
from viewproof.spec.engines.flat.actions import action_units
from viewproof.spec.engines.flat.layout import COUNT, FlatLayout
from viewproof.spec.engines.llvm.objects import (
    Unit,
    cache_dir,
    identity,
    key_of,
    read_whole,
    unit_of,
    write_whole,
)
from viewproof.spec.lang import SpecError

T = TypeVar("T")


def compile_kind(
    system: System, cfg: Any, given: tuple[str, ...], *, optional: bool, has_facts: bool
) -> tuple[Shape, list[Unit], FlatLayout]:
    """The shape of a kind, its functions, and where the specification's variables lie.

    Raises `SpecError`, naming the word, for what there is no compiled form of.
    """
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
    driver = Unit("events", "drive", _driver(system, units, books, codes, has_facts))
    shape, everything = assembled(layout, books, texts, actions, driver)
    return shape, everything, layout


def assembled(
    layout: FlatLayout,
    books: Books,
    texts: Mapping[str, EventText],
    actions: Mapping[str, Unit],
    driver: Unit,
    *others: ModuleType,
) -> tuple[Shape, list[Unit]]:
    """The shape of a kind, and its functions: those of events, actions and the driver, of the memory and the books, and
    of other modules.
    """
    kernels = [unit_of(title, module) for title, module in (("windows", memory_source), ("books", books_source))]
    kernels += [unit_of(module.__name__, module) for module in others]
    events = [one for text in texts.values() for one in text.units()]
    everything = list({u.symbol: u for u in (*kernels, *actions.values(), *events, driver)}.values())
    shape = Shape(
        words=layout.words,
        members=layout.members,
        at=layout.at,
        symbols=layout.symbols(),
        first=layout.first_values(),
        coverage=books.coverage,
        judged=books.judged,
        configured=books.configured,
        sites={name: [site.what for site in text.sites] for name, text in texts.items()},
        keys=[key_of(one) for one in everything],
    )
    return shape, everything


@cache
def _sources() -> bytes:
    """What the shape of a kind depends on, beside its configuration: all of the specification and of the audit."""
    digest = hashlib.blake2b(identity())
    for package in (viewproof.spec, viewproof.refinement):
        for file in sorted(Path(package.__path__[0]).resolve().rglob("*.py")):
            digest.update(file.name.encode() + b"\0" + file.read_bytes())
    return digest.digest()


def shape_file(system: System, *kind: Any) -> Path:
    """Where the shape of a kind of one of the package's own systems is kept."""
    name = hashlib.blake2b(_sources() + repr((system.name, *kind)).encode(), digest_size=16).hexdigest()
    return cache_dir().parent / "kinds" / f"{name}.json"


def kept_shape(file: Path | None, kind: type[T]) -> T | None:
    """The shape that is kept there, if it is whole."""
    found = None if file is None else read_whole(file)
    return None if found is None else msgspec.json.decode(found, type=kind)


def keep_shape(file: Path, shape: Any) -> None:
    """Keep a shape; one that cannot be kept is made again."""
    with suppress(SpecError):
        write_whole(file, msgspec.json.encode(shape))


def _driver(
    system: System,
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
        "def drive(M: I64, P: I64, Q: I64, order: I64, first: I64, last: I64):",
        "    for i in range(first, last):",
        "        row = load(order + 8 * i)",
        f"        part = lshr(row, {PART_BITS})",
        f"        row = row - part * {PART}",
        "        C = load(P + 8 * part)",
        "        F = load(Q + 8 * part)",
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
