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
from viewproof.spec.vsr.tigerbeetle.abstraction import HELD, JULY, JUNE, Family, core_of
from viewproof.spec.vsr.tigerbeetle.mistakes_2022 import MISTAKES as MISTAKES_2022
from viewproof.spec.vsr.tigerbeetle.mistakes_2026 import MISTAKES as MISTAKES_2026
from viewproof.spec.vsr.tigerbeetle.models_2022 import model_2022
from viewproof.spec.vsr.tigerbeetle.models_2026 import model_2026
from viewproof.spec.vsr.tigerbeetle.strides import Mistake

MODELS: Mapping[str, Callable[..., Model]] = {"2022": model_2022, "2026": model_2026}
FAMILIES: Mapping[str, Family] = {"2022": JUNE, "2026": JULY}
MISTAKES: Mapping[str, Mapping[str, Mistake]] = {"2022": MISTAKES_2022, "2026": MISTAKES_2026}
ALONE = {"n": 1, "clients": 2}
SMALL: list[tuple[str, dict[str, int], tuple[int, int, int]]] = [
    ("2022", ALONE, (13, 19, 4)),
    ("2022", ALONE | {"ops": 2, "table": 1}, (69, 111, 7)),
    ("2026", ALONE | {"views": 3}, (111, 110, 7)),
    ("2026", ALONE | {"views": 3, "ops": 2, "table": 1}, (1247, 1432, 12)),
]
LARGE: list[tuple[str, dict[str, int], tuple[int, int, int]]] = [
    ("2022", {}, (4833, 10674, 25)),
    ("2026", {}, (2861, 4978, 25)),
    ("2026", {"crashes": 1}, (17418, 31605, 26)),
]
DEEP: list[tuple[str, dict[str, int], int, tuple[int, int, int]]] = [
    ("2022", {}, 9, (13496, 35951, 9)),
    ("2026", {}, 8, (3724, 12663, 8)),
    ("2022", {"crashes": 1, "rots": 1}, 6, (8318, 18351, 6)),
    ("2026", {"crashes": 1, "rots": 1}, 6, (4440, 13358, 6)),
]
"""Family, sizes (and how many strides deep) → states, strides taken, depth."""


def core_holds(family: str, n: int) -> Callable[[State], str]:
    """What the core says of the logs that were executed, and that views started with; each such state once."""
    seen: set[str] = set()

    def check(state: State) -> str:
        spec, core = core_of(state, FAMILIES[family], n)
        text = repr(sorted((name, sorted(table.items())) for name, table in core.tables.items()))
        if text in seen:
            return ""
        seen.add(text)
        return next((one.id for one in spec.invariants if one.id in HELD and not holds(spec, one, core, core)), "")

    return check


def counts(found: Found) -> tuple[int, int, int]:
    """What is pinned."""
    return found.states, found.taken, found.depth


@pytest.mark.parametrize(("family", "sizes", "expected"), SMALL)
def test_a_cluster_of_one_that_crashes_is_searched_to_the_end(
    family: str, sizes: dict[str, int], expected: tuple[int, int, int]
) -> None:
    found = search(MODELS[family](**sizes), core_holds(family, 1))
    assert (found.broken, found.complete, counts(found)) == ("", True, expected)


@pytest.mark.long
@pytest.mark.parametrize(("family", "sizes", "expected"), LARGE)
def test_two_replicas_that_change_the_view_are_searched_to_the_end(
    family: str, sizes: dict[str, int], expected: tuple[int, int, int]
) -> None:
    """Every claim of every step follows from its other guards, and what is executed is a log of the core."""
    found = search(MODELS[family](**sizes), core_holds(family, 2))
    assert (found.broken, found.complete, counts(found)) == ("", True, expected)
    assert min(found.per_stride.values()) > 0


@pytest.mark.long
@pytest.mark.parametrize(("family", "sizes", "deepest", "expected"), DEEP)
def test_three_replicas_are_searched_as_deep_as_time_allows(
    family: str, sizes: dict[str, int], deepest: int, expected: tuple[int, int, int]
) -> None:
    found = search(MODELS[family](n=3, **sizes), core_holds(family, 3), deepest=deepest)
    assert (found.broken, counts(found)) == ("", expected)


QUICK = (
    *(("2026", name) for name in ("acknowledges what is not durable", "merges one vote")),
    *(("2022", name) for name in ("merges one vote", "recover.empty_journal_is_new", "recovers on one answer")),
    *(("2022", name) for name in ("nack.clears_faulty", "nack.below_window", "view.pipeline_after_repair")),
    *(("2026", name) for name in MISTAKES_2026 if MISTAKES_2026[name].sizes.get("crashes")),
    *((family, name) for family in MISTAKES for name in ("view.solo_keeps_view", "table.replayed_register")),
)
NAMED = [(family, name) for family, mistakes in MISTAKES.items() for name in mistakes]


@pytest.mark.parametrize(
    ("family", "name"), [pytest.param(*one, marks=() if one in QUICK else pytest.mark.long) for one in NAMED]
)
def test_a_mistake_breaks_the_claim_of_a_step(family: str, name: str) -> None:
    how = MISTAKES[family][name]
    found = search(MODELS[family](name, **how.sizes), lead=how.lead)
    assert (found.at, found.complete) == (how.at, False), found.story


LED_BY_THEMSELVES = ("acknowledges what is not durable", "commits on one acknowledgement")
"""Mistakes that are in their leads."""
WITHOUT = [
    (family, name)
    for family, mistakes in MISTAKES.items()
    for name, how in mistakes.items()
    if how.lead and not how.instead and name not in LED_BY_THEMSELVES
]


@pytest.mark.long
@pytest.mark.parametrize(("family", "name"), WITHOUT)
def test_without_the_mistake_what_follows_the_same_steps_breaks_nothing(family: str, name: str) -> None:
    """As far as time allows."""
    how = MISTAKES[family][name]
    found = search(MODELS[family](**how.sizes), core_holds(family, 3), most=3_000, lead=how.lead)
    assert (found.broken, found.at) == ("", "")


def test_a_cluster_that_lost_its_memory_at_once_never_comes_back() -> None:
    """Only a normal replica answers a recovery, and none is: as the build of June 2022 does it, all wait for ever (L1,
    recover.needs_normal_quorum).
    """
    all_write = ("request", "on_prepare:1", "on_prepare:2", "write:0", "write:1", "write:2")
    found = search(model_2022(n=3, crashes=3), lead=(*all_write, "crash:0", "crash:1", "crash:2"))
    assert (found.states, found.taken, found.complete) == (1, 0, True)


def test_the_core_is_broken_where_two_replicas_executed_different_prepares() -> None:
    """What is checked at every state can fail: of a claim that nothing refuses it says so, too."""
    model = model_2026(n=1, clients=2, views=3)
    met: list[State] = []

    def executed(state: State) -> str:
        met.append(state)
        return "found" if state.tables.get("canonical", {}).get((1,)) else ""

    search(model, executed)
    tables = {name: dict(table) for name, table in met[-1].tables.items()}
    tables["commit_max"][0,] = 0
    assert core_holds("2026", 1)(State(tables)) == "I5"


def test_a_guard_that_no_step_has_is_refused_by_name() -> None:
    model = replace(model_2026(n=1), lacks=(("commit", "no such text"),))
    with pytest.raises(SpecError, match="commit has no guard with 'no such text'"):
        search(model)


def test_a_lead_that_is_not_enabled_is_refused_by_name() -> None:
    with pytest.raises(SpecError, match="commit:0 is not enabled"):
        search(model_2026(n=1), lead=("commit:0",))
