"""Normal operation: request, prepare, prepare_ok, commit, execute (VR Revisited §4.1; seed 000 for
commit_min/commit_max).
"""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Truth,
    action,
    all_of,
    between,
    count,
    forall,
    joined,
    not_,
    point,
    require,
    some,
    where,
    with_fields,
    within,
)
from viewproof.spec.vsr.core.state import (
    NORMAL,
    Client,
    Core,
    Entry,
    Op,
    Prepare,
    Replica,
    Request,
    client_of,
    durable,
    parent_of,
    primary,
    request_of,
)


@action
def on_request(state: Core, r: Replica, c: Client, s: Request) -> None:
    """The primary prepares a new request (VR Revisited §4.1, step 2).

    A client sends a number once the one before was answered, and may repeat old ones. Not new: at or below the
    client table's number, or of a client with an unexecuted entry in the log (seed 000: in progress).
    """
    require_new(state, r, c, s)
    require_room(state, r, state.op[r] + 1)
    prepare_request(state, r, c, s)


def require_new(state: Core, r: Replica, c: Client, s: Request) -> None:
    """r is a normal primary, and request s of client c is new to it."""
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(s <= state.replies[c] + 1)
    require(s > state.table[r, c])
    require(
        forall(between(Op, state.commit_min[r] + 1, state.op[r]), lambda p: client_of(state, state.entry[r, p], p) != c)
    )


def prepare_request(state: Core, r: Replica, c: Client, s: Request) -> None:
    """Primary r takes request s of client c into its log, and sends the prepare."""
    o = state.op[r] + 1
    prepare(state, r, o, Prepare(parent=parent_of(state, r, o), client=c, request=s))


@point
def require_room(state: Core, r: Replica, o: Op) -> None:
    """The primary may prepare op o: there is room for it."""
    require(within(Op, o))
    require_slot(state, r, o)


@point
def require_slot(state: Core, r: Replica, o: Op) -> None:
    """The journal has a slot for op o: the core's has no end."""


@point
def prepare(state: Core, r: Replica, o: Op, message: Prepare) -> None:
    """Primary r takes an entry of its view at o into its log, not durable yet, and sends the prepare."""
    v = state.view[r]
    state.op[r] = o
    state.entry[r, o] = some(v)
    state.written[r, o] = False
    state.prepare[v, o] = complete(state, r, message)


@joined(with_fields)
def complete(state: Core, r: Replica, message: Prepare) -> Prepare:
    """The prepare as primary r sends it: with the fields that parts declare and fill in."""
    return message


@action
def on_prepare(state: Core, r: Replica, o: Op) -> None:
    """A backup takes the next prepare of its view into its log; it is not durable yet (VR Revisited §4.1, step 3)."""
    require_next(state, r, o)
    require_slot(state, r, o)
    take_prepare(state, r, o)


def require_next(state: Core, r: Replica, o: Op) -> None:
    """Normal backup r has received the prepare at o of its view, and it follows r's log."""
    v = state.view[r]
    received = state.received(r)
    require(state.status[r] == NORMAL)
    require(primary(state, v) != r)
    require(o == state.op[r] + 1)
    require(received.prepare[v, o].sent)
    require(received.prepare[v, o].parent == parent_of(state, r, o))


def take_prepare(state: Core, r: Replica, o: Op) -> None:
    """The prepare at o of its view is known to r, and not durable yet."""
    state.op[r] = o
    state.entry[r, o] = some(state.view[r])
    state.written[r, o] = False


@action
def append(state: Core, r: Replica, o: Op) -> None:
    """The prepare at o becomes durable, in order; a normal replica then acknowledges it (VR Revisited §4.1, step 3).

    The primary acknowledges its own prepares by the same rule (seed 000: only what the journal really holds). A slot of
    a ring holds nothing then: what it held was at or below the checkpoint (`require_slot`), and drained.
    """
    require_append(state, r, o)
    state.written[r, o] = True
    acknowledge(state, r, o)


def require_append(state: Core, r: Replica, o: Op) -> None:
    """Op o is the first of r's log that is not durable."""
    require(o <= state.op[r])
    require(not_(durable(state, r, o)))
    require(where(o == 1, True, lambda: durable(state, r, o - 1)))


