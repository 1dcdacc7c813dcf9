"""What an optional part of the protocol is made of, and how parts are put together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from viewproof.spec.lang import Action, Predicate, Schema
from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class Module:
    """One part: `option` is its name, `is_on` reads the configuration.

    `actions` replace those of the same name and come on top otherwise; `removes` names actions that make no sense
    with it. `invariants` replace those of the same id, and come on top otherwise.
    """

    option: str
    is_on: Callable[[Config], bool]
    declare: Callable[[Schema, Config], None] = lambda schema, cfg: None
    actions: Callable[[Config], tuple[Action, ...]] = lambda cfg: ()
    removes: Callable[[Config], tuple[str, ...]] = lambda cfg: ()
    invariants: Callable[[Config], tuple[Predicate, ...]] = lambda cfg: ()
    witnesses: Callable[[Config], tuple[Predicate, ...]] = lambda cfg: ()


@dataclass
class Parts:
    """What a specification is built from."""

    actions: dict[str, Action] = field(default_factory=dict)
    invariants: dict[str, Predicate] = field(default_factory=dict)
    witnesses: list[Predicate] = field(default_factory=list)

    def apply(self, module: Module, cfg: Config) -> None:
        """Add a module that is on."""
        for name in module.removes(cfg):
            self.actions.pop(name, None)
        self.actions.update({a.name: a for a in module.actions(cfg)})
        self.invariants.update({p.id: p for p in module.invariants(cfg)})
        self.witnesses.extend(module.witnesses(cfg))
