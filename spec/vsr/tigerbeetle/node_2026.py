"""Start, superblock, journal and checkpoints of the July 2026 build (TigerBeetle, later)."""

from __future__ import annotations

from viewproof.spec.lang import (
    Bool,
    action,
    all_of,
    any_of,
    as_index,
    between,
    forall,
    implies,
    largest,
    maximum,
    not_,
    require,
    some,
    where,
)
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Client, DataFile, Op, Prepare, Replica, View
from viewproof.spec.vsr.tigerbeetle.state_2026 import (
    COMPACTION_OPS,
    EQL,
    FIX,
    NIL,
    NORMAL,
    PIPELINE,
    RECOVERING,
    RECOVERING_HEAD,
    SLOTS,
    VSR,
    July,
    at,
    checkpoint_after,
    leads,
    prepare_max,
    slot_of,
)

SLOT = between(Op, 0, SLOTS - 1)


@action
def format_disk(state: July, r: Replica, d: DataFile) -> None:
    """A data file is made for a replica, with the root in it; a second one replaces the first."""
    state.disk_of[d] = some(r)
    state.new_disk[r] = any_of(state.has_disk[r], state.new_disk[r])
    state.has_disk[r] = True
    state.on_disk[r, as_index(Prepare, ROOT)] = True
    state.kept[r, as_index(Op, 0)] = ROOT
    state.prepared[as_index(View, 0), as_index(Op, 0)] = ROOT
    state.canonical[as_index(Op, 0)] = ROOT


@action
def crash(state: July, r: Replica) -> None:
    """The process dies; what is being written may be lost, or not."""
    state.up[r] = False
    state.writing.update((r, Prepare), lambda e: False)


@action
def open_superblock(state: July, r: Replica, v: View, w: View, k: Op, c: Op) -> None:
    """The process starts with what the superblock holds: the last write that ended, or one that was under way (I6)."""
    kept = all_of(v == state.durable_view[r], w == state.durable_log_view[r], c == state.checkpoint[r])
    viewed = all_of(v == state.next_view[r], w == state.next_log_view[r], c == state.next_checkpoint[r])
    checkpointed = all_of(v == state.ck_view[r], w == state.ck_log_view[r], c == state.ck_checkpoint[r])
    require(not_(state.up[r]))
    require(any_of(kept, all_of(state.view_pending[r], viewed), all_of(state.checkpoint_pending[r], checkpointed)))
    require(k >= state.durable_commit[r])
    start(state, r, v, w, k, c)


def start(state: July, r: Replica, v: View, w: View, k: Op, c: Op) -> None:
    """Memory at a start."""
    state.up[r] = True
    state.opened = some(r)
    state.new_disk[r] = False
    state.later[r] = any_of(state.later[r], c != 0)
    state.journal_ready[r] = False
    state.status[r] = RECOVERING
    state.view[r] = v
    state.log_view[r] = w
    state.durable_view[r] = v
    state.durable_log_view[r] = w
    state.durable_commit[r] = k
    state.next_view[r] = v
    state.next_log_view[r] = w
    state.next_commit[r] = k
    state.next_checkpoint[r] = c
    state.view_pending[r] = False
    state.checkpoint_pending[r] = False
    state.checkpoint[r] = c
    state.op[r] = c
    state.commit_min[r] = c
    state.commit_max[r] = largest(k, c)
    state.current[r] = 0
    state.syncing[r] = 0
    state.taken[r] = 0
    state.next_slot[r] = 0
    state.exit_quorum[r] = False
    state.join_quorum[r] = False
    state.list_op[r] = 0
    state.list_low[r] = 0
    state.list_floor[r] = 0
    state.list_header.update((r, Op), lambda o: 0)
    state.exit_from.update((r, Replica), lambda q: False)
    state.join_of.update((r, Replica), lambda q: 0)
    state.ok_from.update((r, Op, Replica), lambda o, q: False)
    state.header.update((r, Op), lambda o: 0)
    state.body.update((r, Op), lambda o: 0)
    state.dirty.update((r, SLOT), lambda o: True)
    state.faulty.update((r, SLOT), lambda o: True)
    state.session.update((r, Client), lambda x: 0)
    state.evicted.update((r, Client), lambda x: False)
    state.answered.update((r, Client), lambda x: 0)
    state.replied.update((r, Client), lambda x: 0)
    state.nonce[r] = 0
    state.pipeline.update((r, Op), lambda o: 0)
    state.seen.update((r, Prepare), lambda e: False)
    state.agreed.update((r, Prepare), lambda e: False)


