"""Read a behaviour in the Informal Trace Format (ITF), as Apalache, Quint and `vsr export itf` write it.

A state gives every variable of the specification: a number (or `#bigint`), a Boolean, a label, or a function as `#map`
(keys: numbers, `#tup`, or functions of functions) or as a list over the sort. The steps are found by trying: which
action instance of the specification leads from one state to the next?
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import Step
from viewproof.spec.lang.concrete import Index, State, outside
from viewproof.spec.lang.definitions import Spec, call_text
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.schema import Var

NEAREST_MAX = 3


def from_itf(spec: Spec, document: Any) -> list[State]:
    """The states of an ITF document. Raises `SpecError` that names the state and the variable."""
    states = document.get("states") if isinstance(document, dict) else None
    if not isinstance(states, list) or not states:
        raise SpecError("this is no ITF trace: it has no list of states")
    return [_state(spec, state, number) for number, state in enumerate(states)]


def steps_between(spec: Spec, states: Sequence[State]) -> list[Step]:
    """The steps that lead from each state to the next; repeated states are no steps.

    Raises `SpecError` where the first is not the initial state, or no action leads on, with what comes nearest.
    """
    if different := changes(spec, State.initial(), states[0]):
        cells = ", ".join(f"{c.var}{list(c.index)} = {c.after}" for c in different[:NEAREST_MAX])
        raise SpecError(f"state 0 is not the initial state of {spec.name}: {cells}")
    steps: list[Step] = []
    for number, (before, after) in enumerate(itertools.pairwise(states), start=1):
        if before != after:
            steps.append(_step(spec, before, after, number))
    return steps


def _step(spec: Spec, before: State, after: State, number: int) -> Step:
    nearest: tuple[int, str] | None = None
    for action, args, found in interp.successors(spec, before):
        if found == after:
            return Step(action.name, args, spec.ir(action.name).source, changes(spec, before, after), after)
        different = changes(spec, found, after)
        if nearest is None or len(different) < nearest[0]:
            call = call_text(action.name, args)
            cells = ", ".join(
                f"{c.var}{list(c.index)} = {c.before} where the trace has {c.after}" for c in different[:NEAREST_MAX]
            )
            nearest = (len(different), f"{call} comes nearest: {cells}")
    told = nearest[1] if nearest else "no action can be taken there"
    raise SpecError(f"no action of {spec.name} leads from state {number - 1} to state {number}; {told}")


def _state(spec: Spec, state: Any, number: int) -> State:
    tables: dict[str, dict[Index, int]] = {}
    for name, var in spec.schema.vars.items():
        where = f"state {number}, {name}"
        if not isinstance(state, dict) or name not in state:
            raise SpecError(f"{where}: the state does not give this variable of {spec.name}")
        table: dict[Index, int] = {}
        for index, value in _cells(var, state[name], (), where):
            if problem := outside(var, index, spec.instance):
                raise SpecError(f"{where}: {problem}")
            number_of = _scalar(var, value, where)
            top = var.values.upper(spec.instance)
            if number_of < var.values.lo or (top is not None and number_of > top):
                raise SpecError(f"{where}{list(index)}: {number_of} is outside {var.values.lo} .. {top}")
            if number_of != var.init:
                table[index] = number_of
        if table:
            tables[name] = table
    return State(tables)


def _cells(var: Var, value: Any, index: Index, where: str) -> Iterator[tuple[Index, Any]]:
    """The cells of a variable below an index, whatever way its function is written."""
    if len(index) == len(var.index):
        yield index, value
    elif isinstance(value, dict) and isinstance(value.get("#map"), list):
        for pair in value["#map"]:
            if not isinstance(pair, list) or len(pair) != 2:
                raise SpecError(f"{where}: an entry of a #map is not a pair")
            key: list[Any] = pair[0]["#tup"] if isinstance(pair[0], dict) and "#tup" in pair[0] else [pair[0]]
            yield from _cells(var, pair[1], (*index, *(_int(part, where) for part in key)), where)
    elif isinstance(value, list):
        first = var.index[len(index)].lo
        for offset, entry in enumerate(value):
            yield from _cells(var, entry, (*index, first + offset), where)
    else:
        raise SpecError(f"{where}: expected a function over {', '.join(sort.name for sort in var.index)}")


def _int(value: Any, where: str) -> int:
    text = value.get("#bigint") if isinstance(value, dict) else value
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise SpecError(f"{where}: {value!r} is not a number")
    try:
        return int(text)
    except ValueError as problem:
        raise SpecError(f"{where}: {value!r} is not a number") from problem


def _scalar(var: Var, value: Any, where: str) -> int:
    if var.values.is_bool:
        if not isinstance(value, bool):
            raise SpecError(f"{where}: {value!r} is not a Boolean")
        return int(value)
    if isinstance(value, str) and value in var.values.labels:
        return var.values.labels.index(value)
    return _int(value, where)
