"""Named bounded models: which protocol, and how far each index reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from viewproof.spec.lang import Instance, Spec, SpecError, compose
from viewproof.spec.vsr.bounds import Bounds
from viewproof.spec.vsr.config import ClientTable, Config, Partitions, Repair
from viewproof.spec.vsr.core.invariants import restarted_normal
from viewproof.spec.vsr.faults import fault
from viewproof.spec.vsr.parts import CORE, PARTS
from viewproof.spec.vsr.parts.checkpoints.checkpoint import executed_after_restart
from viewproof.spec.vsr.parts.clients import requests as clients
from viewproof.spec.vsr.parts.clients import table as client_table
from viewproof.spec.vsr.parts.iggy import AFTER_A_CRASH as IGGY_AFTER_A_CRASH
from viewproof.spec.vsr.parts.partitions import invariants as partition_invariants
from viewproof.spec.vsr.parts.recovery import AFTER_RECOVERY, AFTER_ROT
from viewproof.spec.vsr.profiles import profile_options

MODELS = {
    "core": Bounds(views=3, ops=2),
    "core_restart": Bounds(views=2, ops=2, restarts=1),
    "control": Bounds(views=2, ops=2, requests=1),
    "control_checkpoint": Bounds(views=2, ops=2, requests=1),
    "checkpoint": Bounds(views=2, ops=2, requests=2, restarts=1),
    "ring": Bounds(views=2, ops=2, requests=2, restarts=1),
    "drain": Bounds(views=2, ops=2, requests=2, restarts=1),
    "combined": Bounds(views=2, ops=3, clients=2, requests=1, incarnations=1),
    "pipeline": Bounds(views=2, ops=2, clients=2, requests=1),
    "append_failure": Bounds(views=2, ops=2, requests=2),
    "discard": Bounds(views=2, ops=1, requests=1, restarts=1),
    "loss": Bounds(views=2, ops=1, requests=1, restarts=1),
    "clients": Bounds(views=2, ops=2, clients=2, requests=1, incarnations=1),
    "sessions": Bounds(views=2, ops=4, clients=2, requests=2, incarnations=2),
    "iggy": Bounds(views=2, ops=4, clients=2, requests=2),
    "repair": Bounds(views=2, ops=1, requests=1, rots=1),
    "recovery": Bounds(views=2, ops=1, requests=1, restarts=1, rots=1),
    "superblock": Bounds(views=2, ops=1, requests=1, restarts=1, rots=1),
    "headers": Bounds(views=2, ops=2, clients=2, requests=1),
    "diskless": Bounds(views=2, ops=1, requests=1, restarts=1),
    "partitions": Bounds(views=2, ops=2, requests=2, restarts=1, rots=1, partitions=1, readers=1, messages=2),
    "iggy_views": Bounds(views=3, ops=1, requests=1),
    "iggy_log": Bounds(views=2, ops=2, clients=2, requests=1),
    "iggy_crash": Bounds(views=2, ops=1, requests=1, restarts=1),
    "iggy_four": Bounds(views=2, ops=1, requests=1),
    "alone": Bounds(views=3, ops=2, clients=2, requests=1, restarts=2, rots=1),
}
"""Model name → default bounds. A model without restarts leaves that action, and what is said of it, out."""

OPTIONS: dict[str, dict[str, Any]] = {
    "control": {"features": 2, "unsupported": frozenset({(1, 2)})},
    "control_checkpoint": {"features": 1, "checkpoints": True},
    "checkpoint": {"checkpoints": True},
    "ring": {"checkpoints": True, "journal_slots": 1},
    "drain": {"checkpoints": True, "journal_slots": 1, "drains_later": True},
    "combined": {
        "client_table": ClientTable(slots=1, sessions=True),
        "features": 1,
        "checkpoints": True,
        "pipeline": 2,
    },
    "pipeline": {"pipeline": 1},
    "append_failure": {"failing_appends": True},
    "discard": {"discards": True},
    "loss": {"losses": True, "checkpoints": True},
    "clients": {"client_table": ClientTable(slots=1, sessions=True)},
    "sessions": {"client_table": ClientTable(slots=1, sessions=True, in_flight=2)},
    "iggy": {"client_table": ClientTable(slots=2, gaps=True)},
    "repair": {"repair": Repair("nonce")},
    "recovery": {"repair": Repair("nonce")},
    "superblock": {"repair": Repair("superblock")},
    "headers": {"repair": Repair("nonce", headers=1)},
    "diskless": {"repair": Repair("nonce", diskless=True), "quorum_replication": 3, "quorum_view_change": 2},
    "partitions": {"checkpoints": True, "partitions": Partitions(count=1, files=True)},
    "iggy_views": {"repair": Repair("probe")},
    "iggy_log": {"repair": Repair("probe")},
    "iggy_crash": {"repair": Repair("probe")},
    "iggy_four": {"repair": Repair("probe"), "quorum_replication": 2, "quorum_view_change": 3},
    "alone": {"repair": Repair("superblock")},
}
"""Model name → options of its configuration, where it is more than the core."""

AFTER_A_CRASH = (
    restarted_normal,
    executed_after_restart,
    *AFTER_RECOVERY,
    *IGGY_AFTER_A_CRASH,
    *partition_invariants.AFTER_A_CRASH,
)
"""Witnesses that a model without restarts leaves out."""

REPLICAS = {"combined": 2, "sessions": 2, "iggy": 2, "diskless": 4, "partitions": 2, "iggy_four": 4, "alone": 1}
"""Model name → replicas, where they are not 3."""


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
    impossible = (*(() if crashes else AFTER_A_CRASH), *(() if rots else (*AFTER_ROT, *partition_invariants.AFTER_ROT)))
    spec = made.spec(name, cfg, instance, without=left_out, unreachable=impossible)
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
    if name not in MODELS:
        raise SpecError(f"unknown model {name}; there are: {', '.join(MODELS)}")
    limits = replace(bounds or MODELS[name], **sizes)
    replicas = replicas or REPLICAS.get(name, 3)
    options = {**OPTIONS.get(name, {}), **profile_options(profile, replicas), **limits.quorums()}
    cfg = Config(replicas, profile=profile, faults=frozenset(faults), **options)
    _require_used(name, cfg, sizes)
    slots = limits.slots or min(cfg.client_table.slots, limits.clients)  # more are never used
    cfg = replace(cfg, client_table=replace(cfg.client_table, slots=slots))
    if cfg.partitions.count:
        limits = replace(limits, partitions=limits.partitions or cfg.partitions.count)
        cfg = replace(cfg, partitions=replace(cfg.partitions, count=limits.partitions))
    if cfg.client_table.sessions:
        limits = replace(limits, incarnations=max(1, limits.incarnations))
    instance = limits.instance(replicas)
    if client_table.is_on(cfg):
        instance = Instance({**instance.bounds, "Outcome": len(client_table.Outcome.labels) - 1})
    if cfg.features:
        instance = Instance({**instance.bounds, "Feature": cfg.features})
    if cfg.repair.recovery or cfg.partitions.files:
        instance = Instance({**instance.bounds, "Rot": limits.rots})
    return build(cfg, instance, name)


def _require_used(name: str, cfg: Config, sizes: Mapping[str, int]) -> None:
    """Raises `SpecError` for a size of something that the protocol under this configuration does not have."""
    absent = {
        "incarnations": not cfg.client_table.sessions and "sessions",
        "slots": not cfg.client_table.slots and "fixed number of slots",
        "rots": cfg.repair.recovery in ("", "probe") and not cfg.partitions.files and "repair of journals or segments",
        **dict.fromkeys(("partitions", "readers", "messages"), not cfg.partitions.count and "partitions"),
    }
    for size, what in absent.items():
        if what and sizes.get(size):
            raise SpecError(f"{name} has no {what}: {size} {sizes[size]} would say nothing")


def unbounded(cfg: Config) -> Spec:
    """The protocol with any number of views, ops, clients and requests (for traces).

    Traces show the requests that a primary drops, so these are actions here in the core, too; and messages that arrive
    after their sender lost what they carry.
    """
    if cfg.repair.recovery:
        cfg = replace(cfg, repair=replace(cfg.repair, lasting=True))
    spec = build(cfg, Instance({"Replica": cfg.replicas - 1}))
    return spec if client_table.is_on(cfg) else spec.with_actions({}, (clients.drop_request,))
