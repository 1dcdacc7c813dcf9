"""Evidence taken away from good runs never makes the audit accuse them."""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.refinement.removals import REMOVALS
from tests.refinement.traces import simulated
from viewproof.impl.sim.named_profiles import NAMED_PROFILES
from viewproof.refinement.checker import check_run
from viewproof.refinement.native.columns import CONFIGURATION as CONFIGURATION_COLUMNS
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions

REPLICAS = (3, 5, 2)
LONG_TOTAL = 20_000


def judged(rows: list[Row], kind: str, name: str, seed: int, number: int) -> str:
    """The verdict on a run of which something was taken away; the run itself conforms."""
    left = REMOVALS[kind](random.Random(f"{name} {seed} {kind} {number}"), rows)
    shown = tuple((name, rows[0][INDEX[name]]) for name in CONFIGURATION_COLUMNS if rows[0][INDEX[name]] is not None)
    verdict = check_run("run", left, AuditOptions(configuration=shown))
    place = f"profile {name}, seed {seed}, {kind} {number}"
    assert verdict.verdict != "violates", f"{place}: {verdict.violations}"
    assert verdict.verdict == "conforms" or verdict.missing, place
    return verdict.verdict


@pytest.mark.parametrize("name", NAMED_PROFILES)
def test_a_good_run_with_holes_is_never_said_to_violate(name: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 1, replicas=3, requests=4, profile=NAMED_PROFILES[name])
    for kind in REMOVALS:
        judged(rows[:300], kind, name, 1, 0)


@pytest.mark.parametrize("kind", REMOVALS)
def test_what_is_taken_away_is_named(kind: str, tmp_path: Path) -> None:
    rows = simulated(tmp_path, 3, replicas=3, requests=4)[:200]
    verdicts = Counter(judged(rows, kind, "all", 3, number) for number in range(3))
    assert verdicts["inconclusive"] or kind in ("values", "clock", "column")


@pytest.mark.long
def test_twenty_thousand_removals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table: defaultdict[str, Counter[str]] = defaultdict(Counter)
    each = LONG_TOTAL // (len(NAMED_PROFILES) * len(REMOVALS))
    for name, profile in NAMED_PROFILES.items():
        for seed in range(10):
            out = tmp_path / f"{name}-{seed}"
            rows = simulated(out, seed, replicas=REPLICAS[seed % 3], requests=10, profile=profile)
            for kind in REMOVALS:
                for number in range(each // 10 + 1):
                    table[kind][judged(rows, kind, name, seed, number)] += 1
    lines = [f"{'taken away':12} {'conforms':>9} {'inconclusive':>13} {'violates':>9}"]
    for kind, counts in table.items():
        lines.append(f"{kind:12} {counts['conforms']:9} {counts['inconclusive']:13} {counts['violates']:9}")
    with capsys.disabled():
        sys.stdout.write("\n" + "\n".join(lines) + "\n")
