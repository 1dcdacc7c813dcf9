"""Named mistakes that can be switched on in the replica, to measure the checkers and the audit.

All are off by default. A switch makes the replica do the wrong thing; its trace still says honestly what it did. The
story of each is in docs/faults.md.
"""

from __future__ import annotations

FAULTS: dict[str, str] = {
    "commit.apply_at_replicate": "ops are executed once durable here, not once committed",
    "commit.out_of_order": "the primary executes every op that has a quorum, not the committable prefix",
    "commit.fence_on_commit_max": "prepares at or below commit_max count as old, also those not here",
    "commit.sequencer_before_append": "the log goes on above entries whose append failed",
    "commit.checkpoint_at_commit_max": "the snapshot is labelled with commit_max, and the journal drained up to it",
    "commit.dvc_carries_commit_min_only": "a new primary takes only the commit_min of do_view_changes for committed",
    "boot.ring_evicts_live": "the journal wraps over slots of ops above the checkpoint",
    "boot.slot_collision_panics": "a record that a drain cut short left behind ends every boot",
    "boot.one_bad_entry_forever": "a torn record at the end of the journal ends every boot",
    "boot.replays_over_gap": "the log at boot is the newest record of each op, chained or not",
    "boot.swallows_sync_error": "a failed sync of the journal at boot, or of a segment, is ignored",
    "boot.offset_from_index": "a partition's next offset is where its index ends, which may lag the messages",
    "boot.offset_clamp": "a damaged segment counts as far as it is good, and stored offsets are lowered to its end",
    "boot.recreates_missing_file": "a segment that is missing counts as an empty one",
    "boot.view_file_unreadable_is_new": "a superblock that cannot be read counts as a new one",
    "boot.checkpoint_before_drain": "the checkpoint counts as taken before the journal is drained",
    "commit.false_ack_after_start_view": "a start_view is acknowledged before its entries are here",
    "view.even_quorum": "both quorums are (n-1)//2+1, which do not intersect for even n",
    "view.blind_start_view_head": "a start_view is installed without the bodies that are missing",
    "view.acks_survive_view": "acknowledgements of an op that were counted in an older view count in a newer one",
    "view.scalar_dvc_truncates_hole": "a new primary starts its view with its own log, as far as the best offer goes",
    "view.pipeline_not_rebuilt": "a new primary neither acknowledges nor counts its uncommitted tail",
    "view.pipeline_after_repair": "a new primary's own prepares above commit_max outlive the log that it chose",
    "view.log_view_at_merge": "log_view is raised when do_view_changes are merged, before the view starts",
    "boot.view_from_last_prepare": "view and log_view are taken from the last prepare, not the superblock",
    "boot.all_zero": "view, log_view and the log boot as zero over a used data file",
    "boot.replays_uncommitted": "the whole journal is executed at boot",
    "table.evict_by_commit_max": "a slot is stamped with the replica's commit_max, not the op of the prepare",
    "table.evict_hash_order": "the evicted slot is the first in the order of a hash map, which differs per replica",
    "table.evict_forgets": "with sessions too, a client that was evicted begins anew with any request",
    "table.gap_accepted": "a request number more than one above the last is taken, with sessions too",
    "table.replayed_register": "a copy of an old register is taken for a new one: its incarnation is not compared",
    "table.reply_from_current_view": "a reply is stamped with the view in which it is executed, not the prepare's",
    "commit.stale_frontier": "the commit frontiers of namespaces survive a view change",
    "control.no_offset_advance": "commit_min does not rise when a control entry is executed",
    "control.applied_on_leader_only": "a feature is enabled on the primary, when it is proposed, and nowhere else",
    "control.map_order_digest": "the database checksum hashes its fields in the order of each process's own map",
    "control.unsupported_member": "a feature is proposed although a member does not support it",
    "view.solo_keeps_view": "a cluster of one boots into the view it was in",
    "nack.below_window": "what lies below the own log in memory, drained, is nacked",
    "nack.clears_faulty": "what is lost from the journal counts as never held: the log ends below it",
    "nack.not_nacked_is_present": "nacks are not counted: what is asked for must be somewhere",
    "recover.stale_nonce": "a start_view that answers an earlier process of this replica is taken for an answer",
    "recover.empty_journal_is_new": "a replica whose journal holds nothing boots as a new one",
    "recover.head_from_old_start_view": "a replica unsure of its log head takes a start_view that ends below it",
    "table.record_uncommitted": "request numbers are recorded when prepared, not when executed",
}
"""Fault id → what the replica does wrong."""


class FaultError(ValueError):
    """A fault id that the implementation does not know."""


def validate_faults(faults: frozenset[str]) -> frozenset[str]:
    """Returns `faults`; raises `FaultError` naming those that are unknown."""
    unknown = sorted(faults - FAULTS.keys())
    if unknown:
        raise FaultError(f"unknown fault {', '.join(unknown)}; known: {', '.join(sorted(FAULTS))}")
    return faults
