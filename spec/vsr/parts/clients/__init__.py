"""Client tables with a fixed number of slots, and sessions (docs/clients-and-control.md)."""

from __future__ import annotations

from viewproof.spec.lang import Action, Change, Part, at, replaces
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import invariants as core
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core.lemmas import clients, messages
from viewproof.spec.vsr.parts.clients import invariants, lemmas, requests, sessions, table, witnesses


def actions(cfg: Config) -> tuple[Action, ...]:
    """Requests are dropped, and slots evicted where their number is fixed."""
    evicting = (requests.execute_evicting,) if cfg.client_table.slots else ()
    return (*(() if cfg.client_table.sessions else (requests.drop_request,)), *evicting)


def changes(cfg: Config) -> tuple[Change, ...]:
    """What a request meets, and what executing it records, is the table's to say."""
    slots = (at(normal.require_table_slot, table.require_table_slot),) if cfg.client_table.slots else ()
    return (
        *(() if cfg.client_table.sessions else (replaces(normal.on_request, requests.on_request),)),
        replaces(normal.resend_reply, requests.resend_reply),
        replaces(normal.record, table.record),
        replaces(normal.reply, table.reply),
        *slots,
        replaces(core.exactly_once, invariants.exactly_once),
        replaces(core.table_is_function, invariants.table_is_function),
    )


CLIENTS = Part(
    "clients",
    table.is_on,
    table.declare,
    actions=actions,
    changes=changes,
    invariants=lambda cfg: (invariants.requests_answered,),
    witnesses=witnesses.of,
    lemmas=lemmas.lemmas,
    untrue=lambda cfg, crashes: {lemma.id for lemma in clients.LEMMAS},
)
SESSIONS = Part(
    "sessions",
    sessions.is_on,
    sessions.declare,
    actions=lambda cfg: (
        *(sessions.on_register, sessions.drop_request, sessions.drop_register),
        sessions.send_eviction,
    ),
    changes=lambda cfg: (replaces(normal.on_request, sessions.on_request),),
    untrue=lambda cfg, crashes: {messages.prepare_fields.id},
)
