"""State counts of the core protocol, pinned: a change of them is a change of the protocol (or of an engine)."""

from __future__ import annotations

import pytest

from viewproof.spec.engines import explicit
from viewproof.spec.vsr import model

SMALL = [
    ({"replicas": 2, "views": 2, "ops": 1, "requests": 1, "restarts": 1}, (770, 1_639, 16)),
    ({"replicas": 3, "views": 1, "ops": 2, "requests": 2, "restarts": 0}, (1_036, 4_535, 17)),
    ({"replicas": 2, "views": 3, "ops": 1, "requests": 1, "restarts": 0}, (2_356, 3_961, 20)),
]
"""Sizes → distinct, generated, depth."""


@pytest.mark.parametrize(("sizes", "counts"), SMALL, ids=["two-restart", "one-view", "three-views"])
def test_small_models_have_the_pinned_counts(sizes: dict[str, int], counts: tuple[int, int, int]) -> None:
    found = explicit.explore(model("core", **sizes))
    assert found.verdict == "holds"
    assert (found.distinct, found.generated, found.depth) == counts


def test_core_with_three_replicas_three_views_two_ops_holds_with_the_pinned_counts() -> None:
    found = explicit.explore(model("core"))
    assert found.verdict == "holds"
    assert (found.distinct, found.generated, found.depth) == (55_666_326, 176_116_395, 40)
    assert found.unwitnessed.keys() <= {"L2"}
