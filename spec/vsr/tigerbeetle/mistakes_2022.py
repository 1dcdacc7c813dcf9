"""Mistakes of the June 2022 build's family, each a change of its bounded model that breaks an invariant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from viewproof.spec.lang import action, all_of, between, count, require, where
from viewproof.spec.vsr.tigerbeetle.journal_2022 import remove_from
from viewproof.spec.vsr.tigerbeetle.june_2022 import DEVIATIONS
from viewproof.spec.vsr.tigerbeetle.normal_2022 import leads
from viewproof.spec.vsr.tigerbeetle.sorts import Op, Prepare, Replica
from viewproof.spec.vsr.tigerbeetle.state_2022 import VIEW_CHANGE, June
from viewproof.spec.vsr.tigerbeetle.strides import Mistake
from viewproof.spec.vsr.tigerbeetle.view_2022 import has_whole_log, keeps_executed, lead_view

COMMITTED = ("request", "on_prepare:2", "write:0", "write:2", "on_prepare_ok", "commit")
"""The first primary executed a prepare that one backup holds, and the next primary lacks."""
ACKNOWLEDGED = (
    *("request", "on_prepare", "on_prepare", "acknowledge", "acknowledge", "acknowledge"),
    *("timeout", "on_start_view_change"),
)
"""All hold a prepare and acknowledged it, one leaves the view, and the next primary follows."""
CRASHES: Final = {"n": 3, "crashes": 1}
ROTS: Final = {"n": 3, "crashes": 1, "rots": 1}
GAP: Final = {"n": 3, "ops": 2, "clients": 2}
ROTTED = (
    *("request", "on_prepare:2", "write:2", "crash:2,1", "on_recovery:0", "on_recovery:1"),
    *("on_recovery_response:2", "on_recovery_response:2", "timeout:1", "on_start_view_change:0"),
    "on_start_view_change:2",
)
"""A backup acknowledged, lost that slot in a crash, and was given the header; the next view is to begin."""
ANSWERED = (
    *("crash:1,1", "on_recovery:0", "on_recovery:2", "on_recovery_response:1", "on_recovery_response:1"),
    *("request", "on_prepare:1", "write:1", "write:0", "on_prepare_ok:0", "commit:0", "crash:1,0"),
)
"""Two answers are left over from a first crash; since then the replica helped to commit, and crashed again."""
WINDOW = (
    *("request:0,1", "request:0,2", "on_prepare:2", "on_prepare:2", "write:2,1", "write:2,2", "write:0,1"),
    *("on_prepare_ok:0", "commit:0", "jump:1", "timeout:1"),
)
"""Op 1 is executed; the next primary has a gap there."""
OVERRULED = (
    *("request:0,1", "request:0,2", "jump:1", "write:1,2", "on_prepare_ok:0"),
    *("timeout:1", "on_start_view_change:2", "on_start_view_change:1", "on_do_view_change:1", "merge:1"),
    *("discard_gap:1,1", "start_view:1", "timeout:0", "timeout:0", "timeout:0"),
    *("on_start_view_change:2", "on_start_view_change:2", "on_start_view_change:0", "on_do_view_change:0", "merge:0"),
    *("write:0,1", "write:0,2", "start_view:0", "acknowledge:0,1", "acknowledge:0,2"),
    *("on_start_view:2", "write:2,1", "on_prepare_ok:0", "commit:0", "commit:0", "timeout:2"),
    *("timeout:1", "timeout:1", "timeout:1", "on_start_view_change:1", "on_start_view_change:2", "on_do_view_change:1"),
)
"""A prepare that view 1 dropped is committed in view 3 on an acknowledgement of view 0."""
STALE_PIPELINE: Final = "view.pipeline_after_repair"
STALE = (
    *("request", "timeout:1", "on_start_view_change:2", "on_start_view_change:1", "on_do_view_change:1"),
    *("merge:1", "start_view:1", "request:1", "on_start_view:0", "on_prepare:0", "write:0", "write:1"),
    *("on_prepare_ok:1", "commit:1", "timeout:0", "timeout:0", "on_start_view_change:2", "on_start_view_change:2"),
    *("on_start_view_change:0", "on_do_view_change:0", "merge:0"),
)
"""Replica 0 prepared op 1 in view 0 alone; view 1 committed another there; 0, which has it, is to start view 3."""


@action
def start_view(state: June, r: Replica) -> None:
    """The new primary proposes again what its pipeline holds, whatever its log has there by now [seed 002]."""

    def proposed(o: Op) -> Prepare:
        held = all_of(state.pipeline_lo[r] <= o, o <= state.pipeline_hi[r], o > state.commit_max[r])
        return where(held, state.pipeline[r, o], state.entry[r, o])

    has_whole_log(state, r)
    keeps_executed(state, r, proposed)
    state.entry.update((r, between(Op, state.commit_max[r] + 1, state.op[r])), proposed)
    lead_view(state, r)


@action
def discard_header(state: June, r: Replica, o: Op) -> None:
    """What a vote says nothing of counts as never prepared [seed 002]."""
    nacks = count(
        Replica,
        lambda q: all_of(q != r, state.dvc_of[r, q] != 0, state.m_header[state.dvc_of[r, q], o] == 0),
    )
    require(state.up[r])
    require(state.status[r] == VIEW_CHANGE)
    require(leads(state, r))
    require(state.dvc_quorum[r])
    require(all_of(o > state.commit_max[r], o <= state.op[r]))
    require(state.entry[r, o] == 0)
    require(nacks >= state.cfg.replicas - state.cfg.quorum_replication)
    require(state.canonical[o] == 0)
    state.op[r] = o - 1
    remove_from(state, r, o)


MISTAKES: Mapping[str, Mistake] = {
    "acknowledges what is not durable": Mistake(
        (("acknowledge", "is_clean"), ("acknowledge", "disk_body")), "I11", "send_nack", ACKNOWLEDGED
    ),
    "commits on one acknowledgement": Mistake(
        (("commit", "oks("),), "I2", "start_view", ("request", "write", "commit")
    ),
    "merges one vote": Mistake(
        (("do_view_change_quorum", "count("), ("merge_log", "count(")), "I2", "start_view", COMMITTED
    ),
    "cuts without nacks": Mistake(
        (("nack_quorum", "count("), ("discard_ops", "any_of(")), "I2", "discard_ops", COMMITTED
    ),
    "view.solo_keeps_view": Mistake((), "I7", "on_request", sizes={"n": 1, "clients": 2}),
    "table.replayed_register": Mistake((), "I8", "commit", sizes={"n": 1, "clients": 2, "ops": 3, "table": 1}),
    "recover.empty_journal_is_new": Mistake((), "I6", "recover_empty", sizes=CRASHES),
    "diskless.forgets_promise": Mistake((), "I6", "finish_recovery", ("request", "write:0"), sizes=CRASHES),
    "nack.clears_faulty": Mistake((), "I11", "send_nack", ROTTED, sizes=ROTS),
    "recovers on one answer": Mistake((("recover_log", "count("),), "I6", "finish_recovery", (), sizes=ROTS),
    "recover.stale_nonce": Mistake(
        (("on_answer", "m_nonce"),), "I2", "start_view", ANSWERED, sizes={"n": 3, "crashes": 2, "rots": 1},
    ),
    "nack.below_window": Mistake((), "I2", "discard_header", WINDOW, (discard_header,), GAP),
    STALE_PIPELINE: Mistake((), "I2", "start_view", STALE, (start_view,), {"n": 3, "views": 3, "clients": 2}),
    "view.acks_survive_view": Mistake(
        (), "I2", "discard_ops", OVERRULED, DEVIATIONS["view.acks_survive_view"], GAP | {"views": 4}
    ),
}  # fmt: skip
"""Name → what is wrong. A name with a dot is one of the catalogue's; the cluster of one that keeps its view, and the
four about a process without memory, are how the build is: there a guard that excludes them is a claim.
"""
GAPS = frozenset({"nack.below_window", "view.acks_survive_view"})
"""Those which need a log with a gap."""
