"""What nodes owe: the lines that a line begun by another one must be followed by, in both replays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewproof.refinement.checker.state import RunState
from viewproof.refinement.checker.terms import ANY
from viewproof.refinement.events.lines import Owes, Rule
from viewproof.spec.engines.guards import Span
from viewproof.spec.lang.expr import Name

NAMED = ("let_", "owed_", "was_owed")
"""How the names begin that event functions give to values."""


def names_of(rule: Rule) -> tuple[Name, ...]:
    """What the rule takes of the line that led to it."""
    return () if rule.taken is None else (rule.taken.was, *rule.taken.names)


def take_owed(rule: Rule) -> Iterator[str]:
    """Lines of a handler's text: the event must be one that its node owes, if it owes any."""
    names = [name.name for name in names_of(rule)]
    yield "queue = C.due[c_node]"
    yield "if queue:"
    yield f"    if {rule.event!r} not in queue[0][0]: raise C.overdue(c_node)"
    yield "    taken = queue.pop(0)[1]"
    if rule.taken is not None and rule.taken.must:
        yield f"else: raise C.not_owed({rule.event!r})"
    elif rule.taken is not None:
        yield "else: taken = None"
    if rule.taken is not None:
        zeros = ", ".join(["0"] * len(names))
        yield f"{', '.join(names)}, = ({zeros},) if taken is None else (1, *taken)"
    if any(isinstance(line, Owes) for line in rule.lines):
        yield "owing = []"


def values_owed(rule: Rule, state: RunState, node: int) -> dict[str, Any]:
    """The same where it may be open what the node owes: the values taken, by name."""
    names = [name.name for name in names_of(rule)]
    queue = state.due[node]
    if not queue:
        if rule.taken is not None and rule.taken.must:
            raise state.not_owed(rule.event)
        return dict.fromkeys(names, 0)
    frame = queue[0]
    if frame is None:
        return {name: Span(0, 1) if place == 0 else ANY for place, name in enumerate(names)}
    if rule.event not in frame[0]:
        raise state.overdue(node)
    queue.pop(0)
    return dict(zip(names, (1, *frame[1]), strict=False))
