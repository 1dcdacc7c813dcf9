"""Say why a line is refused: the guard that was false with its values, the state around it, the deviation that fits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from viewproof.refinement.values import show_value
from viewproof.spec.engines.replay import TAKEN, Replay
from viewproof.spec.lang.expr import Expr, Name, Read, walk

VALUES_MAX = 16
LEAVES_MAX = 40


def guard_text(replay: Replay, store: Any, action: str, conjunct: int, args: Mapping[str, int], nodes: int) -> str:
    """`action(args): guard is false (values) [place]`."""
    guard = replay.spec.ir(action).guards[conjunct]
    call = ", ".join(f"{name}={value}" for name, value in args.items())
    values = ", ".join(f"{name} = {value}" for name, value in read_values(replay, store, guard.cond, args, nodes))
    return f"{action}({call}): {guard.source.text} is false ({values}) [{guard.source}]"


def read_values(replay: Replay, store: Any, cond: Expr, args: Mapping[str, int], nodes: int) -> list[tuple[str, str]]:
    """What the condition reads, with its values; a read under a quantifier over replicas once per replica."""
    found: dict[str, str] = {}
    for read in (node for node in walk(cond) if isinstance(node, Read)):
        free = {node.name for node in walk(read) if isinstance(node, Name)} - set(args)
        if len(free) > 1:
            continue
        for member in range(nodes) if free else (0,):
            env = {**args, **dict.fromkeys(free, member)}
            try:
                index = ", ".join(str(_value(replay, store, expr, env)) for expr in read.index)
                value = _value(replay, store, read, env)
            except (KeyError, IndexError, TypeError, NameError):
                continue
            found[f"{read.var.name}[{index}]" if read.index else read.var.name] = show_value(read.var, value)
    return sorted(found.items())[:VALUES_MAX]


def _value(replay: Replay, store: Any, expr: Expr, env: Mapping[str, int]) -> int:
    text = replay.emitter.text(expr, {name: str(value) for name, value in env.items()})
    return int(eval(text, {"S": store}))  # noqa: S307 - text that the replay's own emitter wrote


def state_around(replay: Replay, store: Any, node: int, args: Mapping[str, int]) -> dict[str, str]:
    """Scalars of the replica, and the cells of its rows at the numbers that the step is about."""
    near = {value for name, value in args.items() if name != "r"}
    scalars: dict[str, str] = {}
    cells: dict[str, str] = {}
    for var in replay.spec.schema.vars.values():
        shape = replay.layout.shape(var)
        if shape == "list":
            value = getattr(store, f"v_{var.name}")[node]
            if value != var.init:
                scalars[f"{var.name}[{node}]"] = show_value(var, value)
        elif shape == "rows":
            for key, value in sorted(getattr(store, f"v_{var.name}")[node].items()):
                index = key if isinstance(key, tuple) else (key,)
                if index[0] in near and value != var.init:
                    cells[f"{var.name}[{', '.join(map(str, (node, *index)))}]"] = show_value(var, value)
    return dict(list({**scalars, **cells}.items())[:LEAVES_MAX])


def known_deviations(replay: Replay, store: Any, action: str, args: Mapping[str, int]) -> Iterator[str]:
    """Which known deviations would take the step. (The store is not used after.)"""
    for name, function in replay.functions.items():
        own, _, fault = name.partition("__")
        if own == action and fault and function(store, *args.values()) == TAKEN:
            id = fault.replace("_", ".", 1)
            yield f"the known deviation {id} does it: {replay.spec.action(name).doc} (--allow {id})"
