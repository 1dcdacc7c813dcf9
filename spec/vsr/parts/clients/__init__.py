"""Client tables with a fixed number of slots, and sessions (docs/clients-and-control.md)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from viewproof.spec.lang import Action, Change, Part, at, replaces
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants as core
from viewproof.spec.vsr.core import normal, progress
from viewproof.spec.vsr.core.lemmas import clients, messages
from viewproof.spec.vsr.parts.clients import faults, invariants, lemmas, requests, sessions, state, table, witnesses
from viewproof.spec.vsr.parts.clients.options import ClientTable

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


def actions(cfg: Config) -> tuple[Action, ...]:
    """Requests are dropped, and slots evicted where their number is fixed."""
    evicting = (requests.execute_evicting,) if cfg.client_table.slots else ()
    return (*(() if cfg.client_table.sessions else (requests.drop_request,)), *evicting)


def changes(cfg: Config) -> tuple[Change, ...]:
    """What a request meets, and what executing it records, is the table's to say."""
    by_request = (
        replaces(normal.on_request, requests.on_request),
        at(progress.every_client_answered, invariants.every_request_executed),
    )
    slots = (
        at(normal.require_table_slot, table.require_table_slot),
        at(progress.can_be_asked, table.has_slots_for_all),
    )
    return (
        *(() if cfg.client_table.sessions else by_request),
        replaces(normal.resend_reply, requests.resend_reply),
        replaces(normal.record, table.record),
        replaces(normal.reply, table.reply),
        *(slots if cfg.client_table.slots else ()),
        replaces(core.are_different, invariants.are_different),
        replaces(core.replies_in_order, invariants.replies_in_order),
        at(core.once, invariants.replies_the_same),
        *((at(core.once, invariants.newer_incarnation),) if cfg.client_table.sessions else ()),
        replaces(core.is_as_executed, invariants.is_as_executed),
        at(core.as_determined, invariants.as_determined),
    )


def fit(cfg: Config, bounds: Bounds) -> Config:
    """Slots are those of the size, or as many as there are clients: more are never used."""
    slots = bounds.slots or min(cfg.client_table.slots, bounds.clients)
    return replace(cfg, client_table=replace(cfg.client_table, slots=slots))


CLIENTS = Part(
    "clients",
    table.is_on,
    state=state.of_table,
    actions=actions,
    changes=changes,
    invariants=lambda cfg: (invariants.requests_answered,),
    witnesses=witnesses.of,
    lemmas=lemmas.lemmas,
    untrue=lambda cfg, crashes: {lemma.id for lemma in clients.LEMMAS},
    faults=faults.FAULTS,
    sizes=lambda cfg: {"slots": "" if cfg.client_table.slots else "fixed number of slots"},
    fit=fit,
    ranges=lambda cfg, bounds: {"Outcome": len(table.Outcome.labels) - 1},
    models={
        "iggy": Model(
            Bounds(views=2, ops=4, clients=2, requests=2), {"client_table": ClientTable(slots=2, gaps=True)}, replicas=2
        ),
        "slots": Model(
            Bounds(views=2, ops=4, clients=2, requests=2),
            {"client_table": ClientTable(slots=1, gaps=True, forgets=True)},
            replicas=2,
        ),
    },
)
SESSIONS = Part(
    "sessions",
    sessions.is_on,
    state=lambda cfg: (state.Sessions, state.SessionMessages),
    declare=state.drop_replies,
    actions=lambda cfg: (
        *(sessions.on_register, sessions.drop_request, sessions.drop_register),
        sessions.send_eviction,
    ),
    changes=lambda cfg: (
        replaces(normal.on_request, sessions.on_request),
        replaces(progress.every_client_answered, invariants.every_session_answered),
        at(progress.proposals, sessions.registers),
    ),
    untrue=lambda cfg, crashes: {messages.prepare_fields.id},
    sizes=lambda cfg: {"incarnations": "" if cfg.client_table.sessions else "sessions"},
    ranges=lambda cfg, bounds: {"Incarnation": max(1, bounds.incarnations)},
    models={
        "clients": Model(
            Bounds(views=2, ops=2, clients=2, requests=1, incarnations=1),
            {"client_table": ClientTable(slots=1, sessions=True)},
        ),
        "sessions": Model(
            Bounds(views=2, ops=4, clients=2, requests=2, incarnations=2),
            {"client_table": ClientTable(slots=1, sessions=True, in_flight=2)},
            replicas=2,
        ),
    },
)
