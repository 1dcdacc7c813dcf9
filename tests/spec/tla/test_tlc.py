"""TLC as an independent judge. With VSR_TLC set (see docs/tla.md) TLC runs; its pinned counts are checked always."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.spec.counts import require_counts, require_steps
from tests.spec.generated_models import models
from tests.spec.tla.models import BROKEN, HOLDS, TLC_VERSION, Broken, Judged
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.tla import export, tlc
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.lang.concrete import State

CLASSES = tlc.class_path()
needs_tlc = pytest.mark.skipif(CLASSES is None, reason=f"{tlc.VARIABLE} is not set: TLC is not part of the project")
DOC = Path(__file__).parents[3] / "docs" / "tla.md"
holds = pytest.mark.parametrize("judged", HOLDS, ids=lambda m: m.title)
broken = pytest.mark.parametrize("judged", BROKEN, ids=lambda m: m.title)


def judge(spec: Spec) -> tlc.Outcome:
    """TLC's answer."""
    assert CLASSES is not None
    return tlc.run(export(spec), CLASSES, timeout_seconds=300)


def broken_by_last_step(spec: Spec, found: explicit.Result) -> set[str]:
    """Every invariant that the interpreter finds broken at or over the last step of a behaviour."""
    states = [State.initial(), *(step.state for step in found.behaviour)]
    step_wise = {p.name for p in spec.invariant_irs if p.is_transition}
    return {
        p.id
        for p in spec.invariants
        if not (interp.holds(spec, p, *states[-2:]) if p.id in step_wise else interp.holds(spec, p, states[-1]))
    }


@holds
def test_explicit_has_the_counts_that_tlc_gave(judged: Judged) -> None:
    require_counts(explicit.explore(judged.spec()), judged.name, **judged.sizes)


@broken
def test_explicit_breaks_what_tlc_broke_in_as_many_steps(judged: Broken) -> None:
    spec = judged.spec()
    found = explicit.explore(spec)
    require_steps(found, judged.fault)
    assert export(spec).properties[judged.operator] in broken_by_last_step(spec, found)


@needs_tlc
@holds
def test_tlc_gives_the_pinned_counts(judged: Judged) -> None:
    outcome = judge(judged.spec())
    assert outcome.verdict == "holds"
    assert (outcome.distinct, outcome.generated, outcome.steps) == judged.counts


@needs_tlc
@broken
def test_tlc_gives_the_pinned_violation(judged: Broken) -> None:
    outcome = judge(judged.spec())
    assert outcome.verdict == "violated"
    assert (outcome.broken, outcome.trace - 1) == (judged.operator, judged.steps)


@needs_tlc
def test_a_witness_is_met_by_checking_that_it_never_is() -> None:
    spec = HOLDS[0].spec()
    module = export(spec)
    never = module.witnesses["S1"]
    config = module.config.replace("INVARIANTS\n", f"INVARIANTS\n  {never}\n")
    assert CLASSES is not None
    outcome = tlc.run(type(module)(module.name, module.text, config, {}, {}), CLASSES)
    assert (outcome.verdict, outcome.broken) == ("violated", never)
    assert outcome.trace - 1 == interp.explore(spec).witnessed["S1"]


@needs_tlc
@settings(
    max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, phases=[Phase.generate]
)
@given(models())
def test_random_models_agree_with_tlc(spec: Spec) -> None:
    try:
        found = interp.explore(spec)
    except SpecError:
        assume(False)
    states = [State.initial(), *(step.state for step in found.behaviour)]
    assume(len(states) < 2 or states[-1] != states[-2])  # [][…]_vars allows a step that changes nothing
    outcome = judge(spec)
    if found.broken is None:
        assert (outcome.verdict, outcome.distinct, outcome.steps) == ("holds", found.distinct, found.depth)
        assert outcome.generated == found.generated
    else:
        assert (outcome.verdict, outcome.trace - 1) == ("violated", len(found.behaviour))


@needs_tlc
def test_the_pins_name_the_version_of_tlc() -> None:
    version = judge(HOLDS[0].spec()).version
    assert version == TLC_VERSION, "the counts are pinned from another version: compare them, and pin this one"


def test_the_page_shows_the_pinned_counts() -> None:
    page = DOC.read_text(encoding="utf-8")
    assert TLC_VERSION in page
    for judged in HOLDS:
        distinct, generated, depth = judged.counts
        assert f"| {judged.title} | holds | {distinct:,} | {generated:,} | {depth} |" in page
    for fault in BROKEN:
        assert f"| {fault.title} | {fault.operator} | {fault.steps} |" in page


SUCCESS = """@!@!@STARTMSG 2262:0 @!@!@
TLC2 Version 9.9 (rev: abc)
@!@!@ENDMSG 2262 @!@!@
@!@!@STARTMSG 2193:0 @!@!@
Model checking completed. No error has been found.
@!@!@ENDMSG 2193 @!@!@
@!@!@STARTMSG 2199:0 @!@!@
1,234 states generated, 567 distinct states found, 0 states left on queue.
@!@!@ENDMSG 2199 @!@!@
@!@!@STARTMSG 2194:0 @!@!@
The depth of the complete state graph search is 12.
@!@!@ENDMSG 2194 @!@!@
"""


def test_the_output_of_tlc_is_read() -> None:
    outcome = tlc.parse(SUCCESS)
    assert (outcome.verdict, outcome.distinct, outcome.generated, outcome.depth) == ("holds", 567, 1234, 12)
    assert (outcome.steps, outcome.version) == (11, "9.9 (rev: abc)")
    text = SUCCESS.replace("2193", "2110").replace("Model checking completed. No error has been found.",
                                                   "Invariant I5_bounds is violated.")  # fmt: skip
    assert tlc.parse(text).broken == "I5_bounds"
    constant = text.replace("2110", "2230").replace("Invariant I5_bounds is violated.",
                                                    "The invariant of I5_bounds is equal to FALSE")  # fmt: skip
    assert (tlc.parse(constant).verdict, tlc.parse(constant).broken) == ("violated", "I5_bounds")
    step = text.replace("2110", "2112").replace("Invariant I5_bounds", "Action property Always_I4")
    assert (tlc.parse(step).verdict, tlc.parse(step).broken) == ("violated", "Always_I4")


def test_a_run_that_was_stopped_gives_its_last_progress() -> None:
    text = """@!@!@STARTMSG 2185:0 @!@!@
Starting... (2026-01-01 10:00:00)
@!@!@ENDMSG 2185 @!@!@
@!@!@STARTMSG 2200:0 @!@!@
Progress(9) at 2026-01-01 10:01:01: 5,000 states generated (1 s/min), 2,000 distinct states found (1 ds/min)
@!@!@ENDMSG 2200 @!@!@
"""
    outcome = tlc.partial(text)
    assert (outcome.verdict, outcome.distinct, outcome.generated, outcome.seconds) == ("inconclusive", 2000, 5000, 61)
    with pytest.raises(tlc.TlcError, match="before its first progress"):
        tlc.partial("")


@pytest.mark.parametrize("text", ["", SUCCESS.replace("2193", "2103"), SUCCESS.replace("2199", "1")])
def test_output_without_verdict_or_counts_is_an_error(text: str) -> None:
    with pytest.raises(tlc.TlcError):
        tlc.parse(text)
