"""The journal of the June 2022 build: headers in memory, two rings on disk, recovery of slots (seed 002)."""

from __future__ import annotations

from viewproof.spec.lang import (
    NONE,
    Bool,
    action,
    all_of,
    any_of,
    as_index,
    between,
    count,
    implies,
    not_,
    require,
    where,
)
from viewproof.spec.vsr.tigerbeetle.sorts import ROOT, Client, Op, Prepare, Replica
from viewproof.spec.vsr.tigerbeetle.state_2022 import CUT, EQL, FIX, NIL, RECOVERING, SECTOR, SLOTS, VSR, June

SLOT = between(Op, 0, SLOTS - 1)


def put_header(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """Put a header into its slot: dirty, and not faulty, unless it stands there already."""
    same = state.entry[r, o] == e
    state.dirty[r, o] = where(same, state.dirty[r, o], True)
    state.faulty[r, o] = where(same, state.faulty[r, o], False)
    state.unsure[r, o] = False
    state.promise[r, o] = where(state.promise[r, o] == e, e, 0)
    state.entry[r, o] = e


def remove_from(state: June, r: Replica, lo: Op) -> None:
    """Empty the slots of ops lo and above; they count as clean and sound then.

    Builds of the first half of June leave a faulty slot without a header as it is.
    """
    above = between(Op, lo, SLOTS - 1)
    state.unsure.update((r, above), lambda o: was_lost(state, r, o))
    state.entry.update((r, above), lambda o: 0)
    state.dirty.update((r, above), lambda o: False)
    state.faulty.update((r, above), lambda o: False)


def keep_promises(state: June, r: Replica) -> None:
    """The log of a later view is r's own: what it lacks was not committed before, and may be denied from now on."""
    state.promise.update(
        (r, SLOT),
        lambda o: where(
            any_of(state.entry[r, o] == state.promise[r, o], all_of(state.entry[r, o] == 0, o <= state.op[r])),
            state.promise[r, o],
            0,
        ),
    )


def was_lost(state: June, r: Replica, o: Op) -> Bool:
    """Is the slot without a header, and faulty, or may it be?"""
    return any_of(state.unsure[r, o], all_of(state.entry[r, o] == 0, state.faulty[r, o]))


@action
def set_up(state: June, r: Replica) -> None:
    """A replica's memory is set up: the first time over a formatted disk, with the root in slot 0."""
    root = as_index(Op, 0)
    state.set_up[r] = True
    state.disk_body[r, root] = where(state.set_up[r], state.disk_body[r, root], ROOT)
    state.disk_header[r, root] = where(state.set_up[r], state.disk_header[r, root], ROOT)


@action
def write_start(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """The write of a prepare starts; until its body is down, the slot of the prepares ring counts as empty."""
    require(state.up[r])
    require(state.journal_ready[r])
    require(state.entry[r, o] == e)
    require(state.dirty[r, o])
    require(not_(state.writing[r, o, e]))
    state.body[r, o] = 0
    state.writing[r, o, e] = True
    state.write_of[r, o, state.write_next[r, o]] = e
    state.write_next[r, o] = state.write_next[r, o] + 1


@action
def write_body(state: June, r: Replica, o: Op) -> None:
    """The body is in the prepares ring on disk; the replica counts on it only if the header is still the one.

    Writes of a slot come one after the other.
    """
    e = state.write_of[r, o, state.write_first[r, o]]
    require(state.up[r])
    require(state.write_first[r, o] < state.write_next[r, o])
    require(state.writing[r, o, e])
    state.write_first[r, o] = state.write_first[r, o] + 1
    state.disk_body[r, o] = e
    state.body[r, o] = where(state.entry[r, o] == e, e, state.body[r, o])


@action
def write_headers_start(state: June, r: Replica, lo: Op, o: Op) -> None:
    """After the body of o, the sector of the headers ring with it is composed: what is not whole is not promised."""
    require(state.up[r])
    require(all_of(state.disk_body[r, o] != 0, state.writing[r, o, state.disk_body[r, o]]))
    require(all_of(lo <= o, o < lo + SECTOR))
    require(lo % SECTOR == 0)
    require(not_(state.sector_busy[r, lo]))
    state.sector_busy[r, lo] = True
    state.header_buffer.update(
        (r, between(Op, lo, lo + SECTOR - 1)),
        lambda o: where(
            any_of(state.faulty[r, o], all_of(state.dirty[r, o], state.body[r, o] == 0)), 0, state.entry[r, o]
        ),
    )


@action
def write_headers_done(state: June, r: Replica, lo: Op) -> None:
    """The sector is on disk."""
    require(state.up[r])
    require(state.sector_busy[r, lo])
    state.sector_busy[r, lo] = False
    state.disk_header.update((r, between(Op, lo, lo + SECTOR - 1)), lambda o: state.header_buffer[r, o])


@action
def write_done(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """Body and header are durable, and the header is still the one: the slot is clean.

    Of a slot that was faulty this build leaves the header on disk broken: after a crash it is faulty again, never nil.
    """
    require(state.up[r])
    require(state.writing[r, o, e])
    require(state.entry[r, o] == e)
    require(state.disk_body[r, o] == e)
    require(any_of(state.disk_header[r, o] == e, state.faulty[r, o]))
    state.writing[r, o, e] = False
    state.dirty[r, o] = False
    state.faulty[r, o] = False


@action
def write_given_up(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """The header changed while its prepare was being written: the write does not count."""
    require(state.up[r])
    require(state.writing[r, o, e])
    require(state.entry[r, o] != e)
    state.writing[r, o, e] = False


@action
def find_rot(state: June, r: Replica, o: Op, e: Prepare) -> None:
    """A read finds the slot broken."""
    require(state.up[r])
    require(state.journal_ready[r])
    hit = state.entry[r, o] == e
    state.dirty[r, o] = where(hit, True, state.dirty[r, o])
    state.faulty[r, o] = where(hit, True, state.faulty[r, o])


@action
def slot_unused(state: June, r: Replica, o: Op) -> None:
    """Above the head of the log, which is known now, a faulty slot is one that was never needed."""
    require(state.up[r])
    require(state.entry[r, o] == 0)
    require(o > state.op[r])
    require(o < SLOTS)
    require(any_of(state.dirty[r, o], state.unsure[r, o]))
    state.dirty[r, o] = False
    state.faulty[r, o] = False
    state.unsure[r, o] = False


@action
def crash(state: June, r: Replica) -> None:
    """The process dies; what is being written does not reach the disk whole."""
    require(state.up[r])
    state.up[r] = False
    state.writing.update((r, Op, Prepare), lambda o, e: False)
    state.write_first.update((r, Op), lambda o: 0)
    state.write_next.update((r, Op), lambda o: 0)
    state.sector_busy.update((r, Op), lambda o: False)
    state.recovers_from[r] = NONE
    state.digest_lost[r] = state.digest[r]
    state.digest[r] = 0


@action
def restart(state: June, r: Replica) -> None:
    """The process starts again and has forgotten all that is not on disk: its view, too."""
    require(not_(state.up[r]))
    forget(state, r)
    state.up[r] = True


def forget(state: June, r: Replica) -> None:
    """Memory at a start."""
    state.journal_ready[r] = False
    state.next_slot[r] = 0
    state.status[r] = RECOVERING
    state.view[r] = 0
    state.log_view[r] = 0
    state.op[r] = 0
    state.commit_min[r] = 0
    state.commit_max[r] = 0
    state.current[r] = 0
    state.nonce[r] = 0
    state.installed[r] = False
    state.svc_quorum[r] = False
    state.dvc_quorum[r] = False
    state.nack_op[r] = 0
    state.pipeline_lo[r] = 1
    state.pipeline_hi[r] = 0
    state.session.update((r, Client), lambda c: 0)
    state.answered.update((r, Client), lambda c: 0)
    state.svc_from.update((r, Replica), lambda q: False)
    state.dvc_of.update((r, Replica), lambda q: 0)
    state.nack_from.update((r, Replica), lambda q: False)
    state.response_of.update((r, Replica), lambda q: 0)
    state.ok_from.update((r, Op, Replica), lambda o, q: False)
    state.entry.update((r, Op), lambda o: 0)
    state.body.update((r, Op), lambda o: 0)
    state.dirty.update((r, SLOT), lambda o: True)
    state.faulty.update((r, SLOT), lambda o: True)
    state.unsure.update((r, SLOT), lambda o: False)


@action
def tell_table(state: June, early: Op) -> None:
    """The label of a sound slot tells which table of cases the build has (`early` 1: the first one)."""
    state.table_known = any_of(True, state.table_known)
    state.table_early = early == 1


@action
def recover_slot(state: June, r: Replica, o: Op, d: Op, b: Op) -> None:
    """A slot is decided by the table of seed 002: `d` is the decision, `b` says whether its prepare can be read.

    Nothing acknowledged may be taken for never written (I3): nil and cut are for slots without a durable prepare.
    """
    e = state.disk_body[r, o]
    keeps = any_of(d == EQL, d == FIX)
    require(state.up[r])
    require(not_(state.journal_ready[r]))
    require(o == state.next_slot[r])
    require(implies(b == 1, e != 0))
    require(implies(d == NIL, all_of(e == 0, state.disk_header[r, o] == 0)))
    require(implies(d == EQL, all_of(e != 0, state.disk_header[r, o] == e)))
    require(implies(d == FIX, e != 0))
    require(implies(d == CUT, not_(state.acked[r, e])))
    state.next_slot[r] = o + 1
    state.entry[r, o] = where(keeps, e, 0)
    state.body[r, o] = where(b == 1, e, 0)
    state.dirty[r, o] = any_of(d == VSR, all_of(d == FIX, state.cfg.replicas > 1))
    state.faulty[r, o] = d == VSR


@action
def journal_recovered(state: June, r: Replica) -> None:
    """All slots are decided; a cluster of one cannot repair a faulty one and must not go on."""
    require(state.up[r])
    require(not_(state.journal_ready[r]))
    require(state.next_slot[r] == SLOTS)
    require(implies(state.cfg.replicas == 1, count(SLOT, lambda o: state.faulty[r, o]) == 0))
    state.journal_ready[r] = True


ACTIONS = (
    set_up,
    write_start,
    write_body,
    write_headers_start,
    write_headers_done,
    write_done,
    write_given_up,
    find_rot,
    slot_unused,
    crash,
    restart,
    tell_table,
    recover_slot,
    journal_recovered,
)
