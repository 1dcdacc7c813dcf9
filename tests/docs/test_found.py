"""What the pages of other systems say was found is what tests find: steps, invariants, states."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.spec.counts import FAULTS, pinned
from tests.spec.oxia.test_faults import AS_BUILT
from tests.spec.vsr.iggy.test_iggy import LOSSES
from tests.spec.vsr.repair.test_repair import CATALOGUE
from tests.spec.vsr.repair.test_repair import LOSSES as LATER
from tests.spec.vsr.tigerbeetle.test_models import DEEP, LARGE, MISTAKES, SMALL
from viewproof.spec.oxia.fault_models import FAULT_MODELS as OXIA
from viewproof.spec.vsr.fault_models import FAULT_MODELS as VSR

DOCS = Path(__file__).resolve().parents[2] / "docs"
SAID = re.compile(r"\b(I\d+\w*) (?:after|in) (\d+)")
FAULT_MODELS = {**VSR, **OXIA}


def page(name: str) -> str:
    """The text of a page."""
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


def found_of(fault: str) -> set[tuple[str, str]]:
    """What breaks, and after how many steps, as tests search for it."""
    losses = {("I2", str(steps)) for name, _, _, steps in LOSSES if name == fault}
    built = {(breaks, str(steps)) for (name, *_), _, _, breaks, steps in AS_BUILT if name == fault}
    return {(FAULT_MODELS[fault].breaks, str(pinned()[FAULTS][fault]))} | losses | built


@pytest.mark.parametrize("name", ["iggy", "oxia"])
def test_a_section_says_what_its_mistake_breaks_and_after_how_many_steps(name: str) -> None:
    sections = re.findall(r"^### `([\w.]+)`[^\n]*\n(.*?)(?=^##)", page(name), re.MULTILINE | re.DOTALL)
    assert sections
    for fault, text in sections:
        said = set(SAID.findall(" ".join(text.split())))
        assert said <= found_of(fault) if fault in FAULT_MODELS else not said, fault


@pytest.mark.parametrize("name", ["iggy", "oxia"])
def test_the_table_of_other_mistakes_is_what_searches_find(name: str) -> None:
    row = r"^\| `([\w.]+)` \|[^|]*\| (\w+)(?: \((I\d) after (\d+)\))? \| (\d+) \|$"
    rows = re.findall(row, page(name), re.MULTILINE)
    assert len(rows) >= 7
    for fault, breaks, later, after, steps in rows:
        assert {(breaks, steps)} | ({(later, after)} if later else set()) <= found_of(fault), fault


def test_what_breaks_later_in_recovery_and_repair_is_what_searches_find() -> None:
    table = page("recovery-and-repair").partition("| fault | breaks, too |")[2].partition("\n\n")[0]
    rows = re.findall(r"^\| `([\w.]+)` \| (.*) \|$", table, re.MULTILINE)
    said = {(fault, *found) for fault, text in rows for found in re.findall(r"(I\d+) in (\d+)", text)}
    found = {*CATALOGUE, *((fault, "I2", steps) for fault, steps in LATER)}
    assert said == {(fault, breaks, str(steps)) for fault, breaks, steps in found}


def test_tigerbeetles_models_have_the_pinned_counts() -> None:
    text = page("tigerbeetle")
    rows = re.findall(r"^\| 20\d\d, [^|]* \| ([\d,]+) \| ([\d,]+) \| (\d+) \|$", text, re.MULTILINE)
    said = sorted(tuple(int(number.replace(",", "")) for number in row) for row in rows)
    assert said == sorted(counts for _, _, counts in (*SMALL, *LARGE))
    for *_, (states, _, _) in DEEP:
        assert f"{states:,}" in text


def test_tigerbeetles_mistakes_are_shown_where_the_page_says() -> None:
    header = "| mistake | breaks | shown in 2022 at | in 2026 at |"
    table = page("tigerbeetle").partition(header)[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]
    assert len(rows) > 15
    for name, _, *places in rows:
        for family, place in zip(("2022", "2026"), places, strict=True):
            known = {how.at for what, how in MISTAKES[family].items() if name.replace("`", "").startswith(what)}
            assert known == ({place} if re.fullmatch(r"\w+", place) else set()), (name, family)
