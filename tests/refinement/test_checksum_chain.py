"""The database checksum in a trace: chained from the op that enabled it, over every op since, alike on all replicas."""

from __future__ import annotations

import pytest

from tests.refinement.traces import EVENT, NODE, load, put
from viewproof.impl.sim import simulate
from viewproof.refinement.checker import check_run
from viewproof.refinement.schema import INDEX, Row
from viewproof.refinement.verdict import AuditOptions, RunVerdict

FROM, CHAIN = INDEX["m_chain_from"], INDEX["m_chain"]


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[Row]:
    result = simulate(3, requests=40, features="all", out=tmp_path_factory.mktemp("run"))
    assert result.ok, result.failures
    assert result.trace is not None
    return load(result.trace)


def judged(rows: list[Row]) -> RunVerdict:
    return check_run("run", rows, AuditOptions())


def executed(rows: list[Row]) -> list[int]:
    """Where an op is executed with the checksum on."""
    return [at for at, row in enumerate(rows) if row[EVENT] == "execute" and row[FROM]]


def with_change(rows: list[Row], at: int, **values: object) -> RunVerdict:
    return judged([*rows[:at], put(rows[at], **values), *rows[at + 1 :]])


def test_the_run_shows_it_and_conforms(rows: list[Row]) -> None:
    ats = executed(rows)
    assert len(ats) > 30
    assert len({rows[at][CHAIN] for at in ats}) == len({rows[at][INDEX["m_op"]] for at in ats})
    assert len({rows[at][FROM] for at in ats}) == 1
    assert judged(rows).verdict == "conforms"


@pytest.mark.parametrize("by", [-1, 1])
def test_another_first_op_is_rejected(by: int, rows: list[Row]) -> None:
    at = executed(rows)[7]
    verdict = with_change(rows, at, m_chain_from=rows[at][FROM] + by)
    assert (verdict.verdict, verdict.events, verdict.violations[0].rule_id) == ("violates", at, "I14")


def test_a_checksum_before_its_feature_is_rejected(rows: list[Row]) -> None:
    at = next(at for at, row in enumerate(rows) if row[EVENT] == "execute" and not row[FROM])
    assert rows[at][CHAIN] is None
    verdict = with_change(rows, at, m_chain="ab" * 16)
    assert (verdict.verdict, verdict.events, verdict.violations[0].rule_id) == ("violates", at, "I14")


def test_an_entry_that_all_replicas_leave_out_of_the_chain_is_found(rows: list[Row]) -> None:
    """The checksum of one op is that of the op before, everywhere alike, as if the entry were not chained."""
    op = rows[executed(rows)[9]][INDEX["m_op"]]
    before = next(row[CHAIN] for row in rows if row[EVENT] == "execute" and row[INDEX["m_op"]] == op - 1)
    skipped = [
        put(row, m_chain=before) if row[EVENT] == "execute" and row[INDEX["m_op"]] == op else row for row in rows
    ]
    verdict = judged(skipped)
    assert (verdict.verdict, verdict.violations[0].rule_id) == ("violates", "I14")
    assert f"the m_chain of op {op} is that of op {op - 1}, too" in verdict.violations[0].message


def test_what_is_not_shown_is_no_violation(rows: list[Row]) -> None:
    without = [put(row, m_chain=None) for row in rows]
    verdict = judged(without)
    assert verdict.verdict == "inconclusive"
    assert any(text.startswith("m_chain of node ") for text in verdict.missing)
    missing = with_change(rows, executed(rows)[5], m_chain_from=None)
    assert missing.verdict == "inconclusive"
    assert missing.missing[0].startswith("m_chain_from of execute at ")


def test_an_older_trace_that_shows_neither_conforms(rows: list[Row]) -> None:
    """Before there were rounds: a member says once what it supports, and no checksum is shown."""
    kept = [row for row in rows if row[EVENT] not in ("ask_features", "say_features")]
    seqs = [0] * 3
    older = []
    for row in kept:
        seqs[row[NODE]] += 1
        unshown = dict.fromkeys(("m_seq", "m_round", "m_chain", "m_chain_from", "feature_rounds"))
        older.append(put(row, seq=seqs[row[NODE]], **unshown))
    verdict = judged(older)
    assert verdict.verdict == "conforms", (verdict.missing, verdict.violations)
    control = [row for row in rows if row[EVENT] == "execute" and row[INDEX["m_feature"]]]
    assert verdict.coverage["execute_control"] == len(control) > 2
