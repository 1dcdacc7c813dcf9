"""The pipeline has a maximum: so many ops of a primary's log may be above its commit_max (seed 000).

Each prepare carries its primary's commit_max. A new primary starts from the largest commit number of the
do_view_changes and of the prepare at its log's head, so that the bound holds across views although a do_view_change
carries commit_min.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from viewproof.spec.lang import (
    Bool,
    Fields,
    Part,
    Sent,
    action,
    all_of,
    at,
    between,
    exists,
    field,
    forall,
    implies,
    invariant,
    require,
    value_of,
    where,
    without,
    witness,
)
from viewproof.spec.vsr.bounds import Bounds, Model
from viewproof.spec.vsr.core import invariants, normal, view_change
from viewproof.spec.vsr.core.lemmas.words import chosen_up_to, each_view_entry
from viewproof.spec.vsr.core.state import NORMAL, Op, Prepare, Replica, View, primary
from viewproof.spec.vsr.options import Options, option
from viewproof.spec.vsr.parts.protocol import Protocol
from viewproof.spec.vsr.stand_ins import Fault, instead_of

if TYPE_CHECKING:
    from viewproof.spec.vsr.config import Config


@dataclass(frozen=True)
class PipelineOptions(Options):
    """The option of the pipeline."""

    pipeline: int = option(0, "most prepares above commit_max (0: any number)", least=0)


class KnownCommit(Fields):
    """What a prepare says besides."""

    commit: Op = field("its primary's commit_max")


class PipelinedPrepare(Prepare, KnownCommit):
    """A prepare that carries a commit number."""


class Pipelined(Protocol):
    """The state with a pipeline."""

    prepare: Sent[tuple[View, Op], PipelinedPrepare]


def require_pipeline(state: Pipelined, r: Replica, o: Op) -> None:
    """The pipeline has room for op o."""
    require(o - state.commit_max[r] <= state.cfg.pipeline)


def require_short(state: Pipelined, n: Op, known: Op) -> None:
    """What a new primary's log of n ops has above what is known to be committed fits into the pipeline."""
    require(n - known <= state.cfg.pipeline)


def carry_commit(state: Pipelined, r: Replica) -> KnownCommit:
    """A prepare carries its primary's commit_max."""
    return KnownCommit(commit=state.commit_max[r])


def head_commit(state: Pipelined, r: Replica, b: Replica) -> Op:
    """The commit number in the prepare at the head of the log that b offered for r's view."""
    v, received = state.view[r], state.received(r)
    n = received.dvc[v, b].op
    return where(n == 0, 0, lambda: state.prepare[value_of(received.dvc[v, b].entry[n]), n].commit)


def is_bounded(s: Pipelined, r: Replica) -> Bool:
    """A normal primary's log ends at most `pipeline` ops above its commit_max."""
    leads = all_of(s.status[r] == NORMAL, primary(s, s.view[r]) == r)
    return implies(leads, s.op[r] <= s.commit_max[r] + s.cfg.pipeline)


@witness("I5.head", "the head's prepare knows of more commits than the do_view_changes")
def head_knows_more(s: Pipelined) -> Bool:
    """A log was offered whose head carries a commit number above that of every do_view_change of its view."""
    return exists(
        View,
        lambda v: exists(
            Replica,
            lambda b: all_of(
                s.dvc[v, b].sent,
                s.dvc[v, b].op > 0,
                lambda: forall(Replica, lambda q: s.dvc[v, q].commit < carried_commit(s, v, b)),
            ),
        ),
    )


def carried_commit(s: Pipelined, v: View, b: Replica) -> Op:
    """The commit number in the prepare at the head of the log that b offered to view v."""
    n = s.dvc[v, b].op
    return s.prepare[value_of(s.dvc[v, b].entry[n]), n].commit


@invariant("pipeline.carried", "the commit number in a prepare is backed, and not far below")
def carried(s: Pipelined) -> Bool:
    """Each op up to the commit number in a prepare was chosen in its view or before, and that number is below the
    prepare's op by at most the pipeline's length.
    """
    return each_view_entry(
        lambda v, o: implies(
            s.prepare[v, o].sent,
            lambda: all_of(
                s.prepare[v, o].commit < o,
                o <= s.prepare[v, o].commit + s.cfg.pipeline,
                forall(between(Op, 1, s.prepare[v, o].commit), lambda p: chosen_up_to(s, v, p)),
            ),
        )
    )


LEMMAS = (carried,)


@action
def start_view_by_commit_min(state: Pipelined, r: Replica, b: Replica) -> None:
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
    state=lambda cfg: (Pipelined,),
    changes=lambda cfg: (
        at(normal.require_room, require_pipeline),
        at(normal.complete, carry_commit),
        at(view_change.offered_commit, head_commit),
        at(view_change.require_fits, require_short),
        at(invariants.bounds_of, is_bounded),
    ),
    witnesses=lambda cfg: (head_knows_more,),
    lemmas=lambda cfg: LEMMAS,
    faults=FAULTS,
    models={"pipeline": Model(Bounds(views=2, ops=2, clients=2, requests=1), {"pipeline": 1})},
)