@action
def open_new_disk(state: July, r: Replica, v: View, w: View, k: Op, c: Op) -> None:
    """A replica starts from a disk that was formatted anew: nothing of what it had is claimed."""
    require(not_(state.up[r]))
    state.kept.update((r, Op), lambda o: 0)
    state.acked.update((r, Prepare), lambda e: False)
    state.promise.update((r, Op), lambda o: 0)
    start(state, r, v, w, k, c)


@action
def read_list(state: July, r: Replica, o: Op, e: Prepare, low: Op) -> None:
    """A header of the superblock's list, head first."""
    require(state.up[r])
    state.list_op[r] = where(state.list_low[r] == 0, largest(o, state.list_op[r]), state.list_op[r])
    state.list_low[r] = o
    state.list_floor[r] = o
    state.list_header[r, o] = e


def alone(state: July, r: Replica) -> Bool:
    """Is r the replica of a cluster of one? Its standbys are not."""
    return all_of(state.cfg.replicas == 1, r == 0)


@action
def recover_slot(state: July, r: Replica, o: Op, d: Op, e: Prepare) -> None:
    """A slot is decided; `e` is the prepare whose header it has from now on, 0 = none.

    What was made durable and acknowledged is never taken for never written (I3).
    """
    was = state.kept[r, o]
    require(state.up[r])
    require(not_(state.journal_ready[r]))
    require(o == state.next_slot[r])
    require(implies(d == EQL, e != 0))
    require(implies(d == FIX, any_of(e != 0, alone(state, r))))
    require(implies(e != 0, all_of(slot_of(state.p_op[e]) == o, state.on_disk[r, e])))
    require(implies(all_of(d != EQL, d != FIX), e == 0))
    require(implies(d == NIL, not_(state.acked[r, was])))
    state.next_slot[r] = o + 1
    state.header[r, o] = e
    state.body[r, o] = e
    state.dirty[r, o] = any_of(d == VSR, d == FIX)
    state.faulty[r, o] = d == VSR


