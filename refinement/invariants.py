"""The catalogue's invariants in words."""

from __future__ import annotations

from typing import Final

INVARIANTS: Final = {
    "I1": "replicas that executed an op executed the same prepare",
    "I2": "an op that was replied to is in the log of every later started view",
    "I3": "an entry that a replica acknowledges, or installs, is durable in its journal",
    "I4": "commit_min grows by one per executed op, and never passes commit_max",
    "I5": "checkpoint <= commit_min <= min(commit_max, op); no op above the checkpoint is overwritten in the journal",
    "I6": "view and log_view never fall, restarts included; no promise is made above the durable view",
    "I7": "one prepare per view and op: it has one checksum everywhere",
    "I8": "the reply to an op is the same, whoever gives it and however often",
    "I9": "equal commit_min means an equal client table",
    "I10": "each prepare's parent is the prepare before it in the log; a checksum names one entry",
    "I11": "what a replica denies (nack) it never acknowledged",
    "I12": "a do_view_change carries the log that its log_view decided, and extensions of it",
    "I13": "what is executed after a restart is known to be committed, without a gap, and chained",
    "I14": "equal commit_min means an equal digest of state machine and client table",
    "I15": "offsets of a partition follow each other, are given once, and no stored one is above their end",
}
