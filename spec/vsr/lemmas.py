"""The lemmas under a configuration: the core's and those of the parts that are on, but for what a part makes untrue."""

from __future__ import annotations

from viewproof.spec.lang import Predicate
from viewproof.spec.vsr.config import Config
from viewproof.spec.vsr.core.lemmas import GROUPS, LEMMAS, any_size
from viewproof.spec.vsr.parts import CORE, PARTS

__all__ = ["GROUPS", "LEMMAS", "following_of_any_size", "lemmas_of", "more_of_any_size"]


def lemmas_of(cfg: Config, crashes: bool = False) -> tuple[Predicate, ...]:
    """The lemmas of a proof under a configuration. With `crashes` in the instance some do not hold."""
    on = [part for part in (CORE, *PARTS) if part.is_on(cfg)]
    untrue = {id for part in on for id in part.untrue(cfg, crashes)}
    return tuple(lemma for part in on for lemma in part.lemmas(cfg) if lemma.id not in untrue)


def more_of_any_size(cfg: Config) -> tuple[Predicate, ...]:
    """What a proof without sizes needs besides `lemmas_of`: there are such lemmas for the core without parts."""
    return () if any(part.is_on(cfg) for part in PARTS) else any_size.LEMMAS


def following_of_any_size(cfg: Config) -> tuple[Predicate, ...]:
    """What follows from all of those in the same state, and spares a proof without sizes to find it at every step."""
    return () if any(part.is_on(cfg) for part in PARTS) else any_size.FOLLOWING
