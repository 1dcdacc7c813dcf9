"""Lemmas about partitions: what an executed op asked is known, and what is held and stored is that of a prefix."""

from __future__ import annotations

from viewproof.spec.lang import NONE, Bool, all_of, between, forall, implies, invariant, number_of, within
from viewproof.spec.vsr.core.lemmas.words import each_view_entry
from viewproof.spec.vsr.core.state import Op, Replica
from viewproof.spec.vsr.parts.partitions.invariants import end_after, executed_as, held_right, stored_right
from viewproof.spec.vsr.parts.partitions.state import APPEND, UNKNOWN, Offset, Partition, Partitioned, Reader, asked


@invariant("partitions.known", "what an executed op asked is known")
def known(s: Partitioned) -> Bool:
    """Of each executed op it is known what it asked; the appends among them, and no other op, were given offsets."""
    return forall(
        Op,
        lambda o: all_of(
            implies(s.first_executed[o] != NONE, lambda: asked(s, s.first_executed[o], o) != UNKNOWN),
            (s.first_given[o] != NONE) == executed_as(s, o, APPEND),
        ),
    )


@invariant("partitions.asked", "an op is asked when all before it are executed")
def asked_in_order(s: Partitioned) -> Bool:
    """Where it is known what a prepare asks, all ops before it were executed, and its messages fit above theirs. Only
    an append has messages.
    """
    return each_view_entry(
        lambda v, o: all_of(
            (s.asked[v, o] == APPEND) == (s.asked_count[v, o] != 0),
            implies(
                s.asked[v, o] != UNKNOWN,
                lambda: all_of(
                    forall(between(Op, 1, o - 1), lambda p: s.first_executed[p] != NONE),
                    within(Offset, end_after(s, s.asked_partition[v, o], o - 1) + number_of(s.asked_count[v, o])),
                ),
            ),
        )
    )


def partitions_as_of(s: Partitioned, r: Replica) -> Bool:
    """Are r's messages and stored offsets those of the ops that it executed?"""
    return all_of(
        forall(Partition, lambda n: held_right(s, r, n)),
        forall(Reader, lambda g: stored_right(s, r, g)),
    )


LEMMAS = (known, asked_in_order)
