"""Counts of the core, steps to each mistake, and documents: as pinned in `counts.toml`."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.spec.counts import (
    CHAINS,
    FAULTS,
    PINNED,
    SEARCHES,
    UPDATE,
    counts_of,
    documented,
    instance,
    pinned,
    require_counts,
    require_steps,
    with_pinned_counts,
)
from viewproof.spec.engines import explicit
from viewproof.spec.vsr import model
from viewproof.spec.vsr.core.progress import goals
from viewproof.spec.vsr.fault_models import FAULT_MODELS

DOCS = sorted((Path(__file__).parents[3] / "docs").glob("*.md"))
GENERATED = {"faults.md", "mutants.md", "tla.md"}
"""Documents whose numbers a command writes: `benchmarks.faults`, `vsr mutate`, `benchmarks.tlc`."""
RECORDED = re.compile(r"<!-- (\S+) of benchmarks/recorded/.*?<!-- end of \1 -->", re.DOTALL)
"""A table that a benchmark writes: each row names its command."""
CORE: list[tuple[str, dict[str, int]]] = [
    ("core", {"views": 1, "ops": 1, "requests": 1}),
    ("core", {"views": 2}),
    ("core", {"views": 2, "clients": 2, "requests": 1}),
    ("core_restart", {}),
    ("core_restart", {"ops": 1, "requests": 1}),
]
"""Instances that only documents name."""


@pytest.mark.parametrize(("name", "sizes"), CORE, ids=lambda value: str(value))
def test_the_core_holds_with_the_pinned_counts(name: str, sizes: dict[str, int]) -> None:
    require_counts(explicit.explore(model(name, **sizes)), name, **sizes)


@pytest.mark.long
def test_core_with_three_replicas_three_views_two_ops_holds_with_the_pinned_counts() -> None:
    found = explicit.explore(model("core"))
    require_counts(found, "core")
    assert found.unwitnessed.keys() <= {"L2"}


@pytest.mark.parametrize("fault", sorted(FAULT_MODELS))
def test_a_mistake_is_found_in_the_pinned_steps(fault: str) -> None:
    chosen = FAULT_MODELS[fault]
    spec = chosen.spec(fault)
    if not chosen.stops_progress:
        found = explicit.explore(spec)
        assert found.broken == chosen.breaks
    else:
        wanted = [g for g in goals(spec) if g.id == chosen.breaks]
        (answer,) = explicit.always_reaches(spec, wanted)
        found = answer.result
    require_steps(found, fault)


def test_what_is_pinned_is_named_as_a_search_names_it() -> None:
    for name in pinned()[SEARCHES]:
        model_name, *options = name.split(" --")
        sizes = {size: int(number) for size, number in (option.split() for option in options)}
        assert instance(model_name, **sizes) == name


@pytest.mark.parametrize("page", DOCS, ids=lambda page: page.stem)
def test_a_document_has_the_pinned_counts(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if os.environ.get(UPDATE):
        page.write_text(with_pinned_counts(text), encoding="utf-8")
        text = page.read_text(encoding="utf-8")
    assert text == with_pinned_counts(text), f"{UPDATE}=1 takes them"


@pytest.mark.parametrize("page", [p for p in DOCS if p.name not in GENERATED], ids=lambda page: page.stem)
def test_a_document_says_of_which_instance_a_count_is(page: Path) -> None:
    text = RECORDED.sub("", page.read_text(encoding="utf-8"))
    said = {match.start("number") for match, _ in documented(text)}
    large = {f"{count:,}" for counts in pinned()[SEARCHES].values() for count in counts if count > 9_999}
    unsaid = [match[0] for match in re.finditer(r"\d[\d,]+", text) if match[0] in large and match.start() not in said]
    assert unsaid == [], "name the instance: 12,649<!-- core --views 2 --ops 1 --requests 1 -->"


def test_the_table_of_mistakes_has_the_pinned_steps() -> None:
    (page,) = (p for p in DOCS if p.name == "faults.md")
    rows = re.findall(r"^\| `([\w.]+)` .*?: [\w., ]+ in (\d+) steps?,", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert {fault: int(steps) for fault, steps in rows} == {f: pinned()[FAULTS][f] for f in FAULT_MODELS}


def test_the_table_of_proofs_has_the_pinned_rounds_and_steps() -> None:
    (page,) = (p for p in DOCS if p.name == "proofs.md")
    row = r"^\| `([\w.]+)` \|(?:[^|]*\|){3} (\d+) \|[^|]*\| (\d+) \|$"
    rows = re.findall(row, page.read_text(encoding="utf-8"), re.MULTILINE)
    said = {fault: [int(rounds), int(steps)] for fault, rounds, steps in rows}
    chains = pinned()[CHAINS]
    assert {fault: said[fault] for fault in chains} == chains


def test_a_wrong_number_in_a_document_is_noticed_and_corrected() -> None:
    found = counts_of("discard")
    right = f"{found.distinct:,}<!-- discard --> states, {found.depth}<!-- discard: depth --> steps deep"
    wrong = re.sub(r"\d[\d,]*", "7", right)
    assert with_pinned_counts(wrong) == with_pinned_counts(right) == right
    command = "vsr check core --views 2 --ops 1 --requests 1     # 7 states"
    assert f"# {counts_of('core', views=2, ops=1, requests=1).distinct:,} states" in with_pinned_counts(command)
    with pytest.raises(KeyError):
        with_pinned_counts("7<!-- core --views 9 -->")


def test_a_search_that_counts_otherwise_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(UPDATE, raising=False)
    before = PINNED.read_bytes()
    found = explicit.explore(model("core", replicas=2, views=2, ops=1, requests=1))
    with pytest.raises(AssertionError, match="core --replicas 2"):
        require_counts(found, "core", replicas=2, views=2)
    assert PINNED.read_bytes() == before
