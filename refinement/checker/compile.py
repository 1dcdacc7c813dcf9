"""Compile a kind of log and a specification into one Python function per event.

`e_<event>(C, S, row)` takes the event's lines in order on the store `S`; it raises `Reject` at the first that does
not hold and `Missing` where a column is needed that the trace does not show. `C` is the run's bookkeeping
(`state.RunState`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from viewproof.refinement.checker.handlers import FILE, HandlerText, scope_of
from viewproof.refinement.checker.state import Reject, RunState
from viewproof.refinement.events.lines import Observation, Rule, Step
from viewproof.refinement.events.system import System
from viewproof.refinement.schema import Row
from viewproof.spec.engines.replay import Replay, compile_spec
from viewproof.spec.engines.replay.reference import by_interp
from viewproof.spec.lang.errors import Source

Handler = Callable[[RunState, Any, tuple[Any, ...]], None]


@dataclass(frozen=True)
class Program:
    """A compiled audit: the replay of the specification, a handler per event, and the source of the handlers.

    The handlers are for events of which all is shown; `rules` and `observed` are what they are made of. `by_action`
    names the permitted deviations that may stand in for an action; `deviations[event]` those that do other things than
    the action (action, stand-in), to be tried where an event is refused although the action was enabled. `places` says
    of each line of the source which line of an event function it is made of.
    """

    system: System
    replay: Replay
    handlers: Mapping[str, Handler]
    source: str
    places: tuple[Source | None, ...]
    rules: Mapping[str, Rule]
    observed: tuple[Observation, ...]
    by_action: Mapping[str, tuple[str, ...]]
    deviations: Mapping[str, tuple[tuple[str, str], ...]]

    def new_run(self, boot: Row) -> RunState:
        """The bookkeeping of a run whose configuration the row shows."""
        spec = self.replay.spec
        return RunState(spec.cfg.replicas, spec.schema, boot, self.system, self.observed)

    def place_of(self, reject: Reject) -> Source | None:
        """The line of the event function that refused, if one did."""
        traceback = reject.__traceback__
        while traceback is not None:
            if traceback.tb_frame.f_code.co_filename == FILE:
                return self.places[traceback.tb_lineno - 1]
            traceback = traceback.tb_next
        return None


@lru_cache(maxsize=32)
def compile_program(
    system: System, cfg: Any, allow: tuple[str, ...], engine: str = "replay", *, optional: bool = False
) -> Program:
    """Compile the audit for one configuration; `allow` names permitted deviations, `optional` tells of a run that shows
    optional columns.

    `engine` "interp" lets the reference interpreter take every step: slow, and the judge of the compiled replay.
    Raises `SpecError` for an unknown deviation or one that the audit cannot permit, by name.
    """
    spec = system.profile.spec(cfg)
    rules, observed = system.rules_for(spec), system.observations_for(spec, optional=optional)
    extra = system.profile.deviations(allow)
    replay = compile_spec(extra.added_to(spec))
    if engine == "interp":
        replay = by_interp(replay)
    lines: list[str] = []
    places: list[Source | None] = []
    for rule in rules.values():
        text = HandlerText(system, rule, replay, observed)
        lines += text.lines
        places += text.places
    source = "\n".join(lines)
    scope = scope_of(replay, rules, observed)
    exec(compile(source, FILE, "exec"), scope)
    return Program(
        system,
        replay,
        {event: scope[f"e_{event}"] for event in rules},
        source,
        tuple(places),
        rules,
        observed,
        extra.by_action,
        _deviations(rules, replay, extra.by_action),
    )


def _deviations(
    rules: Mapping[str, Rule], replay: Replay, by_action: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """By event: (action, stand-in) for stand-ins that do other things than the action does."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for action, stand_ins in by_action.items():
        for stand_in in stand_ins:
            if _effects(replay, action) == _effects(replay, stand_in):
                continue
            for event, rule in rules.items():
                if any(isinstance(line, Step) and line.action == action for line in rule.lines):
                    found[event] = (*found.get(event, ()), (action, stand_in))
    return found


def _effects(replay: Replay, action: str) -> list[tuple[Any, ...]]:
    updates = replay.spec.ir(action).updates
    return [(u.var.name, *(i.key() for i in u.index), u.value.key()) for u in updates]
