"""The pipeline has a maximum: so many ops of a primary's log may be above its commit_max (seed 000).

Each prepare carries its primary's commit_max. A new primary starts from the largest commit number of the
do_view_changes and of the prepare at its log's head, so that the bound holds across views although a do_view_change
carries commit_min. The bound is read by `normal.require_room`, `view_change.start_view` and invariant I5.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import Schema, all_of, exists, forall, up_to, witness
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.module import Module
from viewproof.spec.vsr.state import Op, Replica, View


def declare(s: Schema, cfg: Config) -> None:
    """Declare the commit number in a prepare."""
    s.register(
        "prepare_commit",
        (View, Op),
        up_to(Op),
        sender=lambda view, op: view % cfg.replicas,
        doc="prepare: its primary's commit_max",
    )


@witness("I5.head", "the head's prepare knows of more commits than the do_view_changes")
def head_knows_more(s: Any) -> Any:
    """A log was offered whose head carries a commit number above that of every do_view_change of its view."""
    return exists(
        View,
        lambda v: exists(
            Replica,
            lambda b: all_of(
                s.dvc[v, b],
                s.dvc_op[v, b] > 0,
                lambda: forall(Replica, lambda q: s.dvc_commit[v, q] < carried_commit(s, v, b)),
            ),
        ),
    )


def carried_commit(s: Any, v: Any, b: Any) -> Any:
    """The commit number in the prepare at the head of the log that b offered to view v."""
    n = s.dvc_op[v, b]
    return s.prepare_commit[s.dvc_entry[v, b, n] - 1, n]


MODULE = Module("pipeline", lambda cfg: cfg.pipeline > 0, declare=declare, witnesses=lambda cfg: (head_knows_more,))
