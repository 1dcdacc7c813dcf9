"""Mistakes of the July 2026 build's family, each a change of its bounded model that breaks an invariant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from viewproof.spec.vsr.tigerbeetle.strides import Mistake

COMMITTED = ("request", "write", "on_prepare:0", "write:0", "on_prepare_ok", "commit")
"""The first primary executed a prepare that one backup holds, and the next primary lacks."""
CRASHES: Final = {"n": 3, "crashes": 1}
ROTS: Final = {"n": 3, "crashes": 1, "rots": 1}

MISTAKES: Mapping[str, Mistake] = {
    "acknowledges what is not durable": Mistake((("acknowledge", "is_clean"),), "I11", "join_view_bits"),
    "commits on one acknowledgement": Mistake((("commit", "oks("), ("prepare_quorum", "oks(")), "I2", "merge_log"),
    "merges one vote": Mistake((("merge_log", "count("),), "I2", "merge_log", COMMITTED),
    "cuts without nacks": Mistake((("merge_log", "h == top"),), "I2", "merge_log", COMMITTED),
    "view.solo_keeps_view": Mistake((), "I7", "on_request", sizes={"n": 1, "clients": 2, "views": 3}),
    "table.replayed_register": Mistake(
        (), "I8", "commit", sizes={"n": 1, "clients": 2, "ops": 3, "table": 1, "views": 3}
    ),
    "votes before its view is durable": Mistake((), "I6", "open_superblock", sizes=CRASHES),
    "recover.head_from_old_start_view": Mistake(
        (("install_log", "tells_head"),), "I2", "merge_log", (*COMMITTED, "crash:0,1"), sizes=ROTS
    ),
    "takes its head for certain": Mistake(
        (("start_normal", "head_is_certain"),), "I2", "merge_log", (*COMMITTED, "crash:0,1"), sizes=ROTS
    ),
    "nack.not_nacked_is_present": Mistake(
        (("merge_log", "copied"),), "L1", "merge_log", ("request", "on_prepare:0", "write:0", "crash:0,1"), sizes=ROTS
    ),
}
"""Name → what is wrong. A name with a dot is one of the catalogue's."""
