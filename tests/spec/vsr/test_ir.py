"""What is recorded of every model stays as it is, unless someone says so."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks.ir import TRUE, Recorded, differences, digests, normal, recorded
from tests.spec.counts import UPDATE
from viewproof.spec.vsr import FAULTS
from viewproof.spec.vsr.fault_models import FAULT_MODELS

GOLDEN = Path(__file__).parent / "golden" / "ir.txt"


def require_golden(found: Recorded, *, whole: bool) -> None:
    """What was recorded is as in the golden file, and with `whole` nothing else is there."""
    if whole and os.environ.get(UPDATE):
        GOLDEN.write_text(digests(found), encoding="utf-8")
    old, new = (set(text.splitlines()) for text in (GOLDEN.read_text(encoding="utf-8"), digests(found)))
    if not whole:
        old = {line for line in old if line.rpartition(" ")[0] in found or "+" not in line.split()[0]}
    changed = sorted({line.rpartition(" ")[0] for line in old ^ new})
    assert not changed, f"recorded anew: {', '.join(changed)}; the long test of this file with {UPDATE}=1 takes it"


def test_the_models_and_each_mistake_in_its_own_are_those_of_the_golden() -> None:
    own = defaultdict(list)
    for fault, chosen in FAULT_MODELS.items():
        for name in {chosen.model, "core_restart" if chosen.model == "core" else chosen.model}:
            own[name].append(fault)
    found = recorded(faults_of=own)
    assert {key.split()[0].partition("+")[2] for key in found} >= {f.id for f in FAULTS.values() if f.actions}
    require_golden(found, whole=False)


@pytest.mark.long
def test_all_mistakes_in_all_models_are_those_of_the_golden() -> None:
    require_golden(recorded(), whole=True)


def test_order_and_names_mean_nothing_and_all_else_does() -> None:
    a, b, c = ("read", "view", ("name", "r_0")), ("read", "op", ("name", "r_0")), TRUE
    assert normal(("and", a, ("and", b, c))) == normal(("and", c, b, a))
    assert normal(("read", "view", ("name", "q_0"))) == normal(a)
    assert normal(("or", a, b)) != normal(("and", a, b))
    assert normal(("le", a, b)) != normal(("le", b, a))
    assert list(differences({"x": "g"}, {"x": "h", "y": "g"})) == ["x:", "  - g", "  + h", "y: only in the new one"]
