"""Iggy as it is built, for audits of its logs (docs/iggy.md): what a replica does that is no step of the specification
and not unsafe by itself. Where one of these did harm, an invariant breaks, and the audit holds that.

A head is adopted whatever the journal has below it; what differs goes when the build says so; a repair takes any entry
for an empty slot; a replica that comes back knows of its log what its journal has.
"""

from __future__ import annotations

from dataclasses import replace

from viewproof.spec.lang import (
    NONE,
    Action,
    Spec,
    action,
    all_of,
    any_of,
    between,
    instead,
    largest,
    maximum,
    require,
    some,
    tagged,
    where,
    within,
)
from viewproof.spec.vsr.core import normal
from viewproof.spec.vsr.core import view_change as core
from viewproof.spec.vsr.core.restart import load_state
from viewproof.spec.vsr.core.state import (
    NORMAL,
    RECOVERING,
    Client,
    Entry,
    Length,
    Op,
    Replica,
    Restart,
    View,
    entry_of_view,
)
from viewproof.spec.vsr.parts.clients import requests
from viewproof.spec.vsr.parts.iggy import faults
from viewproof.spec.vsr.parts.repair.state import WithBits, leading, set_headers


@action
def on_start_view(state: WithBits, r: Replica, v: View, n: Length) -> None:
    """A backup adopts a head of a started view, whatever its journal has below; it acknowledges what it has of it."""
    core.require_started(state, r, v)
    require(v >= state.view[r])
    require(any_of(v != state.log_view[r], n >= state.commit_min[r]))
    core.require_log(state, r, v, n)
    received = state.received(r)
    low = state.commit_min[r] + 1
    changed = between(Op, low, largest(n, state.op[r]))

    def header(o: Op) -> Entry:
        return entry_of_view(received, v, o)

    core.enter_view(state, r, v, n)
    state.entry.update((r, changed), lambda o: where(o <= n, lambda: header(o), NONE))
    state.written.update((r, changed), lambda o: where(o <= n, lambda: state.body[r, o] == header(o), False))
    state.memory.update((r, changed), lambda o: NONE)
    state.ack.update(
        (v, r, between(Op, 1, n)),
        lambda o: where(state.body[r, o] == header(o), header(o), state.ack[v, r, o]),
    )


@action
def drop_entries(state: WithBits, r: Replica, o: Op, n: Op) -> None:
    """The journal loses its entries o .. n, which the view's log does not have."""
    gone = between(Op, o, n)
    state.body.update((r, gone), lambda p: NONE)
    state.written.update((r, gone), lambda p: False)


@action
def fill_slot(state: WithBits, r: Replica, o: Op, w: View) -> None:
    """An entry is in the journal now; a normal replica acknowledges it, if it is that of its log."""
    state.body[r, o] = some(w)
    state.written[r, o] = state.entry[r, o] == some(w)
    state.memory[r, o] = where(state.memory[r, o] == some(w), NONE, state.memory[r, o])
    v = state.view[r]
    acks = where(state.status[r] == NORMAL, state.entry[r, o] == some(w), False)
    state.ack[v, r, o] = where(acks, some(w), state.ack[v, r, o])


@action
def execute(state: WithBits, r: Replica) -> None:
    """A replica executes the next committed op that its journal holds, also during a view change."""
    with instead({normal.require_committed: require_known}):
        normal.execute.fn(state, r)


@action
def execute_evicting(state: WithBits, r: Replica, c: Client) -> None:
    """The same where the client table is full."""
    with instead({normal.require_committed: require_known}):
        requests.execute_evicting.fn(state, r, c)


def require_known(state: WithBits, r: Replica, o: Op) -> None:
    """Op o is committed, and r's journal holds the entry of its log there, whatever r's status."""
    require(o <= state.commit_max[r])
    require(all_of(o <= state.op[r], lambda: state.written[r, o]))


@action
def take_header(state: WithBits, r: Replica, o: Op) -> None:
    """A new primary whose view has not started takes the entry at o of the log that it merged for its own."""
    v = state.view[r]
    require(leading(state, r))
    require(o <= state.sv[v].op)
    state.entry[r, o] = state.sv[v].entry[o]
    state.written[r, o] = state.body[r, o] == state.sv[v].entry[o]
    state.op[r] = largest(state.op[r], o)


@action
def probe(state: WithBits, r: Replica) -> None:
    """A replica that finds itself behind asks for the view, and is mute until it is told."""
    state.status[r] = RECOVERING


@tagged("crash")
@action
def restart(state: WithBits, r: Replica, k: Length, n: Length) -> None:
    """A replica comes back with view and log_view from its superblock, and the log that its journal holds up to n."""
    restart_from_journal(state, r, k, n)
    state.status[r] = where(state.cfg.replicas == 1, NORMAL, RECOVERING)


def restart_from_journal(state: WithBits, r: Replica, k: Op, n: Op) -> None:
    """Guard and effects of a restart from the journal alone; a cluster of one goes on in its view."""
    require(within(Restart, state.restarts + 1))
    log = between(Op, 1, largest(n, state.op[r]))
    state.restarts = state.restarts + 1
    state.view[r] = state.durable_view[r]
    state.log_view[r] = state.durable_log_view[r]
    state.merged[r] = NONE
    state.commit_min[r] = 0
    state.commit_max[r] = k
    load_state(state, r)
    set_headers(state, r, log, lambda o: where(o <= n, state.body[r, o], NONE))
    state.memory.update((r, log), lambda o: NONE)
    state.op[r] = n


def last_in_journal(state: WithBits, r: Replica, top: Op) -> Op:
    """The last op up to `top` at which r's journal has an entry."""
    return maximum(between(Op, 1, top), lambda o: where(state.body[r, o] == NONE, 0, o))


ADDED: tuple[Action, ...] = (drop_entries, fill_slot, take_header, probe)


def as_built(spec: Spec) -> Spec:
    """The specification with the steps of the build."""
    replaced = {"restart": restart, "execute": execute}
    if spec.cfg.client_table.slots:
        replaced["execute_evicting"] = execute_evicting
    if spec.cfg.replicas > 1:
        replaced |= {
            "on_start_view": on_start_view,
            "start_view": replace(faults.start_view_over_hole, name="start_view"),
        }
    return spec.with_actions(replaced, ADDED)
