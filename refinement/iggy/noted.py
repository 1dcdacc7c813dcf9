"""Lines of Iggy's servers that are no step: after which a replica is not known, and problems that are looked past.

A line at WARN or ERROR of the parts below that neither stands here nor in `patterns.py` is counted as not known. Others
(INFO, DEBUG, TRACE) that no pattern knows say nothing of the protocol's state that is judged.
"""

from __future__ import annotations

from viewproof.refinement.iggy.lines import Parsed

PANICKED = "panicked at"
"""What a process prints, without time or target, as it stops itself."""
STOPS = "iggy.consensus.diag"
"""Target of the line of a process that gives up."""
DELETED = ("server::partition_helpers", "deleted partition directory")
"""A partition is gone; one of the same name may follow."""
LOSES: dict[str, tuple[str, ...]] = {
    "shard": (
        *("metadata state transfer installed", "metadata state transfer landed"),
        *("partition state transfer installed", "partition state transfer landed"),
        *("partition unserviceable after", "quarantined the fenced"),
    ),
    "shard::router": ("purge-partition failed to reset",),
    "metadata::impls::recovery": ("metadata WAL does not connect",),
    "iggy.metadata.diag": ("journal append failed",),
}
"""Target → how the text begins: the replica has taken its log and state from another, or lost what it had."""

PARTS = frozenset({"consensus", "metadata", "shard", "partitions", "journal", "iggy"})
"""The first word of the targets whose problems are looked at."""
NOTED: dict[str, tuple[str, ...]] = {
    "consensus::impls": (
        *("dropping do_view_change", "start_view suffix", "view change cannot start", "send_or_loopback failed"),
    ),
    "consensus::metadata_helpers": (
        *("request_preflight: ignoring future epoch", "request_preflight: request id reused"),
        "register_preflight: dropping register",
    ),
    "metadata::impls::metadata": (
        *("metadata snapshot carries", "install_client_table: refusing", "incoherent state transfer"),
        *("state transfer dropped", "installing state transfer without", "state transfer installed but"),
        *("dropping malformed PrepareOk", "dropping unexpected message", "client reply forward failed"),
        *("chain replication failed", "commit_journal: prepare body missing"),
    ),
    "metadata::impls::recovery": (
        *("metadata WAL holds entries", "superblock records a commit point", "dropped the disconnected"),
    ),
    "iggy.metadata.diag": (
        *("metadata callback fired", "on_request: prepare and request queues", "rejecting invalid"),
        *("discarding prepare", "ignoring prepare", "received old prepare", "journal already holds"),
        *("ignoring ack", "refusing register", "drain_request_queue", "superblock persist failed"),
        *("checkpoint ", "commit_reply: committed op is older", "refusing replayed"),
    ),
    "shard": (
        *("list_all_clients", "forward_metadata_submit", "partition_read", "discarding duplicate InsertOwned"),
        *("parked partition frame", "re-dispatch of parked", "answering parked", "rejecting parked", "park buffer"),
        *("failed to send transient", "dropping transient", "dropping VSR control frame", "dropping a partition frame"),
        *("dropping do_view_change", "dropping start_view", "discarding repaired", "failed to journal repaired"),
        *("request-prepares send failed", "repair prepare bytes", "could not drop the diverging", "no replica offers"),
        *("state transfer ", "state chunk request", "transferred client table", "metadata state transfer stalled"),
        *("failed to flush partition journal", "cannot serve the requested", "partition chunk request"),
        *("could not record the fenced", "failed to quarantine", "refusing a partition transfer", "descriptor commit"),
        *("partition transfer", "partition state transfer", "RebuildPipeline", "uncommitted suffix wider"),
        "no header at this replica's commit point",
    ),
}
"""Target → how the texts of problems begin that change nothing that is judged, or that other lines tell of."""
PLUMBING = (
    *("shard::router", "shard::coordinator", "consensus::dvc_merge", "consensus::state_transfer", "metadata::stm"),
    *("journal", "partitions", "iggy.partitions"),
)
"""Targets, or how they begin, whose problems are none of the state that is judged: what is not delivered, merges that
are refused, what is stored in segments.
"""


def is_noted(p: Parsed) -> bool:
    """Is a problem one of another part, or one that is looked past?"""
    if p.target.replace(".", "::").partition("::")[0] not in PARTS or p.target.startswith(PLUMBING):
        return True
    return p.text.startswith(NOTED.get(p.target, "\n"))