def acknowledge(state: Core, r: Replica, o: Op) -> None:
    """Replica r, if normal, acknowledges the entry at o, unless it has executed it."""
    v = state.view[r]
    acknowledges = all_of(state.status[r] == NORMAL, o > state.commit_min[r])
    state.ack[v, r, o] = where(acknowledges, state.entry[r, o], state.ack[v, r, o])


@action
def commit(state: Core, r: Replica, o: Op) -> None:
    """The primary commits the next op on a quorum of acknowledgements of its own entry (VR Revisited §4.1, step 4)."""
    v = state.view[r]
    require(state.status[r] == NORMAL)
    require(primary(state, v) == r)
    require(o == state.commit_max[r] + 1)
    require(o <= state.op[r])
    require_acknowledged(state, r, o)
    state.commit_max[r] = o
    state.commit_sent[v] = o


@point
def require_acknowledged(state: Core, r: Replica, o: Op) -> None:
    """A quorum acknowledged the entry at op o to r, the primary of its view."""
    v, received = state.view[r], state.received(r)
    require(count(Replica, lambda q: received.ack[v, q, o] == state.entry[r, o]) >= state.cfg.quorum_replication)


@action
def on_commit(state: Core, r: Replica, k: Op) -> None:
    """A replica learns a commit number of its view, from a prepare, commit or start_view (VR Revisited §4.1, step
    6).
    """
    require(state.status[r] == NORMAL)
    require(k > state.commit_max[r])
    require(k <= state.received(r).commit_sent[state.view[r]])
    state.commit_max[r] = k


@action
def execute(state: Core, r: Replica) -> None:
    """A replica executes the next committed op that its journal holds; the primary replies (seed 000, commit path)."""
    o = state.commit_min[r] + 1
    require_committed(state, r, o)
    require(is_request(state, state.entry[r, o], o))
    require_table_slot(state, r, o)
    execute_request(state, r, o, state.entry[r, o])


@point
def require_committed(state: Core, r: Replica, o: Op) -> None:
    """Replica r may execute op o, its next: it is normal, the op is committed, and its journal holds it."""
    require_ready(state, r, o)


def require_ready(state: Core, r: Replica, o: Op) -> None:
    """Replica r is normal, op o is committed, and r's journal holds it."""
    require(state.status[r] == NORMAL)
    require(o <= state.commit_max[r])
    require(all_of(o <= state.op[r], lambda: state.written[r, o]))


@joined(all_of)
def is_request(state: Core, entry: Entry, o: Op) -> Truth:
    """Is the entry a client's? The core has no other kind."""
    return True


@point
def require_table_slot(state: Core, r: Replica, o: Op) -> None:
    """The client table has a slot for the client of op o, next at r: the core's has one for every client."""


@point
def note_executed(state: Core, r: Replica, o: Op, entry: Entry) -> None:
    """Replica r executed that entry at op o, whatever its kind: commit_min, and the history that invariants read."""
    state.commit_min[r] = o
    state.executed[r, o] = entry
    state.first_executed[o] = where(state.first_executed[o] == NONE, entry, state.first_executed[o])


def execute_request(state: Core, r: Replica, o: Op, entry: Entry) -> None:
    """Effects of executing that entry, a client's, at op o on replica r: state machine, client table, reply."""
    replies = primary(state, state.view[r]) == r
    note_executed(state, r, o, entry)
    record(state, r, o, entry)
    reply(state, r, o, entry, replies)
    state.replied_in[o] = where(all_of(replies, state.replied_in[o] == NONE), some(state.view[r]), state.replied_in[o])


@point
def record(state: Core, r: Replica, o: Op, entry: Entry) -> None:
    """The client table of r holds the request of the entry that is executed at o."""
    state.table[r, client_of(state, entry, o)] = request_of(state, entry, o)


@point
def reply(state: Core, r: Replica, o: Op, entry: Entry, sends: Truth) -> None:
    """Where `sends` holds, the client of the entry that is executed at o is sent the reply."""
    c, s = client_of(state, entry, o), request_of(state, entry, o)
    state.replies[c] = where(all_of(sends, state.replies[c] < s), s, state.replies[c])


@action
def resend_reply(state: Core, r: Replica, c: Client) -> None:
    """The primary answers a client's repeated request from its client table (VR Revisited §4.1, step 2).

    It may be the first reply that the client gets: a backup executed the op, and leads now.
    """
    require(state.status[r] == NORMAL)
    require(primary(state, state.view[r]) == r)
    require(state.table[r, c] > state.replies[c])
    state.replies[c] = state.table[r, c]
