"""What a known mistake is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from viewproof.faults import Record, records
from viewproof.spec.lang import Action, Spec, SpecError


@dataclass(frozen=True)
class StandIn:
    """An action of a mistake, and the one that it is a mistake of (any of several)."""

    of: tuple[Action, ...]
    action: Action


def instead_of(*of: Action, act: Action) -> StandIn:
    """`act` stands in for `of`, under its name."""
    return StandIn(of, replace(act, name=of[0].name))


def beside(of: Action, act: Action) -> StandIn:
    """`act` is there besides `of`: who may not take that may not take this."""
    return StandIn((of,), act)


@dataclass(frozen=True)
class Fault:
    """One mistake: `stands_in` replaces actions, `if_there` those that not every configuration has, `comes_on_top` adds
    some, `configure` changes the configuration.

    `drops`: the guards, as they stand in the specification, that the stand-ins take away, or ask of something else
    (another op, another nonce); they keep all others, those of every part included. `refuses` says why it cannot show
    under a configuration ("" if it can). `unshown`: what its steps read that no trace shows ("": nothing).
    """

    id: str
    stands_in: tuple[StandIn, ...] = ()
    if_there: tuple[StandIn, ...] = ()
    drops: tuple[str, ...] = ()
    comes_on_top: tuple[StandIn, ...] = ()
    configure: Callable[[Any], Any] = field(default=lambda cfg: cfg)
    refuses: Callable[[Any], str] = field(default=lambda cfg: "")
    unshown: str = ""

    @property
    def record(self) -> Record:
        """What else is known of it. Raises `SpecError` if the catalogue says nothing of it as one of the spec."""
        found = records().get(self.id)
        if found is None or not found.spec or not found.model:
            raise SpecError(f"{self.id} has no record as a fault of the spec, with a model (viewproof/faults.toml)")
        return found

    @property
    def doc(self) -> str:
        """What is wrong, in a sentence."""
        return self.record.spec

    @property
    def actions(self) -> tuple[Action, ...]:
        """The stand-ins."""
        return tuple(stand_in.action for stand_in in self.stands_in)

    @property
    def added(self) -> tuple[Action, ...]:
        """The actions that come on top."""
        return tuple(more.action for more in self.comes_on_top)

    @property
    def is_configuration(self) -> bool:
        """Is it a wrong configuration, with all actions as they should be?"""
        return not self.stands_in and not self.added

    def apply_to(self, spec: Spec) -> Spec:
        """The specification with the mistake, and all that parts put around the actions that it is a mistake of."""
        more = [spec.in_place_of(one.of[0].name, one.action) for one in self.comes_on_top]
        there = {act.name for act in spec.actions}
        others = (one.action for one in self.if_there if one.action.name in there)
        return spec.with_actions({act.name: act for act in (*self.actions, *others)}, more)

    def require_standing(self, standing: Mapping[str, Action]) -> None:
        """Raises `SpecError` where a part has replaced an action that it is a mistake of."""
        for stand_in in self.stands_in:
            act = standing.get(stand_in.action.name)
            if act is not None and not any(act is of for of in stand_in.of):
                raise SpecError(f"{self.id} is a mistake in another {act.name} than this configuration has")


def named(name: str, act: Action) -> Action:
    """The action under another name."""
    return replace(act, name=name)
