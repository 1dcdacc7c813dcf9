"""The two families of logs: how to tell them, and how to compile what judges them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from viewproof.refinement.tigerbeetle import mapping_2022, mapping_2026, patterns_2022, patterns_2026
from viewproof.refinement.tigerbeetle.bookkeeping import HELPERS
from viewproof.refinement.tigerbeetle.compile import Program, compile_table
from viewproof.refinement.tigerbeetle.rules import Rule
from viewproof.refinement.tigerbeetle.table import Table
from viewproof.spec.engines.replay import Store, compile_spec
from viewproof.spec.lang import Action, Spec
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.tigerbeetle import july_2026, june_2022, state_2022, state_2026

INIT: Final = re.compile(
    r"\[\w+\] \(replica\): \d+(?P<mark>[a-zA-Z]?): init: replica_count=(?P<n>\d+) "
    r"quorum_view_change=(?P<q_v>\d+) quorum_replication=(?P<q_r>\d+)(?P<release> release=\S+)?$"
)
"""The line of a replica that starts: the first that tells family and configuration."""


@dataclass(frozen=True)
class Family:
    """All that one family needs; `constants` are the names that its mapping may use."""

    name: str
    profile: str
    table: Table
    rules: tuple[Rule, ...]
    specification: Callable[[Config, tuple[str, ...], int], Spec]
    deviations: Mapping[str, tuple[Action, ...]]
    constants: Callable[[Config, int], Mapping[str, Any]]
    prepare_store: Callable[[Store, Config, int], None]


@dataclass(frozen=True)
class Cluster:
    """Family and configuration of a run, as its first lines tell; `nodes` counts standbys, too."""

    family: Family
    replicas: int
    quorum_view_change: int
    quorum_replication: int
    nodes: int


def _constants_2022(cfg: Config, nodes: int) -> Mapping[str, Any]:
    case = 1 if cfg.replicas == 1 else 0
    labels = {(f"@{label}", by_count[case]): body for label, (by_count, body) in _CASES_2022.items()}
    early = {(f"@{label}", by_count[case]): body for label, (by_count, body) in _EARLY_CASES_2022.items()}
    return {
        "SLOTS": state_2022.SLOTS,
        "HEADER_SIZE": state_2022.HEADER_SIZE,
        "SECTOR": state_2022.SECTOR,
        "KIND": state_2022.KIND,
        "STATUS": state_2022.Status.labels,
        "DECISIONS": {"nil": 0, "eql": 1, "fix": 2, "vsr": 3, "cut": 4},
        "UNUSED": _UNUSED_2022,
        "RECOVERY_LABELS": labels | {("@Truncate", "cut"): 0},
        "EARLY_LABELS": early | {("@Truncate", "cut"): 0},
        "HEADERS_SIZE": state_2022.SLOTS * 128,
        "PREPARE_SIZE": 1 << 20,
        "SECTOR_SIZE": 4096,
    }


_UNUSED_2022: Final = {
    "commit": ("parent", "client", "request", "op", "timestamp"),
    "start_view_change": ("parent", "client", "context", "request", "op", "commit", "timestamp"),
    "do_view_change": ("parent", "client", "context", "request"),
    "start_view": ("parent", "client", "context", "request", "timestamp"),
    "recovery": ("parent", "client", "request", "op", "commit", "timestamp", "view"),
    "recovery_response": ("parent", "client", "request", "timestamp"),
    "request_start_view": ("parent", "client", "context", "request", "op", "commit", "timestamp"),
    "request_headers": ("parent", "client", "context", "request", "timestamp"),
    "request_prepare": ("parent", "client", "request", "commit"),
    "headers": ("parent", "client", "context", "request", "op", "commit", "timestamp"),
    "nack_prepare": ("parent", "client", "request", "commit", "timestamp"),
}
"""Fields of the one header that all messages share which have no meaning in a kind of message."""

_CASES_2022: Final = {
    "A": (("vsr", "vsr"), 0),
    "B": (("vsr", "vsr"), 0),
    "C": (("vsr", "vsr"), 0),
    "D": (("vsr", "vsr"), 0),
    "E": (("vsr", "fix"), 1),
    "F": (("fix", "fix"), 1),
    "G": (("vsr", "fix"), 1),
    "H": (("fix", "fix"), 1),
    "I": (("vsr", "vsr"), 0),
    "J": (("nil", "nil"), 0),
    "K": (("fix", "fix"), 1),
    "L": (("vsr", "vsr"), 1),
    "M": (("vsr", "vsr"), 1),
    "N": (("eql", "eql"), 1),
}
"""Label of a slot's recovery → decision (with other replicas, alone), and whether its prepare can be read."""

