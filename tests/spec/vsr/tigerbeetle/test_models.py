"""Bounded models of TigerBeetle's two specifications: searched to the end, and the mistakes that break them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from viewproof.spec.engines.interp import holds
from viewproof.spec.engines.strides import Found, search
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.concrete import State
from viewproof.spec.lang.strides import Model
from viewproof.spec.vsr.tigerbeetle import models_2022, models_2026
from viewproof.spec.vsr.tigerbeetle.abstraction import HELD, JULY, JUNE, Family, core_of
from viewproof.spec.vsr.tigerbeetle.strides import Lacks

MODELS: Mapping[str, Callable[..., Model]] = {"2022": models_2022.model_2022, "2026": models_2026.model_2026}
FAMILIES: Mapping[str, Family] = {"2022": JUNE, "2026": JULY}
FAULTS: Mapping[str, Mapping[str, Lacks]] = {"2022": models_2022.FAULTS, "2026": models_2026.FAULTS}
COUNTS = {
    ("2022", 1): (13, 19, 4),
    ("2022", 2): (4833, 10674, 25),
    ("2026", 1): (111, 110, 7),
    ("2026", 2): (3644, 6154, 25),
}
"""Family, replicas → states, strides taken, depth."""


def sizes(family: str, n: int) -> dict[str, int]:
    """How far a model reaches: of a cluster of one two clients, and in 2026 three views."""
    if n > 1:
        return {}
    return {"clients": 2} if family == "2022" else {"clients": 2, "views": 3}


def core_holds(family: str, n: int) -> Callable[[State], str]:
    """What the core says of the logs that were executed, and that views started with; each such state once."""
    seen: set[str] = set()

    def check(state: State) -> str:
        spec, core = core_of(state, FAMILIES[family], n)
        text = repr(sorted((name, sorted(table.items())) for name, table in core.tables.items()))
        if text in seen:
            return ""
        seen.add(text)
        return next((one.id for one in spec.invariants if one.id in HELD and not holds(spec, one, core)), "")

    return check


def counts(found: Found) -> tuple[int, int, int]:
    """What is pinned."""
    return found.states, found.taken, found.depth


@pytest.mark.parametrize(("family", "n"), [("2022", 1), ("2026", 1)])
def test_a_cluster_of_one_that_crashes_is_searched_to_the_end(family: str, n: int) -> None:
    found = search(MODELS[family](n, **sizes(family, n)), core_holds(family, n))
    assert (found.broken, found.complete, counts(found)) == ("", True, COUNTS[family, n])


@pytest.mark.long
@pytest.mark.parametrize(("family", "n"), [("2022", 2), ("2026", 2)])
def test_two_replicas_that_change_the_view_are_searched_to_the_end(family: str, n: int) -> None:
    """Every claim of every step follows from its other guards, and what is executed is a log of the core."""
    found = search(MODELS[family](n), core_holds(family, n))
    assert (found.broken, found.complete, counts(found)) == ("", True, COUNTS[family, n])
    assert min(found.per_stride.values()) > 0


QUICK = (("2026", "acknowledges what is not durable"), ("2026", "merges one vote"), ("2022", "merges one vote"))
NAMED = [(family, name) for family, faults in FAULTS.items() for name in faults]


@pytest.mark.parametrize(
    ("family", "name"),
    [pytest.param(*one, marks=() if one in QUICK or "solo" in one[1] else pytest.mark.long) for one in NAMED],
)
def test_a_step_that_lacks_a_guard_breaks_the_claim_of_another(family: str, name: str) -> None:
    fault = FAULTS[family][name]
    n = 1 if name == "view.solo_keeps_view" else 3
    found = search(MODELS[family](n, **sizes(family, n), fault=name), lead=fault.lead)
    assert (found.at, found.complete) == (fault.at, False), found.story


def test_the_core_is_broken_where_two_replicas_executed_different_prepares() -> None:
    """What is checked at every state can fail: of a claim that nothing refuses it says so, too."""
    model = MODELS["2026"](1, clients=2, views=3)
    state: list[State] = []
    search(model, lambda one: "" if one.tables.get("canonical", {}).get((1,)) is None else state.append(one) or "found")
    tables = {name: dict(table) for name, table in state[0].tables.items()}
    tables["commit_max"][0,] = 0
    assert core_holds("2026", 1)(State(tables)) == "I5"


def test_a_guard_that_no_step_has_is_refused_by_name() -> None:
    model = replace(MODELS["2026"](1), lacks=(("commit", "no such text"),))
    with pytest.raises(SpecError, match="commit has no guard with 'no such text'"):
        search(model)
