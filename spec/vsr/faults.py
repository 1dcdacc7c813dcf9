"""Known mistakes of real code, as named switches: each replaces or adds one action, or bends the configuration.

Ids and sources are those of the project's fault catalogue (docs/faults.md). Off by default; the normal actions do
not know them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from spec.lang import Action, SpecError, action, between, require, tagged, where, within
from spec.vsr import normal, restart
from spec.vsr.config import Config
from spec.vsr.state import NORMAL, Length, Op, Replica, View, primary


@dataclass(frozen=True)
class Fault:
    """One mistake: `actions` replace those of the same name, `added` come on top, `configure` changes the
    configuration.
    """

    id: str
    doc: str
    actions: tuple[Action, ...] = ()
    added: tuple[Action, ...] = ()
    configure: Callable[[Config], Config] = field(default=lambda cfg: cfg)

    @property
    def is_configuration(self) -> bool:
        """Is it a wrong configuration, with all actions as they should be?"""
        return not self.actions and not self.added


@action(r=Replica)
def execute(state: Any, r: Any) -> None:
    """A replica executes an op as soon as it is in its log, not when it is committed [seed 000]."""
    o = state.commit_min[r] + 1
    require(state.status[r] == NORMAL)
    require(o <= state.op[r])
    normal.run(state, r, o, state.entry[r, o])


@tagged("crash")
@action(r=Replica, n=Length)
def restart_view_from_last_prepare(state: Any, r: Any, n: Any) -> None:
    """At restart the view is inferred from the last prepare in the journal [seed 003]."""
    view = where(n == 0, 0, lambda: state.entry[r, n] - 1)
    restart.recover(state, r, n, view, view)


@action(r=Replica, v=View)
def on_get_state(state: Any, r: Any, v: Any) -> None:
    """A replica that sees a later view truncates its log to the commit number and adopts the view at once [VR
    Revisited §5.2].
    """
    require(within(View, v))
    require(v > state.view[r])
    require(primary(state, v) != r)
    require(state.received(r).sv[v])
    state.status[r] = NORMAL
    state.view[r] = v
    state.log_view[r] = v
    state.durable_view[r] = v
    state.durable_log_view[r] = v
    state.op[r] = state.commit_min[r]
    cut = between(Op, state.commit_min[r] + 1, state.op[r])
    state.entry.update((r, cut), lambda o: 0)
    state.written.update((r, cut), lambda o: False)


def _even_quorum(cfg: Config) -> Config:
    q = (cfg.replicas - 1) // 2 + 1
    return replace(cfg, quorum_replication=q, quorum_view_change=q)


def _named(name: str, act: Action) -> Action:
    return replace(act, name=name)


FAULTS = {
    f.id: f
    for f in (
        Fault("commit.apply_at_replicate", "ops are executed when replicated, not when committed", (execute,)),
        Fault("view.even_quorum", "quorum ⌊(n-1)/2⌋+1, which is half of an even n", configure=_even_quorum),
        Fault(
            "boot.view_from_last_prepare",
            "the view is inferred from the last prepare",
            (_named("restart", restart_view_from_last_prepare),),
        ),
        Fault(
            "state.getstate_truncates",
            "state transfer truncates to the commit number and adopts the view at once",
            added=(on_get_state,),
        ),
    )
}


def fault(id: str) -> Fault:
    """The fault of that id; an unknown id is an error that lists the known ones."""
    if id not in FAULTS:
        raise SpecError(f"unknown fault {id}; the specification has: {', '.join(sorted(FAULTS))}")
    return FAULTS[id]


@dataclass(frozen=True)
class Alternatives:
    """Permitted deviations for an audit: extra actions, and which of them may stand in for which action."""

    added: tuple[Action, ...]
    by_action: dict[str, tuple[str, ...]]


def alternatives(allow: tuple[str, ...]) -> Alternatives:
    """The actions that permitted deviations may use instead of the normal ones, under names of their own.

    Raises `SpecError` for an unknown id, or one that no trace event can show.
    """
    added: list[Action] = []
    by_action: dict[str, tuple[str, ...]] = {}
    for id in allow:
        mistake = fault(id)
        if mistake.added:
            raise SpecError(f"{id} cannot be allowed in an audit: no trace event shows {mistake.added[0].name}")
        for act in mistake.actions:
            name = f"{act.name}__{id.replace('.', '_')}"
            added.append(_named(name, act))
            by_action[act.name] = (*by_action.get(act.name, ()), name)
    return Alternatives(tuple(added), by_action)
