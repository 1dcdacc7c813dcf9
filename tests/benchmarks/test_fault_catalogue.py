"""The catalogue of known mistakes is complete: each has its switches, its row, and each invariant has its mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.fault_runs import BEGIN, END, Caught, table_rows, write_table
from viewproof.faults import records
from viewproof.impl.faults import FAULTS as REPLICA_FAULTS
from viewproof.impl.sim import simulate
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.verdict import RunVerdict
from viewproof.spec.vsr.fault_models import FAULT_MODELS
from viewproof.spec.vsr.faults import FAULTS as SPEC_FAULTS

DOCS = Path(__file__).parents[2] / "docs" / "faults.md"


def test_each_mistake_has_a_switch_at_each_level_of_its_record() -> None:
    assert {id for id, fault in records().items() if "S" in fault.level} == SPEC_FAULTS.keys() == FAULT_MODELS.keys()
    assert {id for id, fault in records().items() if "I" in fault.level} == REPLICA_FAULTS.keys()


def test_each_mistake_is_in_the_documentation() -> None:
    text = DOCS.read_text(encoding="utf-8")
    table = text.partition(BEGIN)[2].partition(END)[0]
    rows = [line.split("|")[1].strip(" `") for line in table.splitlines() if line.startswith("| `")]
    assert rows == list(records())
    assert "NOTHING" not in table


def test_each_named_profile_is_in_the_documentation() -> None:
    text = DOCS.read_text(encoding="utf-8").partition("| profile | what it does |")[2].partition("\n\n")[0]
    assert {
        line.split("|")[1].strip(" `") for line in text.splitlines() if line.startswith("| `")
    } == NAMED_PROFILES.keys()


def test_each_invariant_has_a_mistake_that_breaks_it() -> None:
    models = {fault: chosen.spec(fault) for fault, chosen in FAULT_MODELS.items()}
    broken_first = {chosen.breaks for chosen in FAULT_MODELS.values()}
    unbroken = {invariant.id for spec in models.values() for invariant in spec.invariants} - broken_first
    assert not unbroken


def test_the_table_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    file = tmp_path / "page.md"
    file.write_text(f"before\n{BEGIN}\n| old |\n{END}\nafter\n", encoding="utf-8")
    write_table(file, ["| new |"])
    assert file.read_text(encoding="utf-8") == f"before\n{BEGIN}\n\n| new |\n\n{END}\nafter\n"
    file.write_text("no table", encoding="utf-8")
    with pytest.raises(ValueError, match="missing"):
        write_table(file, ["| new |"])


def test_a_row_says_what_was_counted() -> None:
    found = Caught()
    found.add(0, simulate(0, requests=5), RunVerdict("seed-0", "conforms", 1))
    assert found.sentence == "audit: 0 of 1; simulator: 0"
    assert next(table_rows(0, lambda fault: ("I1", "2", "9", "0.1")))[3] == "`core`: I1 in 2 steps, 9 states"
