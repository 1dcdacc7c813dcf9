"""The pipeline has a maximum: so many ops of a primary's log may be above its commit_max (seed 000).

Each prepare carries its primary's commit_max. A new primary starts from the largest commit number of the
do_view_changes and of the prepare at its log's head, so that the bound holds across views although a do_view_change
carries commit_min.
"""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import (
    Part,
    Schema,
    action,
    all_of,
    as_index,
    at,
    between,
    exists,
    forall,
    implies,
    invariant,
    require,
    up_to,
    value_of,
    where,
    without,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core import invariants, normal, view_change
from viewproof.spec.vsr.core.lemmas.words import chosen_up_to, each_view_entry
from viewproof.spec.vsr.core.state import NORMAL, Op, Replica, View, is_prepared, primary
from viewproof.spec.vsr.stand_ins import Fault, instead_of


def declare(s: Schema, cfg: Config) -> None:
    """Declare the commit number in a prepare."""
    s.register(
        "prepare_commit",
        (View, Op),
        up_to(Op),
        sender=lambda view, op: as_index(Replica, view % cfg.replicas),
        doc="prepare: its primary's commit_max",
    )


def require_pipeline(state: Any, r: Any, o: Any) -> None:
    """The pipeline has room for op o."""
    require(o - state.commit_max[r] <= state.cfg.pipeline)


def require_short(state: Any, n: Any, known: Any) -> None:
    """What a new primary's log of n ops has above what is known to be committed fits into the pipeline."""
    require(n - known <= state.cfg.pipeline)


def carry_commit(state: Any, r: Any, v: Any, o: Any) -> None:
    """A prepare carries its primary's commit_max."""
    state.prepare_commit[v, o] = state.commit_max[r]


def head_commit(state: Any, r: Any, b: Any) -> Any:
    """The commit number in the prepare at the head of the log that b offered for r's view."""
    v, received = state.view[r], state.received(r)
    n = received.dvc_op[v, b]
    return where(n == 0, 0, lambda: state.prepare_commit[value_of(received.dvc_entry[v, b, n]), n])


def is_bounded(s: Any, r: Any) -> Any:
    """A normal primary's log ends at most `pipeline` ops above its commit_max."""
    leads = all_of(s.status[r] == NORMAL, primary(s, s.view[r]) == r)
    return implies(leads, s.op[r] <= s.commit_max[r] + s.cfg.pipeline)


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
    return s.prepare_commit[value_of(s.dvc_entry[v, b, n]), n]


@invariant("pipeline.carried", "the commit number in a prepare is backed, and not far below")
def carried(s: Any) -> Any:
    """Each op up to the commit number in a prepare was chosen in its view or before, and that number is below the
    prepare's op by at most the pipeline's length.
    """
    return each_view_entry(
        lambda v, o: implies(
            is_prepared(s, v, o),
            lambda: all_of(
                s.prepare_commit[v, o] < o,
                o <= s.prepare_commit[v, o] + s.cfg.pipeline,
                forall(between(Op, 1, s.prepare_commit[v, o]), lambda p: chosen_up_to(s, v, p)),
            ),
        )
    )


LEMMAS = (carried,)


@action(r=Replica, b=Replica)
def start_view_by_commit_min(state: Any, r: Any, b: Any) -> None:
    """The new primary takes the do_view_changes' commit_min for what is committed, and so rebuilds a pipeline that is
    too long [seed 000].
    """
    with without(head_commit):
        view_change.start_view.fn(state, r, b)


def _needs_pipeline(cfg: Config) -> str:
    return "" if cfg.pipeline else "shows only with a pipeline that has a maximum"


FAULTS = (
    Fault(
        "commit.dvc_carries_commit_min_only",
        (instead_of(view_change.start_view, act=start_view_by_commit_min),),
        refuses=_needs_pipeline,
        drops=("n - known <= state.cfg.pipeline",),
    ),
)


PIPELINE = Part(
    "pipeline",
    lambda cfg: cfg.pipeline > 0,
    declare=declare,
    changes=lambda cfg: (
        at(normal.require_room, require_pipeline),
        at(normal.prepare, carry_commit),
        at(view_change.offered_commit, head_commit),
        at(view_change.require_fits, require_short),
        at(invariants.bounds_of, is_bounded),
    ),
    witnesses=lambda cfg: (head_knows_more,),
    lemmas=lambda cfg: LEMMAS,
    faults=FAULTS,
    models={"pipeline": Model(Bounds(views=2, ops=2, clients=2, requests=1), {"pipeline": 1})},
)
