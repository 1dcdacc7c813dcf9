"""The specification's configuration for a native run, as its first boot shows it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from viewproof.refinement.events import Deviations
from viewproof.refinement.native.columns import CONFIGURED, FEATURE_MAX, NEEDED, ROUND_MAX
from viewproof.refinement.native.partitions import NUMBERED, PARTITIONS
from viewproof.spec.engines.replay.given import given
from viewproof.spec.vsr import Config
from viewproof.spec.vsr.config import ClientTable, Partitions
from viewproof.spec.vsr.faults import alternatives, fault
from viewproof.spec.vsr.parts import parts_of

IF_SHOWN = {
    "client_slots": 1 << 20,
    "client_sessions": 1,
    "client_gaps": 1,
    "pipeline": 1 << 30,
    "checkpoint_interval": 1,
    "supports": 0,
    "ring": 1,
    "feature_rounds": 1,
    "partitions": 1,
}
"""Options that a run may have had although its first event does not show them."""


def configuration(first: Mapping[str, Any], faults: frozenset[str] = frozenset()) -> Config:
    """The configuration that a boot shows. Raises `SpecError` for an impossible one."""
    replicas, q_r, q_v = (first[name] for name in NEEDED)
    slots, sessions, gaps, pipeline, journal_slots, partitions = (first[name] for name in CONFIGURED)
    table = ClientTable() if slots is None else ClientTable(slots, bool(sessions), bool(gaps), in_flight=0)
    checkpoints = bool(first["checkpoint_interval"])
    return Config(
        replicas,
        q_r,
        q_v,
        faults=faults,
        client_table=table,
        features=0 if first["supports"] is None else FEATURE_MAX,
        rounds=ROUND_MAX if first["feature_rounds"] else 0,
        checkpoints=checkpoints,
        pipeline=pipeline or 0,
        failing_appends=slots is not None,
        fence=slots is not None,
        discards=bool(first["ring"]),
        losses=bool(first["ring"]),
        journal_slots=(journal_slots or 0) if checkpoints else 0,
        partitions=Partitions(PARTITIONS if partitions else 0),
    )


def weaknesses(first: Mapping[str, Any]) -> tuple[str, ...]:
    """What the configuration that a boot shows does not promise by its design."""
    slots, sessions = first["client_slots"] or 0, bool(first["client_sessions"])
    text = ClientTable(slots, sessions).weakness
    return (f"{text} ({slots} slots)",) if text else ()


def kind(cfg: Config) -> tuple[Config, dict[str, int]]:
    """The configuration with its sizes given at run time, and these: guards compare with them, and no more."""
    sizes = {"slots": cfg.client_table.slots, "pipeline": cfg.pipeline, "journal_slots": cfg.journal_slots}
    numbers = {name: size for name, size in sizes.items() if size}
    terms: dict[str, Any] = {name: given(name) if size else 0 for name, size in sizes.items()}
    table = replace(cfg.client_table, slots=terms.pop("slots"))
    return replace(cfg, client_table=table, **terms), numbers


def numbered(cfg: Config) -> Config:
    """The configuration where partitions and consumers are numbered from 0 on."""
    return replace(cfg, partitions=Partitions(NUMBERED)) if cfg.partitions.count else cfg


@lru_cache(maxsize=64)
def _parts(cfg: Config) -> frozenset[str]:
    return parts_of(cfg)


def with_part(name: str) -> Callable[[Config], bool]:
    """Is the part on?"""
    return lambda cfg: name in _parts(cfg)


def has(state: Any, part: str) -> bool:
    """Is the part on in the configuration at hand?"""
    return part in _parts(state.cfg)


def deviations(allow: tuple[str, ...]) -> Deviations:
    """The deviations of `allow`. Raises `SpecError` for an unknown one, or one that no trace event can show."""
    found = alternatives(allow)
    of_configuration = frozenset(id for id in allow if fault(id).is_configuration)
    return Deviations(of_configuration, found.added, found.by_action)
