"""One compiled audit serves all configurations of a kind: its text is that of each, but for the numbers."""

from __future__ import annotations

from dataclasses import fields
from random import Random

import pytest

from viewproof.refinement.checker.compile import compile_kind, compile_program
from viewproof.refinement.native import SYSTEM, configuration
from viewproof.refinement.native.configuration import kind
from viewproof.refinement.schema import COLUMNS
from viewproof.spec.engines.replay.compile import action_texts
from viewproof.spec.engines.replay.given import Given, given
from viewproof.spec.lang import SpecError
from viewproof.spec.vsr import Config, unbounded


def some_configuration(rng: Random) -> Config:
    """A configuration that a boot may show."""
    shown: dict[str, int | None] = dict.fromkeys(COLUMNS)
    shown |= {"replicas": rng.randrange(1, 6)}
    quorum = (shown["replicas"] or 1) // 2 + 1
    shown |= {"quorum_replication": quorum, "quorum_view_change": quorum}
    columns = ("client_sessions", "client_gaps", "supports", "ring", "partitions", "checkpoint_interval")
    shown |= {column: rng.choice((None, 1)) for column in columns}
    shown |= {column: rng.choice((None, rng.randrange(2, 99))) for column in ("client_slots", "pipeline")}
    if shown["checkpoint_interval"]:
        shown["journal_slots"] = rng.randrange(8, 99)
    return configuration(shown)


@pytest.mark.parametrize("seed", range(6))
def test_the_code_of_a_kind_is_that_of_its_configurations(seed: int) -> None:
    cfg = some_configuration(Random(seed))
    kind_cfg, numbers = kind(cfg)
    texts = action_texts(unbounded(kind_cfg))
    for name, number in numbers.items():
        assert any(f"g_{name}" in text for text in texts.values()), name
        texts = {action: text.replace(f"g_{name}", str(number)) for action, text in texts.items()}
    assert texts == action_texts(unbounded(cfg))


def test_two_sizes_share_what_is_compiled() -> None:
    shown = dict.fromkeys(COLUMNS) | {"replicas": 3, "quorum_replication": 2, "quorum_view_change": 2}
    programs = [compile_program(SYSTEM, configuration(shown | {"client_slots": n}), ()) for n in (7, 8)]
    assert programs[0].kind is programs[1].kind
    before = compile_kind.cache_info().misses
    compile_program(SYSTEM, configuration(shown | {"client_slots": 9}), ())
    assert compile_kind.cache_info().misses == before


def test_configurations_of_a_kind_are_equal_field_by_field() -> None:
    """As Python 3.13 compares dataclasses; before it took fields that are one object for equal, without a question."""
    shown = dict.fromkeys(COLUMNS) | {"replicas": 3, "quorum_replication": 2, "quorum_view_change": 2}
    sized, _ = kind(configuration(shown | {"client_slots": 7, "pipeline": 5}))
    again, _ = kind(configuration(shown | {"client_slots": 8, "pipeline": 6}))
    table, other = sized.client_table, again.client_table
    assert isinstance(sized.pipeline, Given)
    assert (table.slots == other.slots) is True
    for name in (field.name for field in fields(sized)):
        assert bool(getattr(sized, name) == getattr(again, name)) is True
        assert bool(getattr(sized, name) != getattr(again, name)) is False


def test_a_given_number_cannot_decide_in_python() -> None:
    number = given("slots")
    assert isinstance(number, Given)
    assert number > 0
    assert number != 0
    with pytest.raises(SpecError, match="Python"):
        bool(number > 3)
    with pytest.raises(SpecError, match="Python"):
        range(number)  # type: ignore[arg-type]