_EARLY_CASES_2022: Final = {
    "A": (("vsr", "vsr"), 0),
    "B": (("vsr", "vsr"), 0),
    "C": (("vsr", "vsr"), 0),
    "D": (("vsr", "vsr"), 0),
    "E": (("vsr", "fix"), 1),
    "F": (("vsr", "fix"), 1),
    "G": (("vsr", "vsr"), 0),
    "H": (("nil", "nil"), 0),
    "I": (("fix", "fix"), 1),
    "J": (("vsr", "vsr"), 1),
    "K": (("vsr", "vsr"), 1),
    "L": (("eql", "eql"), 1),
}
"""The same for builds of the first week of June, whose table does not know the highest op of the prepares."""


def _store_2022(store: Any, cfg: Config, nodes: int) -> None:
    """A formatted data file holds the root in slot 0."""
    for r in range(nodes):
        store.v_disk_body[r][0] = state_2022.ROOT
        store.v_disk_header[r][0] = state_2022.ROOT


FAMILY_2022: Final = Family(
    "2022",
    june_2022.PROFILE,
    patterns_2022.TABLE,
    mapping_2022.RULES,
    lambda cfg, allow, nodes: june_2022.spec_2022(cfg, allow),
    june_2022.DEVIATIONS,
    _constants_2022,
    _store_2022,
)

_CASES_2026: Final = {
    "A": ("vsr", "vsr"),
    "B": ("vsr", "vsr"),
    "C": ("vsr", "vsr"),
    "D": ("vsr", "fix"),
    "E": ("vsr", "fix"),
    "F": ("fix", "fix"),
    "G": ("fix", "fix"),
    "H": ("cut", "unr"),
    "I": ("cut", "unr"),
    "J": ("cut", "unr"),
    "K": ("vsr", "vsr"),
    "L": ("nil", "nil"),
    "M": ("fix", "fix"),
    "N": ("vsr", "vsr"),
    "O": ("vsr", "vsr"),
    "P": ("eql", "eql"),
}
"""Label of a slot's recovery → decision with other replicas, alone."""


def _constants_2026(cfg: Config, nodes: int) -> Mapping[str, Any]:
    labels = {
        (f"@{label}", decision, alone)
        for label, decisions in _CASES_2026.items()
        for alone, decision in zip((False, True), decisions, strict=True)
    }
    return {
        "SLOTS": state_2026.SLOTS,
        "SUFFIX": state_2026.SUFFIX,
        "HEADER_SIZE": state_2026.HEADER_SIZE,
        "KIND": state_2026.KIND,
        "OTHER": state_2026.KIND["other"],
        "COMPOSED": ("prepare", "prepare_ok", "commit", "exit_view", "join_view", "view", "get_view", "headers"),
        "STATUS": state_2026.Status.labels,
        "DECISIONS": {"nil": 0, "eql": 1, "fix": 2, "vsr": 3, "cut": 4, "cut_torn": 5},
        "RECOVERY_LABELS": labels | {("@TruncateTorn", "cut_torn", alone) for alone in (False, True)},
    }


def _store_2026(store: Any, cfg: Config, nodes: int) -> None:
    """A formatted data file holds the root in slot 0."""
    store.v_prepared[0, 0] = state_2026.ROOT
    store.v_canonical[0] = state_2026.ROOT
    for r in range(nodes):
        store.v_on_disk[r][state_2026.ROOT] = True
        store.v_kept[r][0] = state_2026.ROOT


FAMILY_2026: Final = Family(
    "2026",
    july_2026.PROFILE,
    patterns_2026.TABLE,
    mapping_2026.RULES,
    lambda cfg, allow, nodes: july_2026.spec_2026(cfg, nodes),
    july_2026.DEVIATIONS,
    _constants_2026,
    _store_2026,
)

FAMILIES: Final = (FAMILY_2022, FAMILY_2026)
PROFILES: Final = tuple(family.profile for family in FAMILIES)


def known_deviations() -> dict[str, tuple[str, ...]]:
    """Fault → profiles in which it can be permitted."""
    found: dict[str, tuple[str, ...]] = {}
    for family in FAMILIES:
        for fault in family.deviations:
            found[fault] = (*found.get(fault, ()), family.profile)
    return found


@lru_cache(maxsize=64)
def program(profile: str, n: int, q_v: int, q_r: int, nodes: int, allow: tuple[str, ...]) -> Program:
    """The compiled audit. Raises `SpecError` for quorums that do not intersect."""
    family = next(f for f in FAMILIES if f.profile == profile)
    cfg = Config(n, q_r, q_v)
    replay = compile_spec(family.specification(cfg, tuple(family.deviations), nodes))
    permitted = [fault for fault in allow if fault in family.deviations]
    stand_ins: dict[str, tuple[str, ...]] = {}
    for fault in permitted:
        for action in family.deviations[fault]:
            name = june_2022.stand_in(action.name, fault)
            stand_ins[action.name] = (*stand_ins.get(action.name, ()), name)
    constants = {"n": n, "n_nodes": nodes, "q_v": q_v, "q_r": q_r, **family.constants(cfg, nodes)}
    return compile_table(family.table, family.rules, replay, constants, HELPERS, stand_ins)
