"""JSON Schemas of what commands write with `--json`, from the classes that they show and those of `shapes`."""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any, get_type_hints

import msgspec

from benchmarks.reference.shapes import REPORTS
from viewproof.api.simulate import Plan
from viewproof.impl.sim.run import SimResult
from viewproof.refinement.verdict import VERDICTS, AuditReport
from viewproof.spec.engines.explicit.result import PLAIN_FIELDS, Change, Result

DRAFT = "https://json-schema.org/draft/2020-12/schema"
EXIT = {"enum": [0, 1, 2, 4], "description": "The exit code of the command."}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer"}}
REF = "#/$defs/{name}"


def audit_schema() -> str:
    """Of an audit: what `AuditReport.to_dict` writes, the report's fields and what follows from them."""
    (_, components) = msgspec.json.schema_components([AuditReport], ref_template=REF)
    report = components.pop("AuditReport")
    derived = {
        "format": {"const": "viewproof.audit/1"},
        "verdict": {"enum": ["conforms", "known", "violates", "inconclusive", "error"]},
        "exit_code": EXIT,
        "events": {"type": "integer", "description": "Events that the replay consumed, over all runs."},
        "coverage": {**COUNTS, "description": "Steps of each action of the specification, by name."},
        "events_by_name": {**COUNTS, "description": "Events judged, by name."},
        "counts": {
            "type": "object",
            "properties": {name: {"type": "integer"} for name in VERDICTS},
            "required": list(VERDICTS),
        },
    }
    properties = {**derived, **report["properties"]}
    for one in components.values():
        one["additionalProperties"] = False
    return _text("audit", "The report of `vsr audit --json FILE`.", properties, list(properties), components)


def check_schema() -> str:
    """Of a search: what `vsr check --json` writes of one size."""
    hints = {**get_type_hints(Result), "states_per_second": float, "collision_probability": float}
    types = [hints[name] for name in PLAIN_FIELDS]
    schemas, _ = msgspec.json.schema_components([*types, Change], ref_template=REF)
    plain: dict[str, Any] = dict(zip(PLAIN_FIELDS, schemas, strict=False))
    _, changes = msgspec.json.schema_components([Change], ref_template=REF)
    plain["verdict"] = {"enum": ["holds", "violated", "inconclusive"]}
    steps = {"type": "array", "items": {"$ref": "#/$defs/Step"}}
    asked = {
        "format": {"const": "viewproof.check/1"},
        "engine": {"type": "string"},
        "profile": {"type": "string"},
        "faults": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "string", "description": "The sizes of the model, in words."},
        "exit_code": EXIT,
    }
    answered = {"actions": {"type": "array", "items": _object(_COVERAGE)}, "behaviour": steps, "deadlock": steps}
    properties = {**asked, **plain, **answered}
    described = "The result of a search of one size, by `vsr check MODEL --json FILE`. Other questions add fields."
    return _text("check", described, properties, list(properties), {**changes, "Step": _object(_STEP)})


def simulate_schema() -> str:
    """Of simulated runs: the plan, and one result per seed and group."""
    plan = _schemas({**get_type_hints(Plan), "groups": list[str]}, without={"out", "parquet"})
    texts = {"failures": list[str], "trace": str | None, "replay": str}
    runs = _schemas({**get_type_hints(SimResult), **texts}, without=set())
    summary = {**_schemas({"summary": dict[str, dict[str, int]]}, without=set()), "exit_code": EXIT}
    listed = {"type": "array", "items": _object(runs)}
    properties = {"format": {"const": "viewproof.simulate/1"}, **plan, **summary, "runs": listed}
    return _text("simulate", "The report of `vsr simulate --json FILE`.", properties, list(properties), {})


def schema_of(command: str) -> str:
    """Of the other commands: one of their reports, by its `format`."""
    schemas, defs = msgspec.json.schema_components(REPORTS[command], schema_hook=_custom, ref_template=REF)
    for one in defs.values():
        if "properties" in one:
            one["additionalProperties"] = False
    body = {**_head(command, f"A report of `vsr {command} --json FILE`."), "oneOf": list(schemas), "$defs": defs}
    return json.dumps(_tidy(body), indent=1, ensure_ascii=False) + "\n"


def _custom(of: type) -> dict[str, Any]:
    """The schema of a type that JSON does not know."""
    if issubclass(of, PurePath):
        return {"type": "string"}
    raise NotImplementedError(of)


def _head(name: str, doc: str) -> dict[str, Any]:
    return {"$schema": DRAFT, "$id": f"viewproof:{name}/1", "title": f"viewproof.{name}/1", "description": doc}


def _schemas(types: dict[str, Any], *, without: set[str]) -> dict[str, Any]:
    """Name → schema of its type."""
    names = [name for name in types if name not in without]
    schemas, _ = msgspec.json.schema_components([types[name] for name in names], ref_template=REF)
    return dict(zip(names, schemas, strict=True))


_STEP = {
    "action": {"type": "string"},
    "args": COUNTS,
    "source": {
        "type": "object",
        "properties": {"file": {"type": "string"}, "line": {"type": "integer"}},
        "required": ["file", "line"],
    },
    "changes": {"type": "array", "items": {"$ref": "#/$defs/Change"}},
}
_GUARD = {
    "text": {"type": "string"},
    "first_false": {"type": "integer", "description": "How often it was the first conjunct that was false."},
    "never_reached": {"type": "boolean"},
    "never_false": {"type": "boolean"},
}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_COVERAGE = {
    "name": {"type": "string"},
    "generated": {"type": "integer"},
    "distinct": {"type": "integer"},
    "guards": {"type": "array", "items": _object(_GUARD)},
}


def _text(name: str, doc: str, properties: dict[str, Any], required: list[str], defs: dict[str, Any]) -> str:
    """The schema as text. What a class's docstring says is put on one line."""
    body = {**_head(name, doc), "type": "object", "properties": properties, "required": required, "$defs": defs}
    return json.dumps(_tidy(body), indent=1, ensure_ascii=False) + "\n"


def _tidy(value: Any) -> Any:
    """Descriptions on one line, and no default that is an empty object: msgspec tells it since 0.23 only."""
    if isinstance(value, dict):
        return {
            key: " ".join(of.split()) if key == "description" and isinstance(of, str) else _tidy(of)
            for key, of in value.items()
            if (key, of) != ("default", {})
        }
    return [_tidy(of) for of in value] if isinstance(value, list) else value
