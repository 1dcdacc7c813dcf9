"""Generated native traces and a stand-in for the replay, for tests of everything around it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from viewproof.refinement.schema import COLUMNS, FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict, Violation

BAD_HEAD = "bad"
"""An event with this `head` violates, to the stand-in."""


def records(run: str, *, nodes: int = 3, ops: int = 5) -> list[dict[str, Any]]:
    """A small run: every node executes the same ops. Grouped by node, in order of seq."""
    out = []
    for node in range(nodes):
        seq = 1
        out.append(
            {"run": run, "node": node, "seq": 1, "clock": 1, "event": "start", "status": "normal", "replicas": nodes}
        )
        for op in range(1, ops + 1):
            checksum = f"{run}-{op:04x}"
            shared = {
                "m_view": 0,
                "m_op": op,
                "m_commit": op - 1,
                "m_checksum": checksum,
                "m_client": 1,
                "m_request": op,
            }
            accept = {"m_type": "request"} if node == 0 else {"m_type": "prepare", "m_from": 0, "m_seq": op * 2}
            for event, columns in (
                ("on_request" if node == 0 else "on_prepare", shared | accept),
                ("execute", {"m_op": op, "m_checksum": checksum, "commit_min": op, "digest": f"d{op}", "op": op}),
            ):
                seq += 1
                clock = seq * 2 + (node > 0)
                out.append({"run": run, "node": node, "seq": seq, "clock": clock, "event": event, **columns})
        seq += 1
        log = [f"{run}-{op:04x}" for op in range(1, ops + 1)]
        view = {"m_type": "start_view_change", "m_view": 1, "m_log": log, "view": 1}
        out.append({"run": run, "node": node, "seq": seq, "clock": seq * 2 + 9, "event": "start_view_change", **view})
    return out


def to_row(record: dict[str, Any]) -> Row:
    """A record as a row, without file and line."""
    values = (record.get(name) for name in COLUMNS)
    return tuple(tuple(value) if isinstance(value, list) else value for value in values)


def write_lines(file: Path, items: Iterable[dict[str, Any]]) -> Path:
    """Write records as NDJSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(item) + "\n" for item in items))
    return file


def write_run(directory: Path, items: list[dict[str, Any]]) -> None:
    """Write one run as the tools lay it out: DIR/<run>/replica-<node>.ndjson."""
    for node in sorted({item["node"] for item in items}):
        own = [item for item in items if item["node"] == node]
        write_lines(directory / own[0]["run"] / f"replica-{node}.ndjson", own)


def check_run(run_id: str, events: Iterable[Row], options: AuditOptions) -> RunVerdict:
    """The stand-in: accepts everything in order, but an event with `head` = BAD_HEAD; stops there."""
    coverage: Counter[str] = Counter()
    count = 0
    last = (0, -1, 0)
    for row in events:
        assert row[0] == run_id
        key = (row[INDEX["clock"]], row[INDEX["node"]], row[INDEX["seq"]])
        assert key > last
        last = key
        assert row[INDEX["m_log"]] is None or isinstance(row[INDEX["m_log"]], tuple)
        if row[INDEX["head"]] == BAD_HEAD:
            violation = Violation(
                run_id=run_id,
                seq=row[INDEX["seq"]],
                file=row[FILE_INDEX],
                line=row[LINE_INDEX],
                node=row[INDEX["node"]],
                action=row[INDEX["event"]],
                rule_id="fake.head",
                severity="error",
                message="the head is bad <b>&",
                expected="good",
                observed="bad",
                rule_fingerprint="f00d",
                prefix_length=count,
                state_before={"op": 3, "log": ["a", "b"]},
                why_not=("execute: commit_min 2 ≥ 3 is false",),
            )
            return RunVerdict(run_id, "violates", count, dict(coverage), (violation,))
        count += 1
        coverage[row[INDEX["event"]]] += 1
    return RunVerdict(run_id, "conforms", count, dict(coverage))


def failing_check_run(run_id: str, events: Iterable[Row], options: AuditOptions) -> RunVerdict:
    """A stand-in with a bug."""
    raise ZeroDivisionError("the stand-in is broken")
