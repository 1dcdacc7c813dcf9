"""Named bounded models: which protocol, and how far each index reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce

from viewproof.spec.lang import Instance, Spec, SpecError, compose
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.config import ClientTable, Config
from viewproof.spec.vsr.faults import fault
from viewproof.spec.vsr.parts import CORE, PARTS
from viewproof.spec.vsr.parts.clients import requests as clients
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.profiles import profile_options

OF_SEVERAL = {
    "control_checkpoint": Model(Bounds(views=2, ops=2, requests=1), {"features": 1, "checkpoints": True}),
    "combined": Model(
        Bounds(views=2, ops=3, clients=2, requests=1, incarnations=1),
        {"client_table": ClientTable(slots=1, sessions=True), "features": 1, "checkpoints": True, "pipeline": 2},
        replicas=2,
    ),
}
"""Models of several parts together; the others are of a part (`Part.models`)."""
NAMED: dict[str, Model] = {name: found for part in (CORE, *PARTS) for name, found in part.models.items()} | OF_SEVERAL
MODELS = {name: found.bounds for name, found in NAMED.items()}
"""Model name → default bounds. A model without restarts leaves that action, and what is said of it, out."""


def build(cfg: Config, instance: Instance, name: str = "core") -> Spec:
    """The protocol under a configuration: the core, the parts that are on, and the faults named in it."""
    mistakes = [fault(id) for id in sorted(cfg.faults)]
    for mistake in mistakes:
        if reason := mistake.refuses(cfg):
            raise SpecError(f"{mistake.id} {reason}")
        cfg = mistake.configure(cfg)
    made = compose((CORE, *PARTS), cfg)
    crashes, rots = instance.bounds.get("Restart") != 0, instance.bounds.get("Rot") != 0
    for mistake in mistakes:
        mistake.require_standing(made.actions)
    changed = {act.name for mistake in mistakes for act in mistake.actions}
    if not crashes and "restart" in changed:
        raise SpecError(f"{', '.join(sorted(cfg.faults))} shows only at a restart; allow some with --restarts")
    left_out = {*(() if crashes else ("crash", "recovery")), *(() if rots else ("fault",))}
    spec = made.spec(name, cfg, instance, without=left_out)
    return reduce(lambda so_far, mistake: mistake.apply_to(so_far), mistakes, spec)


def model(
    name: str,
    *,
    replicas: int | None = None,
    faults: Iterable[str] = (),
    bounds: Bounds | None = None,
    profile: str = "core",
    **sizes: int,
) -> Spec:
    """A named bounded model; `sizes` (views, ops, clients, requests, restarts …) override its default bounds, and the
    options of a `profile` those of the model.
    """
    if name not in NAMED:
        raise SpecError(f"unknown model {name}; there are: {', '.join(NAMED)}")
    named = NAMED[name]
    limits = replace(bounds or named.bounds, **sizes)
    replicas = replicas or named.replicas
    options = {**named.options, **profile_options(profile, replicas), **limits.quorums()}
    cfg = Config(replicas, profile=profile, faults=frozenset(faults), **options)
    _require_used(name, cfg, sizes)
    ranges = dict(limits.instance(replicas).bounds)
    for part in PARTS:
        if part.is_on(cfg):
            cfg = part.fit(cfg, limits)
            ranges |= part.ranges(cfg, limits)
    return build(cfg, Instance(ranges), name)


def _require_used(name: str, cfg: Config, sizes: Mapping[str, int]) -> None:
    """Raises `SpecError` for a size of something that the protocol under this configuration does not have."""
    for size, number in sizes.items():
        lacks = [found[size] for part in PARTS if size in (found := part.sizes(cfg))]
        if number and lacks and all(lacks):
            raise SpecError(f"{name} has no {' or '.join(lacks)}: {size} {number} would say nothing")


def unbounded(cfg: Config) -> Spec:
    """The protocol with any number of views, ops, clients and requests (for traces).

    Traces show the requests that a primary drops, so these are actions here in the core, too; and messages that arrive
    after their sender lost what they carry.
    """
    if cfg.repair.recovery:
        cfg = replace(cfg, repair=replace(cfg.repair, lasting=True))
    spec = build(cfg, Instance({"Replica": cfg.replicas - 1}))
    return spec if client_table.is_on(cfg) else spec.with_actions({}, (clients.drop_request,))
