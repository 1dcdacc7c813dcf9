"""Named bounded models: how far each index reaches, and the specification for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from viewproof.spec.lang import Instance, Part, Spec, SpecError, compose
from viewproof.spec.oxia import election, replication
from viewproof.spec.oxia.config import Config
from viewproof.spec.oxia.control import CONTROL
from viewproof.spec.oxia.faults import fault
from viewproof.spec.oxia.invariants import INVARIANTS, WITNESSES
from viewproof.spec.oxia.reach import REACH
from viewproof.spec.oxia.state import History, Messages, Servers
from viewproof.spec.sizes import NARROWS

ACTIONS = (
    election.start_election,
    election.on_new_term,
    election.elect,
    election.become_leader,
    election.on_truncate,
    election.add_follower,
    election.open_term,
    election.start_leading,
    replication.propose,
    replication.sync_proposals,
    replication.on_append,
    replication.on_duplicate,
    replication.sync,
    replication.commit,
    replication.apply,
    replication.restart,
)
CORE = Part(
    "core",
    lambda cfg: True,
    state=lambda cfg: (Servers, Messages, History),
    actions=lambda cfg: ACTIONS,
    invariants=lambda cfg: INVARIANTS,
    witnesses=lambda cfg: WITNESSES,
)
PARTS = (CONTROL, REACH)


@dataclass(frozen=True)
class Bounds:
    """Size of a finite model: terms 1 .. terms, offsets 1 .. offsets, crashes in all, features, servers that take turns
    (fewer are reached in a term, so many terms stay a small model).
    """

    terms: int = 2
    offsets: int = 1
    restarts: int = 0
    features: int = 0
    turns: int = field(default=0, metadata=NARROWS)

    def instance(self, replicas: int) -> Instance:
        """The index ranges."""
        for name, value in vars(self).items():
            least = 1 if name in ("terms", "offsets") else 0
            if value < least:
                raise SpecError(f"{name} must be at least {least}, not {value}")
        bounds = {"Replica": replicas - 1, "Term": self.terms, "Offset": self.offsets, "Restart": self.restarts}
        return Instance({**bounds, "Feature": self.features} if self.features else bounds)


MODELS = {
    "oxia": Bounds(terms=2, offsets=2),
    "oxia_terms": Bounds(terms=3, offsets=1),
    "oxia_restart": Bounds(terms=2, offsets=1, restarts=1),
    "oxia_control": Bounds(terms=2, offsets=1, features=1),
    "oxia_turns": Bounds(terms=4, offsets=2, turns=2),
}
"""Model name → default bounds. `oxia_turns`: in odd terms server 1 is not reached, in even ones server 0."""


def build(cfg: Config, instance: Instance, name: str = "oxia") -> Spec:
    """The specification for a configuration, with its faults switched on.

    Raises `SpecError` for an unknown fault, or one that cannot show there.
    """
    crashes = instance.bounds.get("Restart") != 0
    spec = compose((CORE, *PARTS), cfg).spec(name, cfg, instance, without=() if crashes else ("crash",))
    for id in sorted(cfg.faults):
        mistake = fault(id)
        if reason := mistake.refuses(cfg):
            raise SpecError(f"{id} {reason}")
        if not crashes and any("crash" in a.tags for a in mistake.actions):
            raise SpecError(f"{id} shows only at a restart; allow some with --restarts")
        spec = replace(spec, actions=tuple(a for a in spec.actions if a.name not in mistake.removes))
        spec = spec.with_actions({a.name: a for a in mistake.actions}, mistake.added)
    return spec


def model(
    name: str,
    *,
    replicas: int | None = None,
    faults: Iterable[str] = (),
    bounds: Bounds | None = None,
    **sizes: int,
) -> Spec:
    """A named bounded model; `sizes` (terms, offsets, restarts, features, turns) override its default bounds."""
    if name not in MODELS:
        raise SpecError(f"unknown model {name}; there are: {', '.join(MODELS)}")
    limits = replace(bounds or MODELS[name], **sizes)
    cfg = Config(replicas or 3, features=limits.features, turns=limits.turns, faults=frozenset(faults))
    return build(cfg, limits.instance(cfg.replicas), name)
