"""Lemmas about control entries: the features of a replica are those of the prefix that it executed."""

from __future__ import annotations

from typing import Any

from viewproof.spec.lang import all_of, any_of, forall, invariant, not_
from viewproof.spec.vsr.control import CHAINED_CHECKSUM, feature_of
from viewproof.spec.vsr.lemmas.words import each_replica, each_view_entry
from viewproof.spec.vsr.state import Feature, Op, Replica


@invariant("control.prepare_kind", "a prepare is of one kind")
def prepare_kind(s: Any) -> Any:
    """A prepare of a client enables no feature."""
    return each_view_entry(lambda v, o: any_of(s.prepare_client[v, o] == 0, s.prepare_feature[v, o] == 0))


@invariant("control.supported", "what is proposed is supported")
def supported(s: Any) -> Any:
    """Every member said that it supports a feature that was proposed."""
    return each_view_entry(
        lambda v, o: forall(
            Feature, lambda f: any_of(s.prepare_feature[v, o] != f, forall(Replica, lambda q: s.supports[q, f]))
        )
    )


def features_as_of(s: Any, r: Any) -> Any:
    """Are r's features those of the prefix that it executed: each enabled by the first of its entries, and the chain by
    the first entry of feature 1?
    """
    limit = s.commit_min[r]

    def of_entry(f: Any, o: Any) -> Any:
        executed = s.first_executed[o] != 0
        return all_of(
            any_of(o > limit, s.enabled_at[r, f] != o, all_of(executed, lambda: feature_of_first(s, o) == f)),
            any_of(
                o > limit,
                not_(executed),
                lambda: feature_of_first(s, o) != f,
                all_of(s.enabled_at[r, f] != 0, s.enabled_at[r, f] <= o),
            ),
        )

    return all_of(
        forall(Feature, lambda f: all_of(s.enabled_at[r, f] <= limit, forall(Op, lambda o: of_entry(f, o)))),
        s.chain_from[r] == s.enabled_at[r, CHAINED_CHECKSUM],
    )


def feature_of_first(s: Any, o: Any) -> Any:
    """The feature that what was executed first at o enables."""
    return feature_of(s, s.first_executed[o], o)


@invariant("control.features", "features are those of the executed prefix")
def features(s: Any) -> Any:
    """A replica's features, and where its checksum chain began, are those of what was executed up to its commit_min."""
    return each_replica(lambda r: features_as_of(s, r))


LEMMAS = (prepare_kind, supported, features)
