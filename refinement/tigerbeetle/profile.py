"""The two families as systems: configuration, specification and known deviations; and the adapters that read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from viewproof.refinement.adapter import Adapter, Streamed
from viewproof.refinement.events import Deviations, Event, Profile, System, events_of
from viewproof.refinement.tigerbeetle import (
    events_2022,
    events_2022_log,
    events_2022_messages,
    events_2022_repair,
    events_2026,
    events_2026_log,
    events_2026_messages,
    events_both,
)
from viewproof.refinement.tigerbeetle.columns import COLUMNS
from viewproof.refinement.tigerbeetle.headers import Form
from viewproof.refinement.tigerbeetle.reading import segments
from viewproof.refinement.tigerbeetle.records import Family
from viewproof.refinement.tigerbeetle.source import Source
from viewproof.refinement.tigerbeetle.table import table_of
from viewproof.spec.lang import Action, Spec, SpecError
from viewproof.spec.vsr.tigerbeetle import july_2026, june_2022, state_2022, state_2026
from viewproof.spec.vsr.tigerbeetle.config import Cluster
from viewproof.spec.vsr.tigerbeetle.sorts import Replica


def configure(first: Mapping[str, Any], faults: frozenset[str]) -> Cluster:
    """The configuration that the first row of a run shows."""
    quorums = first["quorum_replication"], first["quorum_view_change"]
    return Cluster(first["replicas"], *quorums, nodes=first["nodes"])


def nodes_of(cfg: Cluster) -> int:
    """Replicas and standbys."""
    return cfg.nodes


def _observed(state: Any, e: Any) -> None:
    """No line shows its node's whole state."""


KNOWN: Final = tuple({**june_2022.DEVIATIONS, **july_2026.DEVIATIONS})
_RULES: Final = {
    "line.missing": "the lines of one step of a replica follow each other",
    "line.unexpected": "a line of a step that has begun follows the line that began it",
    "line.checksum": "a checksum names one header, and a header has one checksum",
    "line.id": "a data file is opened under an id that it was made with",
    "line.operation": "an operation has one name",
    "panic": "the build's own assertions hold",
    "configuration": "the configuration is one that the specification allows",
}


def stand_in(act: Action, fault: str) -> Action:
    """The action that a permitted deviation takes instead, under a name of its own."""
    return replace(act, name=f"{act.name}__{fault.replace('.', '_')}")


def _deviations(own: Mapping[str, tuple[Action, ...]]) -> Callable[[tuple[str, ...]], Deviations]:
    def permitted(allow: tuple[str, ...]) -> Deviations:
        """Those of this family; those of the other are passed over. Raises `SpecError` for one that neither has."""
        if unknown := [fault for fault in allow if fault not in KNOWN]:
            text = f"{unknown[0]} cannot be permitted for these logs; there are: {', '.join(sorted(KNOWN))}"
            raise SpecError(text)
        added = [(act, stand_in(act, fault)) for fault in allow for act in own.get(fault, ())]
        by_action: dict[str, tuple[str, ...]] = {}
        for act, other in added:
            by_action[act.name] = (*by_action.get(act.name, ()), other.name)
        return Deviations(frozenset(), tuple((act.name, other) for act, other in added), by_action)

    return permitted


def _system(
    name: str, events: tuple[Event, ...], spec: Callable[[Any], Spec], own: Mapping[str, tuple[Action, ...]]
) -> System:
    profile = Profile(
        configure, spec, Replica, configuration=("replicas", "quorum_replication", "quorum_view_change"),
        needed=("replicas",), boots=(), deviations=_deviations(own), whole=True, nodes=nodes_of, known=tuple(own),
    )  # fmt: skip
    return System(name, COLUMNS, events, _observed, profile, rules=_RULES)


_FORM_2026: Final = Form(
    kinds={name: int(kind) for name, kind in state_2026.KIND.items()},
    other=int(state_2026.KIND["other"]),
    size=state_2026.HEADER_SIZE,
    fields={
        "m_from": "replica", "m_view": "view", "m_op": "op", "m_commit": "commit", "m_commit_min": "commit_min",
        "m_commit_max": "commit_max", "m_checkpoint": "checkpoint_op", "m_log_view": "log_view", "m_low": "op_min",
        "m_high": "op_max", "m_nacks": "nack_bitset", "m_copies": "present_bitset", "m_time": "timestamp",
        "m_request": "request", "m_session": "session", "m_parent": "parent", "m_asked": "request_checksum",
        "m_nonce": "nonce",
    },
    by_command={"prepare_ok": {"m_prepare": "prepare_checksum"}, "commit": {"m_prepare": "commit_checksum"}},
    unused={},
)  # fmt: skip
JULY: Final = Family("2026", july_2026.PROFILE, july_2026.PROFILE, table_of("2026"), _FORM_2026)
_EVENTS_2026: Final = events_of(events_both, events_2026, events_2026_log, events_2026_messages)
SYSTEM_2026: Final = _system(july_2026.PROFILE, _EVENTS_2026, july_2026.spec_2026, july_2026.DEVIATIONS)

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
_ABOUT: Final = {"m_prepare": "context"}
_UNDER: Final = {"m_nonce": "context"}
_FORM_2022: Final = Form(
    kinds={name: int(kind) for name, kind in state_2022.KIND.items()},
    other=int(state_2022.KIND["none"]),
    size=state_2022.HEADER_SIZE,
    fields={
        "m_from": "replica", "m_view": "view", "m_op": "op", "m_commit": "commit", "m_time": "timestamp",
        "m_request": "request", "m_parent": "parent",
    },
    by_command={
        "prepare": {"m_asked": "context"}, "reply": {"m_asked": "parent"},
        "do_view_change": {"m_log_view": "timestamp"},
        "prepare_ok": _ABOUT, "commit": _ABOUT, "request_prepare": _ABOUT, "nack_prepare": _ABOUT,
        "recovery": _UNDER, "recovery_response": _UNDER,
    },
    unused=_UNUSED_2022,
)  # fmt: skip
JUNE: Final = Family("2022", june_2022.PROFILE, june_2022.PROFILE, table_of("2022"), _FORM_2022)
_EVENTS_2022: Final = events_of(events_both, events_2022, events_2022_log, events_2022_messages, events_2022_repair)
SYSTEM_2022: Final = _system(june_2022.PROFILE, _EVENTS_2022, june_2022.spec_2022, june_2022.DEVIATIONS)


COLUMNS_OF_ROWS: Final = SYSTEM_2026.names
"""The same for both families."""


def _logs(name: str, doc: str, families: tuple[Family, ...], system: System) -> Adapter:
    source = Source(families, COLUMNS_OF_ROWS)
    return Adapter(name, doc, SUFFIXES, None, system, streamed=Streamed(segments, source.runs))


SUFFIXES: Final = (".log",)
LOGS: Final = _logs("tigerbeetle", "debug logs of TigerBeetle's simulators", (JUNE, JULY), SYSTEM_2026)
LOGS_2022: Final = _logs(june_2022.PROFILE, "those of June 2022", (JUNE,), SYSTEM_2022)
LOGS_2026: Final = _logs(july_2026.PROFILE, "those of July 2026", (JULY,), SYSTEM_2026)
