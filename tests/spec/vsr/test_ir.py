"""What is recorded of every model stays as it is, unless someone says so."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.ir import TRUE, differences, digests, normal, recorded
from tests.spec.counts import UPDATE

GOLDEN = Path(__file__).parent / "golden" / "ir.txt"


def test_the_recorded_models_are_those_of_the_golden() -> None:
    found = digests(recorded())
    if os.environ.get(UPDATE):
        GOLDEN.write_text(found, encoding="utf-8")
    old, new = (set(text.splitlines()) for text in (GOLDEN.read_text(encoding="utf-8"), found))
    changed = sorted({line.rpartition(" ")[0] for line in old ^ new})
    assert not changed, f"recorded anew: {', '.join(changed)}; {UPDATE}=1 takes it"


def test_order_and_names_mean_nothing_and_all_else_does() -> None:
    a, b, c = ("read", "view", ("name", "r_0")), ("read", "op", ("name", "r_0")), TRUE
    assert normal(("and", a, ("and", b, c))) == normal(("and", c, b, a))
    assert normal(("read", "view", ("name", "q_0"))) == normal(a)
    assert normal(("or", a, b)) != normal(("and", a, b))
    assert normal(("le", a, b)) != normal(("le", b, a))
    assert list(differences({"x": "g"}, {"x": "h", "y": "g"})) == ["x:", "  - g", "  + h", "y: only in the new one"]
