"""Name states of a graph, and find the shortest path between two names.

A name is `initial` · `#12`, a state's number · the id of a witness, for the states in which it holds · `not I3`, for
those in which an invariant fails · or comparisons of cells, all of which must hold: `status[0]=normal, op[1]>=2`.
"""

from __future__ import annotations

import itertools
import operator
import re
from collections.abc import Callable
from typing import Any

import networkx as nx

from viewproof.spec.engines import interp
from viewproof.spec.engines.graph.build import StateGraph
from viewproof.spec.engines.interp import Step
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Predicate, Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.schema import Var

Test = Callable[[State], bool]

_CELL = re.compile(r"\s*(\w+)(?:\[([\d\s,]*)\])?\s*(<=|>=|!=|=|<|>)\s*(\w+)\s*")
_NUMBER = re.compile(r"#\d+")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def check_name(spec: Spec, text: str) -> None:
    """An error for what cannot be the name of a state of that specification; needs no graph."""
    name = text.strip()
    if name != "initial" and not _NUMBER.fullmatch(name):
        _test(spec, name)


def parse(graph: StateGraph, text: str) -> set[int]:
    """Numbers of the states with that name; a name that no reachable state has is an error."""
    name = text.strip()
    if name == "initial":
        return {0}
    if _NUMBER.fullmatch(name):
        if int(name[1:]) >= len(graph.states):
            raise SpecError(f"there is no state {name}: they are #0 … #{len(graph.states) - 1}")
        return {int(name[1:])}
    test = _test(graph.spec, name)
    found = {number for number, state in enumerate(graph.states) if test(state)}
    if not found:
        raise SpecError(f"no reachable state has {name}")
    return found


def shortest_path(graph: StateGraph, sources: set[int], targets: set[int]) -> list[Step] | None:
    """The steps of a shortest path from one of the sources to one of the targets; None if there is none."""
    reached = nx.multi_source_dijkstra_path(graph.graph, sources, weight=lambda *_: 1)
    best = min((reached[t] for t in targets if t in reached), key=len, default=None)
    if best is None:
        return None
    return [_step(graph, before, after) for before, after in itertools.pairwise(best)]


def _step(graph: StateGraph, before: int, after: int) -> Step:
    edge = next(iter(graph.graph[before][after].values()))
    return Step(edge["action"], dict(edge["args"]), graph.states[after])


def _test(spec: Spec, name: str) -> Test:
    fails = name.startswith("not ")
    id = name.removeprefix("not ").strip()
    known = {p.id: p for p in (spec.invariants if fails else spec.witnesses)}
    return _predicate(spec, known[id], wanted=not fails) if id in known else _cells(spec, name)


def _predicate(spec: Spec, predicate: Predicate, *, wanted: bool) -> Test:
    if predicate.id in {p.name for p in spec.invariant_irs if p.is_transition} and not wanted:
        raise SpecError(f"{predicate.id} is about steps, not states")
    return lambda state: interp.holds(spec, predicate, state) is wanted


def _cells(spec: Spec, text: str) -> Test:
    tests: list[Test] = []
    position = 0
    while position < len(text):
        match = _CELL.match(text, position)
        if match is None or (match.end() < len(text) and text[match.end()] != ","):
            witnesses = ", ".join(p.id for p in spec.witnesses)
            raise SpecError(
                f"{text!r} names no state: write initial, #NUMBER, a witness ({witnesses}), not INVARIANT, "
                f"or cells such as status[0]=normal, op[1]>=1"
            )
        tests.append(_cell(spec, *match.groups()))
        position = match.end() + 1
    return lambda state: all(test(state) for test in tests)


def _cell(spec: Spec, name: str, index_text: str | None, sign: str, value_text: str) -> Test:
    if name not in spec.schema.vars:
        raise SpecError(f"no variable {name}; there are {', '.join(spec.schema.vars)}")
    var = spec.schema.vars[name]
    index = tuple(int(i) for i in (index_text or "").replace(",", " ").split())
    if len(index) != len(var.index) or not all(map(spec.instance.contains, var.index, index)):
        sorts = ", ".join(f"{s.name} {s.lo}…{spec.instance.hi(s)}" for s in var.index)
        raise SpecError(f"{name} is indexed by [{sorts}], not {list(index)}")
    wanted, compare = _value(spec, var, value_text), _COMPARE[sign]
    return lambda state: compare(state.get(var, index), wanted)


def _value(spec: Spec, var: Var, text: str) -> int:
    top = var.values.upper(spec.instance) or 0
    for value in range(var.values.lo, top + 1):
        if text in (str(value), var.values.show(value)):
            return value
    shown = ", ".join(var.values.show(v) for v in range(var.values.lo, top + 1))
    raise SpecError(f"{var.name} has no value {text}; it has {shown}")
