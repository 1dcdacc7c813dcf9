"""Lemmas about the commit number in a prepare."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import all_of, between, forall, implies, invariant
from viewproof.spec.vsr.lemmas.words import chosen_up_to, each_view_entry
from viewproof.spec.vsr.state import Op, is_prepared


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
