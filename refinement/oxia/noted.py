"""Lines of Oxia's servers and coordinator that are no step: what is passed over, and what ends or hides a run.

A line of the components below that stands neither here nor in the table of `source.py` is counted as not known.
"""

from __future__ import annotations

CHANGING = ("leader-controller", "follower-controller", "follower-cursor", "shard-controller")
"""Components whose lines may tell of a change of a shard's state: one that is not in the table is counted by name."""
RECONNECTS = (
    "Successfully attached cursor follower",
    "Error while pushing entries to follower",
    "Error while receiving acks",
    "Follower reported not-member status, resetting ack offset to trigger snapshot",
)
"""After these a cursor goes on from where its follower is."""
REPLACED = frozenset(
    {
        ("follower-controller", "Installing snapshot..."),
        ("follower-controller", "Failed to recover database, follower is in a broken state"),
    }
)
"""What a server has from here on is not shown."""
EMPTIED = ("follower-cursor", "Follower reported not-member status, resetting ack offset to trigger snapshot")
"""A leader hears that a follower has lost its log."""
UNTIL = {
    ("shard-controller", "Changing ensemble"): "the ensemble changes",
    ("shard-controller", "Deleting shard"): "the shard is deleted",
    ("shard-controller", "Child shard during split, waiting for split to complete"): "the shard comes of a split",
    ("leader-controller", "Added observer follower"): "the shard is split",
}
"""The run is judged up to here, and why."""
STOPPED = ("panic: ", "fatal error: ", "unexpected fault address", "SIGSEGV", "SIGABRT", "SIGQUIT")
"""How the lines begin that a process prints, no JSON, as it stops itself; a trace follows."""

NOTED: dict[str, tuple[str, ...]] = {
    "shard-controller": (
        *("Started shard controller", "Starting a new election", "Elected new leader", "Shard is ready"),
        *("stopped the election", "FenceNewTerm failed", "Detected failure on shard leader"),
        *("Successfully rejoined the quorum", "Processed fenceNewTerm response"),
        "refresh the shard ensemble dataServer address",
        "FenceNewTerm is waiting for data server initialization",
        "Leader election is waiting for data server initialization",
        "All the member of the ensemble were successfully added",
        "Follower is caught-up with the leader after election",
        "Follower is *not* caught-up yet with the leader",
        *("Follower has not been added by leader yet", "Failed to get the follower status"),
        "Failed to fenceNewTermAndAddFollower, retrying later",
        "Failed to fenceNewTermAndAddFollower, invalid term. Stop trying",
        "Data server has failed in leader election, retrying",
        "Received notification of failed data server",
        "Discarding data server failure notification because queue is full",
        "Discarding leader election because queue is full",
        "Discarding sync-server-address election because queue is full",
        "There is already a data server marked as leader on the shard, verifying",
        *("Shard controller is stopped, stopping event loop", "Data Server looks ok"),
        "All data servers look good. No need to trigger new leader election",
        "Failed to verify status for shard. Start a new election",
        "Expected leader is not in leader status. Start a new election",
        "Expected follower is not in follower status. Start a new election",
        *("Node has a wrong term. Start a new election", "Leader election has failed, retrying later"),
        "server address changed, start a new leader election",
        "Change ensemble rejected: target ensemble does not support negotiated shard features",
        "Change ensemble rejected: shard is not ready (follower catch-up still in progress)",
        "Abort data server swap follower status validation due to context canceled",
    ),
    "leader-controller": (
        *("Created leader controller", "Closing leader controller", "Needs truncation?", "Proposed feature enable"),
        *("Recorded checksum", "Received read request", "Received list request", "No need to truncate follower"),
        *("Received get sequence updates request", "Received range-scan request", "Failed to process list request"),
        *("Failed to process range-scan request", "Failed to propose feature enable", "Failed to record checksum"),
        *("Failed to apply duplicate NewTerm in invalid state", "Failed to truncate follower"),
        *("Failed to create follower cursor", "Unable to create WAL reader", "Failed to initialize session manager"),
        *("Sending first dummy notification", "Dispatch notifications", "Got a new list of notification batches"),
        *("Removed observer follower", "Set shard write-freeze", "Invalid term when deleting shard", "Deleting shard"),
    ),
    "follower-controller": (
        *("Closing follower controller", "Follower controller closed", "Follower controller closed with error"),
        *("Failed to fence with invalid term", "Failed to get last entry from WAL", "State applier failed, retrying"),
        *("Stopped reading committed entries", "Error reading committed entry", "Successfully installed snapshot"),
        "Error opening reader used for applying committed entries",
        "Error closing reader used for applying committed entries",
        *("Follower controller installed snapshot with error", "Recovering database after failed snapshot install"),
        *("Applying snapshot chunk", "Received commit-offset advertisement", "Deleting shard"),
        *("Follower controller deleted", "Follower controller deleted with error"),
    ),
    "follower-cursor": (
        *RECONNECTS,
        *("Ack stream finished", "Sending snapshot to empty follower", "Sending snapshot chunk"),
        "The follower is behind the first available entry in the leader WAL",
        *("Sent the complete snapshot, waiting for response", "Successfully sent snapshot to follower"),
    ),
}
"""Component → messages that say nothing that others do not, or that change no state of the shard."""


def is_known(component: str, message: str) -> bool:
    """Is a line of the components that change a shard's state known, although it is no step?"""
    return (component, message) in UNTIL or replaces(component, message) or message in NOTED.get(component, ())


def replaces(component: str, message: str) -> bool:
    """Does a follower say that another log takes the place of its own?"""
    snapshot = component == "follower-controller" and "snapshot" in message.lower()
    return (component, message) in REPLACED or (snapshot and message not in NOTED[component])
