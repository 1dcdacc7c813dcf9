"""What mutants the shapes of each model notice, as `vsr mutate MODEL --record` found it; and why others are equivalent.

The table is about one recorded specification, named by its digest: after a change of a guard it says nothing until it
is made again. A reason says why no behaviour of any size tells the mutant from the specification.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FORMAT = "viewproof.mutants/1"
FOLDER = Path(__file__).parent

__all__ = ["FOLDER", "FORMAT", "explained", "longest", "reason_of", "reasons", "recorded", "tables"]


def recorded(model: str) -> dict[str, Any] | None:
    """The table of a model, if there is one."""
    file = FOLDER / f"{model}.json"
    if not file.exists():
        return None
    return explained(json.loads(file.read_text()))


def tables() -> list[dict[str, Any]]:
    """All tables, by model."""
    return [explained(json.loads(file.read_text())) for file in sorted(FOLDER.glob("*.json"))]


def explained(table: dict[str, Any]) -> dict[str, Any]:
    """A table with the reasons that are written for what is not noticed."""
    for mutant in table["mutants"]:
        mutant["reason"] = "" if mutant["death"] else reason_of(table["model"], mutant["id"])
    return table


@cache
def reasons() -> dict[str, dict[str, str]]:
    """Model → mutant id, or its beginning → why it need not be noticed."""
    return tomllib.loads((FOLDER / "reasons.toml").read_text())


def reason_of(model: str, mutant: str) -> str:
    """Why a mutant of the model need not be noticed; empty if nothing is written. The longest matching id counts."""
    return longest(reasons().get(model, {}), mutant)


def longest(known: Mapping[str, str], mutant: str) -> str:
    """The reason under the longest id with which a mutant's begins; empty if there is none."""
    fitting = [id for id in known if mutant.startswith(id)]
    return known[max(fitting, key=len)] if fitting else ""
