"""A reply names its client, request and op: no two ops have one, also where all replicas agree on it."""

from __future__ import annotations

from pathlib import Path

from tests.refinement.traces import EVENT, load, put
from viewproof.impl.sim import simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX
from viewproof.refinement.verdict import AuditOptions

OP, REPLY = INDEX["m_op"], INDEX["m_reply"]


def test_an_answer_that_is_another_clients_everywhere_alike_is_found(tmp_path: Path) -> None:
    result = simulate(3, requests=20, out=tmp_path)
    assert result.trace is not None
    rows = load(result.trace)
    assert check_run("run", rows, AuditOptions()).verdict == "conforms"
    replies = {row[OP]: row[REPLY] for row in rows if row[EVENT] == "execute" and row[REPLY]}
    ops = sorted(replies)
    before, op = ops[len(ops) // 2 - 1], ops[len(ops) // 2]
    changed = [put(row, m_reply=replies[before]) if row[OP] == op and row[REPLY] else row for row in rows]
    verdict = check_run("run", changed, AuditOptions())
    assert verdict.verdict == "violates"
    assert verdict.violations[0].rule_id == "I8"
    assert f"the m_reply of op {op} is that of op {before}, too" in verdict.violations[0].message