@action
def drop_header(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """A header that does not belong to the log of the superblock's views is dropped.

    It is of a later view than became durable here, and was never acknowledged (I3), or a later view does without it,
    as it was not committed (I2).
    """
    require(state.up[r])
    require(not_(state.journal_ready[r]))
    require(at(state, r, o) == e)
    require(any_of(not_(state.acked[r, e]), state.canonical[o] != e))
    empty_slot(state, r, slot_of(o))


def empty_slot(state: July, r: Replica, slot: Op) -> None:
    """An empty slot is clean and sound."""
    state.header[r, slot] = 0
    state.dirty[r, slot] = False
    state.faulty[r, slot] = False


@action
def journal_recovered(state: July, r: Replica) -> None:
    """All slots are decided."""
    require(state.up[r])
    require(not_(state.journal_ready[r]))
    require(state.next_slot[r] == SLOTS)
    state.journal_ready[r] = True


@action
def fix_headers(state: July, r: Replica) -> None:
    """Headers decided from the prepares are written again before the replica goes on: those slots are clean."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.status[r] == RECOVERING)
    state.dirty.update((r, SLOT), lambda o: state.faulty[r, o])


@action
def find_head(state: July, r: Replica) -> None:
    """The log's head: of the journal (if log_view is the view) and the superblock's list, what is highest."""
    own = maximum(SLOT, lambda o: state.p_op[state.header[r, o]])
    listed = maximum(
        between(Op, state.list_low[r], state.list_op[r]),
        lambda o: where(all_of(state.list_header[r, o] != 0, o <= prepare_max(state.checkpoint[r])), o, 0),
    )
    head = where(state.log_view[r] == state.view[r], largest(own, listed), where(listed == 0, own, listed))
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.status[r] == RECOVERING)
    state.op[r] = largest(head, state.checkpoint[r])
    state.commit_max[r] = largest(state.commit_max[r], where(head < PIPELINE, 0, head - PIPELINE))


@action
def put_listed_header(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """The superblock's head, or checkpoint, stands in for a header that the journal lost."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(any_of(state.list_header[r, o] == e, o == state.checkpoint[r]))
    put_header(state, r, o, e)


def head_is_certain(state: July, r: Replica) -> Bool:
    """No faulty slot may have held an op above the head, nor the head itself another one (seed 002)."""
    top = prepare_max(state.checkpoint[r])
    return any_of(
        state.op[r] == top,
        all_of(
            not_(state.faulty[r, slot_of(state.op[r])]),
            forall(between(Op, state.op[r] + 1, top), lambda o: not_(state.faulty[r, slot_of(o)])),
        ),
    )


@action
def start_normal(state: July, r: Replica) -> None:
    """A backup whose log_view is its view, and that knows its head, is normal at once."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(not_(alone(state, r)))
    require(state.log_view[r] == state.view[r])
    require(not_(leads(state, r)))
    require(head_is_certain(state, r))
    state.status[r] = NORMAL


@action
def start_single(state: July, r: Replica) -> None:
    """A cluster of one has executed its whole journal again: normal, in a view of its own."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(alone(state, r))
    require(all_of(state.log_view[r] == state.view[r], state.commit_min[r] == state.op[r]))
    state.status[r] = NORMAL


@action
def next_view_alone(state: July, r: Replica) -> None:
    """A cluster of one starts in a later view than it was in, so that it prepares no op twice in one."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(alone(state, r))
    state.view[r] = state.view[r] + 1
    state.log_view[r] = state.view[r] + 1


@action
def doubt_head(state: July, r: Replica) -> None:
    """A replica that cannot be sure of its head neither votes nor acknowledges until a view message tells it."""
    require(state.up[r])
    require(state.status[r] == RECOVERING)
    require(not_(alone(state, r)))
    state.status[r] = RECOVERING_HEAD


@action
def ask_superblock(state: July, r: Replica) -> None:
    """view, log_view and commit_max are to become durable (I6: nothing falls); a checkpoint jumped to as well."""
    own = where(state.checkpoint_pending[r], state.ck_checkpoint[r], state.checkpoint[r])
    require(state.up[r])
    require(state.view[r] >= state.durable_view[r])
    require(state.log_view[r] >= state.durable_log_view[r])
    require(state.log_view[r] <= state.view[r])
    require(not_(state.view_pending[r]))
    state.view_pending[r] = True
    state.next_view[r] = state.view[r]
    state.next_log_view[r] = state.log_view[r]
    state.next_commit[r] = state.commit_max[r]
    state.next_checkpoint[r] = largest(own, where(state.syncing[r] != 0, state.m_checkpoint[state.syncing[r]], 0))


@action
def view_durable(state: July, r: Replica) -> None:
    """The superblock write for a view is done."""
    require(state.up[r])
    require(state.view_pending[r])
    state.view_pending[r] = False
    state.durable_view[r] = state.next_view[r]
    state.durable_log_view[r] = state.next_log_view[r]
    state.durable_commit[r] = state.next_commit[r]
    state.checkpoint[r] = largest(state.checkpoint[r], state.next_checkpoint[r])


@action
def ask_checkpoint(state: July, r: Replica, c: Op, v: View, w: View) -> None:
    """After its trigger is executed, the next checkpoint is to become durable (I5), and the view along with it."""
    require(state.up[r])
    require(not_(state.checkpoint_pending[r]))
    require(c == checkpoint_after(state.checkpoint[r]))
    require(state.commit_min[r] >= c + COMPACTION_OPS)
    require(all_of(state.durable_view[r] <= v, v <= state.view[r]))
    require(all_of(state.durable_log_view[r] <= w, w <= state.log_view[r]))
    state.checkpoint_pending[r] = True
    state.ck_view[r] = v
    state.ck_log_view[r] = w
    state.ck_commit[r] = state.commit_max[r]
    state.ck_checkpoint[r] = c


@action
def checkpoint_durable(state: July, r: Replica) -> None:
    """The superblock write for a checkpoint is done."""
    require(state.up[r])
    require(state.checkpoint_pending[r])
    state.checkpoint_pending[r] = False
    state.checkpoint[r] = state.ck_checkpoint[r]
    state.durable_view[r] = largest(state.durable_view[r], state.ck_view[r])
    state.durable_log_view[r] = largest(state.durable_log_view[r], state.ck_log_view[r])
    state.durable_commit[r] = largest(state.durable_commit[r], state.ck_commit[r])


def put_header(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """Put a header into its slot: dirty; a faulty slot without a header stays faulty, as it may have held this one."""
    slot = slot_of(o)
    old = state.header[r, slot]
    state.dirty[r, slot] = where(old == e, state.dirty[r, slot], True)
    state.faulty[r, slot] = where(any_of(old == e, old == 0), state.faulty[r, slot], False)
    state.header[r, slot] = e
    state.promise[r, o] = where(state.promise[r, o] == e, e, 0)


def keep_promises(state: July, r: Replica) -> None:
    """The log of a later view is r's own: what it lacks was not committed before, and may be denied from now on."""
    state.promise.update(
        (r, between(Op, state.checkpoint[r], state.op[r] + SLOTS)),
        lambda o: where(
            any_of(at(state, r, o) == state.promise[r, o], all_of(at(state, r, o) == 0, o <= state.op[r])),
            state.promise[r, o],
            0,
        ),
    )


def remove_above(state: July, r: Replica, head: Op) -> None:
    """Empty the slots of ops above the head; an empty slot counts as the op of its number."""
    state.dirty.update((r, SLOT), lambda o: all_of(not_(is_above(state, r, o, head)), state.dirty[r, o]))
    state.faulty.update((r, SLOT), lambda o: all_of(not_(is_above(state, r, o, head)), state.faulty[r, o]))
    state.header.update((r, SLOT), lambda o: where(is_above(state, r, o, head), 0, state.header[r, o]))


def is_above(state: July, r: Replica, slot: Op, head: Op) -> Bool:
    """Does the slot hold an op above the head?"""
    e = state.header[r, slot]
    return where(e == 0, slot > head, state.p_op[e] > head)


@action
def write_start(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """The write of a prepare starts; until its body is down, the slot of the ring counts as empty."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(at(state, r, o) == e)
    require(state.dirty[r, slot_of(o)])
    require(not_(state.writing[r, e]))
    state.body[r, slot_of(o)] = 0
    state.writing[r, e] = True
    state.on_disk[r, e] = True


@action
def write_body(state: July, r: Replica, o: Op) -> None:
    """The body is down, and the header is still the one: the header is written next."""
    e = at(state, r, o)
    require(state.up[r])
    require(e != 0)
    require(state.writing[r, e])
    require(state.body[r, slot_of(o)] != e)
    state.body[r, slot_of(o)] = e


@action
def write_done(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """Body and header are durable, and the header is still the one: the slot is clean."""
    require(state.up[r])
    require(state.writing[r, e])
    require(at(state, r, o) == e)
    require(state.body[r, slot_of(o)] == e)
    state.writing[r, e] = False
    state.dirty[r, slot_of(o)] = False
    state.faulty[r, slot_of(o)] = False
    state.kept[r, slot_of(o)] = e


@action
def write_given_up(state: July, r: Replica, o: Op, e: Prepare, b: Op) -> None:
    """The header changed while its prepare was being written (`b` = 1: the body): the write does not count."""
    require(state.up[r])
    require(state.writing[r, e])
    require(implies(b == 1, at(state, r, o) != e))
    state.writing[r, e] = False
    state.body[r, slot_of(o)] = where(b == 1, e, state.body[r, slot_of(o)])
    state.dirty[r, slot_of(o)] = where(b == 1, True, state.dirty[r, slot_of(o)])


@action
def find_rot(state: July, r: Replica, o: Op, e: Prepare) -> None:
    """A read finds the slot broken."""
    hit = at(state, r, o) == e
    require(state.up[r])
    require(state.journal_ready[r])
    state.dirty[r, slot_of(o)] = where(hit, True, state.dirty[r, slot_of(o)])
    state.faulty[r, slot_of(o)] = where(hit, True, state.faulty[r, slot_of(o)])


@action
def drop_slot(state: July, r: Replica, o: Op) -> None:
    """A slot that cannot be repaired any more, being below what the cluster keeps, is emptied."""
    require(state.up[r])
    require(state.dirty[r, o])
    require(any_of(state.header[r, o] == 0, state.p_op[state.header[r, o]] <= state.commit_min[r]))
    empty_slot(state, r, o)


ACTIONS = (
    format_disk,
    crash,
    open_superblock,
    open_new_disk,
    read_list,
    recover_slot,
    drop_header,
    journal_recovered,
    fix_headers,
    find_head,
    put_listed_header,
    start_normal,
    start_single,
    next_view_alone,
    doubt_head,
    ask_superblock,
    view_durable,
    ask_checkpoint,
    checkpoint_durable,
    write_start,
    write_body,
    write_done,
    write_given_up,
    find_rot,
    drop_slot,
)
