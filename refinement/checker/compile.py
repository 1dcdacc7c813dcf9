"""Compile a kind of log and a specification into one Python function per event.

`e_<event>(C, S, row)` takes the event's lines in order on the store `S`; it raises `Reject` at the first that does
not hold and `Missing` where a column is needed that the trace does not show. `C` is the run's bookkeeping
(`state.RunState`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from types import CodeType
from typing import Any

from viewproof.refinement.checker.handlers import FILE, HandlerText, scope_of
from viewproof.refinement.checker.owed import NAMED
from viewproof.refinement.checker.state import Reject, RunState
from viewproof.refinement.events.lines import Observation, Owes, Rule, Step
from viewproof.refinement.events.system import Deviations, System
from viewproof.refinement.schema import Row
from viewproof.spec.engines.replay import Replay
from viewproof.spec.engines.replay.compile import code_of, compile_actions, link
from viewproof.spec.engines.replay.reference import by_interp
from viewproof.spec.lang import Action, Spec, SpecError
from viewproof.spec.lang.errors import Source

Handler = Callable[[RunState, Any, tuple[Any, ...]], None]


@dataclass(frozen=True)
class Kind:
    """What is compiled once for all configurations that differ in numbers alone: the code of actions and handlers.

    `rules` and `observed` are what the handlers are made of, with given numbers; `places` says of each line of a
    handler's text which line of an event function it is made of. `by_action` names the permitted deviations that may
    stand in for an action; `deviations[event]` those that do other things than the action (action, stand-in), to be
    tried where an event is refused although the action was enabled. `permitted` are those
    that fit, `unfit` names the others: they say nothing of these configurations.
    """

    actions: Mapping[str, CodeType]
    handlers: Mapping[str, CodeType]
    places: Mapping[str, list[Source | None]]
    rules: Mapping[str, Rule]
    observed: tuple[Observation, ...]
    by_action: Mapping[str, tuple[str, ...]]
    deviations: Mapping[str, tuple[tuple[str, str], ...]]
    permitted: Deviations
    unfit: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A compiled audit of one configuration: the replay of the specification, and a handler per event, for events of
    which all is shown.
    """

    system: System
    kind: Kind
    replay: Replay
    handlers: Mapping[str, Handler]
    optional: bool

    @cached_property
    def rules(self) -> Mapping[str, Rule]:
        """The rules with the numbers of this configuration."""
        return self.system.rules_for(self.replay.spec)

    @cached_property
    def observed(self) -> tuple[Observation, ...]:
        """What every event shows of its node, with the numbers of this configuration."""
        return self.system.observations_for(self.replay.spec, optional=self.optional)

    def new_run(self, boot: Row) -> RunState:
        """The bookkeeping of a run whose configuration the row shows."""
        spec = self.replay.spec
        return RunState(self.system.profile.nodes(spec.cfg), spec.schema, boot, self.system, self.kind.observed)

    def locate(self, reject: Reject) -> None:
        """Note the line of the event function that refused, if one did, and what it had given names to."""
        traceback = reject.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if code.co_filename == FILE:
                reject.place = self.kind.places[code.co_name.removeprefix("e_")][traceback.tb_lineno - 1]
                named = traceback.tb_frame.f_locals.items()
                reject.lets = {name: value for name, value in named if name.startswith(NAMED)}
                return
            traceback = traceback.tb_next


@lru_cache(maxsize=256)
def compile_program(
    system: System, cfg: Any, allow: tuple[str, ...], engine: str = "replay", *, optional: bool = False
) -> Program:
    """The audit for one configuration; `allow` names permitted deviations, `optional` tells of a run that shows
    optional columns.

    `engine` "interp" lets the reference interpreter take every step: slow, and the judge of the compiled replay.
    Raises `SpecError` for an unknown deviation or one that the audit cannot permit, by name.
    """
    profile = system.profile
    kind_cfg, numbers = profile.kind(cfg)
    kind = compile_kind(system, kind_cfg, allow, optional=optional)
    replay = link(profile.spec(cfg).with_stand_ins(kind.permitted.added), kind.actions, numbers)
    if engine == "interp":
        replay = by_interp(replay)
    scope = scope_of(replay, kind.rules, kind.observed, numbers)
    for code in kind.handlers.values():
        exec(code, scope)
    return Program(system, kind, replay, {event: scope[f"e_{event}"] for event in kind.handlers}, optional)


@lru_cache(maxsize=64)
def compile_kind(system: System, cfg: Any, allow: tuple[str, ...], *, optional: bool) -> Kind:
    """Compile the audit for all configurations of one kind: `cfg` with given numbers."""
    spec = system.profile.spec(cfg)
    rules, observed = system.rules_for(spec), system.observations_for(spec, optional=optional)
    deviations, extra = system.profile.deviations, permitted(system, spec, allow)
    full = spec.with_stand_ins(extra.added)
    owing = any(isinstance(line, Owes) for rule in rules.values() for line in rule.lines)
    stand_ins = extra.by_action if system.profile.whole else {}
    texts = {event: HandlerText(system, rule, full, observed, owing, stand_ins) for event, rule in rules.items()}
    return Kind(
        compile_actions(full),
        {event: code_of("\n".join(text.lines), FILE) for event, text in texts.items()},
        {event: text.places for event, text in texts.items()},
        rules,
        observed,
        extra.by_action,
        _deviations(rules, full, extra.by_action),
        extra,
        tuple(id for id in allow if deviations((id,)).added and not permitted(system, spec, (id,)).added),
    )


def permitted(system: System, spec: Spec, allow: tuple[str, ...]) -> Deviations:
    """The permitted deviations that fit the specification."""
    return system.profile.deviations(allow).only(partial(_fits, spec))


def _fits(spec: Spec, name: str, act: Action) -> bool:
    """Has the specification the action, and can the stand-in for it be replayed: are all that it speaks of declared?"""
    try:
        spec.action(name)
        compile_actions(replace(spec, actions=(spec.in_place_of(name, act),)))
    except SpecError:
        return False
    return True


def _deviations(
    rules: Mapping[str, Rule], spec: Spec, by_action: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """By event: (action, stand-in) for stand-ins that do other things than the action does."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for action, stand_ins in by_action.items():
        for stand_in in stand_ins:
            if _effects(spec, action) == _effects(spec, stand_in):
                continue
            for event, rule in rules.items():
                if any(isinstance(line, Step) and line.action == action for line in rule.lines):
                    found[event] = (*found.get(event, ()), (action, stand_in))
    return found


def _effects(spec: Spec, action: str) -> list[tuple[Any, ...]]:
    updates = spec.ir(action).updates
    return [(u.var.name, *(i.key() for i in u.index), u.value.key()) for u in updates]
