"""Write a behaviour that was found in the Informal Trace Format (ITF) of Apalache and Quint."""

from __future__ import annotations

import itertools
from typing import Any

from viewproof.spec.engines.explicit.result import Result, Step
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.schema import Var


def to_itf(spec: Spec, result: Result, start: State | None = None) -> dict[str, Any]:
    """The behaviour of a result, from the state `start` (None: the initial one), as an ITF document; states say which
    action led to them in their `#meta`.
    """
    states = [_state(spec, start or State.initial(), 0, None)]
    states += [_state(spec, step.state, n, step) for n, step in enumerate(result.behaviour, start=1)]
    meta = {
        "format": "ITF",
        "format-description": "https://apalache-mc.org/docs/adr/015adr-trace.html",
        "description": f"{spec.name}: {result.broken or 'no invariant'} {result.title}".strip(),
        "varTypes": {name: _type(var) for name, var in spec.schema.vars.items()},
    }
    return {"#meta": meta, "vars": list(spec.schema.vars), "states": states}


def _state(spec: Spec, state: State, number: int, step: Step | None) -> dict[str, Any]:
    meta: dict[str, Any] = {"index": number}
    if step is not None:
        meta |= {"action": step.action, "args": step.args, "source": str(step.source)}
    return {"#meta": meta, **{name: _value(spec, var, state) for name, var in spec.schema.vars.items()}}


def _value(spec: Spec, var: Var, state: State) -> Any:
    if not var.index:
        return _scalar(var, state.get(var, ()))
    pairs = []
    for index in itertools.product(*(spec.instance.members(sort) for sort in var.index)):
        key = _int(index[0]) if len(index) == 1 else {"#tup": [_int(i) for i in index]}
        pairs.append([key, _scalar(var, state.get(var, index))])
    return {"#map": pairs}


def _scalar(var: Var, value: int) -> Any:
    return bool(value) if var.values.is_bool else _int(value)


def _int(value: int) -> dict[str, str]:
    return {"#bigint": str(value)}


def _type(var: Var) -> str:
    """Apalache's notation of the variable's type."""
    value = "Bool" if var.values.is_bool else "Int"
    if not var.index:
        return value
    keys = ", ".join("Int" for _ in var.index)
    return f"{keys if len(var.index) == 1 else f'<<{keys}>>'} -> {value}"
