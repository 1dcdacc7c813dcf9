"""Known mistakes of real code, as named switches: each replaces or adds one action, or bends the configuration.

Off by default; the normal actions do not know them. Each stands with the core or the part whose actions it changes
(`Part.faults`). What else is known of one (what is wrong, the source, the model and the runs in which it shows) is its
record in viewproof/faults.toml.
"""

from __future__ import annotations

from dataclasses import dataclass

from viewproof.spec.lang import Action, SpecError
from viewproof.spec.vsr.parts import CORE, PARTS
from viewproof.spec.vsr.stand_ins import Fault, named

__all__ = ["FAULTS", "Alternatives", "Fault", "alternatives", "fault"]

FAULTS: dict[str, Fault] = {f.id: f for part in (CORE, *PARTS) for f in part.faults}


def fault(id: str) -> Fault:
    """The fault of that id; an unknown id is an error that lists the known ones."""
    if id not in FAULTS:
        raise SpecError(f"unknown fault {id}; the specification has: {', '.join(sorted(FAULTS))}")
    return FAULTS[id]


@dataclass(frozen=True)
class Alternatives:
    """Permitted deviations for an audit: extra actions, and which of them may stand in for which action."""

    added: tuple[tuple[str, Action], ...]
    by_action: dict[str, tuple[str, ...]]


def alternatives(allow: tuple[str, ...]) -> Alternatives:
    """The actions that permitted deviations may use instead of the normal ones, under names of their own.

    Raises `SpecError` for an unknown id, or one that no trace event can show.
    """
    added: list[tuple[str, Action]] = []
    by_action: dict[str, tuple[str, ...]] = {}
    for id in allow:
        mistake = fault(id)
        if mistake.added:
            raise SpecError(f"{id} cannot be allowed in an audit: no trace event shows {mistake.added[0].name}")
        if mistake.unshown:
            raise SpecError(f"{id} cannot be allowed in an audit: no trace shows {mistake.unshown}")
        for act in (*mistake.actions, *(one.action for one in mistake.if_there)):
            name = f"{act.name}__{id.replace('.', '_')}"
            added.append((act.name, named(name, act)))
            by_action[act.name] = (*by_action.get(act.name, ()), name)
    return Alternatives(tuple(added), by_action)
