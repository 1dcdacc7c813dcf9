"""Are the reports of commands what their schemas in docs/reference say?"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import msgspec

REFERENCE = Path(__file__).resolve().parents[1] / "docs/reference"
OTHERS = {"audit.schema.json", "check.schema.json", "simulate.schema.json"}
"""These are held by tests/docs/test_reference.py: some questions to `vsr check` add fields."""


@cache
def validators() -> dict[str, jsonschema.Draft202012Validator]:
    """Format → what a report of that format has to be."""
    found = {}
    for file in sorted(REFERENCE.glob("*.schema.json")):
        schema = json.loads(file.read_text(encoding="utf-8"))
        for one in schema["$defs"].values():
            for format_ in one.get("properties", {}).get("format", {}).get("enum", ()):
                found[format_] = jsonschema.Draft202012Validator({**one, "$defs": schema["$defs"]})
    return found


def validated(report: dict[str, Any]) -> dict[str, Any]:
    """The report, if it is what the schema of its format says."""
    if f"{report['format'].removeprefix('viewproof.').partition('/')[0]}.schema.json" not in OTHERS:
        validators()[report["format"]].validate(msgspec.json.decode(msgspec.json.encode(report, enc_hook=str)))
    return report
