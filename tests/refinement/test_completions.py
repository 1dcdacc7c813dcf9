"""Verdicts on small traces with holes, held against all completions over small domains by the reference interpreter.

A completion fills what decides: parameters and columns of messages that nothing else shows. What is a repetition (an
observation, a copy of a message, a column that the event's own observations give, or of which the format has one value
only) stays open: it claims nothing.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.refinement.traces import EVENT, M_FROM, M_SEQ, NODE, SEQ, other_value, put, simulated
from viewproof.refinement.checker import check_run
from viewproof.refinement.native import SYSTEM, configuration
from viewproof.refinement.native.columns import MESSAGES as MESSAGE_FIELDS
from viewproof.refinement.schema import COLUMNS, INDEX, Row
from viewproof.refinement.verdict import AuditOptions
from viewproof.spec.vsr import unbounded

EVENTS_MAX = 26
DOMAIN_MAX = 5
EVERYTHING = dict.fromkeys(COLUMNS, 1) | {"replicas": 3, "quorum_replication": 2, "quorum_view_change": 2}
SPEC = unbounded(configuration(EVERYTHING))
ALL_RULES = SYSTEM.rules_for(SPEC)
REPETITIONS = {one.column for one in SYSTEM.observations_for(SPEC, optional=True)}
OFF_IF_MISSING = (
    *("client_slots", "client_sessions", "client_gaps", "pipeline", "checkpoint_interval", "journal_slots"),
    *("ring", "feature_rounds", "partitions"),
)
"""Options of the configuration of which 0 and no value are the same."""
Hole = tuple[int, str]
"""(position, column)"""


def has_one_value(first: Row, column: str) -> bool:
    """Does the format leave one value, which need not be shown? (`m_seq` need not in a whole trace; the kind of a
    message is that of its event, and of an `execute` it says that there was a reply; an option that is missing is 0.)
    """
    if column in OFF_IF_MISSING:
        return not first[INDEX[column]]
    if column == "m_evicted":
        return not first[INDEX["client_slots"]]
    return column in ("m_seq", "m_type")


def is_pinned(rows: list[Row], hole: Hole) -> bool:
    """Is the value that is missing shown elsewhere?"""
    at, column = hole
    row = rows[at]
    rule = ALL_RULES[row[EVENT]]
    if column in REPETITIONS or column in rule.infer or has_one_value(rows[0], column):
        return True
    if rule.sends and column in MESSAGE_FIELDS[rule.sends]:
        return any((r[M_FROM], r[M_SEQ]) == (row[NODE], row[SEQ]) and r[INDEX[column]] is not None for r in rows)
    if rule.receives:
        sent = [r for r in rows if (r[NODE], r[SEQ]) == (row[M_FROM], row[M_SEQ])]
        return any(r[INDEX[column]] is not None for r in sent)
    return False


def domain(rows: list[Row], column: str, value: Any) -> list[Any]:
    """Small values of a column: those that the trace shows, and near ones."""
    if isinstance(value, int):
        return list(range(max(0, value - 1), value + 3))
    found = [value, *(r[INDEX[column]] for r in rows if r[INDEX[column]] is not None)]
    shown = dict.fromkeys(tuple(one) if isinstance(one, list) else one for one in found)
    return list(shown)[:DOMAIN_MAX]


def completions(whole: list[Row], holed: list[Row], holes: list[Hole]) -> Iterator[list[Row]]:
    """The trace with its holes filled in every way."""
    open_holes = [hole for hole in holes if not is_pinned(holed, hole)]
    domains = [domain(whole, column, whole[at][INDEX[column]]) for at, column in open_holes]
    for values in itertools.product(*domains):
        filled = list(holed)
        for (at, column), value in zip(open_holes, values, strict=True):
            filled[at] = put(filled[at], **{column: value})
        yield filled


def reference(rows: list[Row]) -> str:
    return check_run("run", rows, AuditOptions(), engine="interp").verdict


def some_trace(rng: random.Random, rows: list[Row]) -> list[Row]:
    """A good trace, or one with a change."""
    if rng.random() < 0.4:
        return rows
    at = rng.randrange(3, len(rows))
    column = rng.choice([name for name in COLUMNS[5:] if rows[at][INDEX[name]] is not None])
    return [
        *rows[:at],
        put(rows[at], **{column: other_value(rng, column, rows[at][INDEX[column]], rows)}),
        *rows[at + 1 :],
    ]


def contradictions(rows: list[Row], rng: random.Random, counts: Counter[str]) -> str:
    """Take values away; what does not fit the completions, in words."""
    whole = some_trace(rng, rows)
    holes = []
    for _ in range(rng.choice((1, 1, 2))):
        at = rng.randrange(1, len(whole))
        shown = [name for name in COLUMNS[5:] if whole[at][INDEX[name]] is not None]
        if shown:
            holes.append((at, rng.choice(shown)))
    holed = list(whole)
    for at, column in holes:
        holed[at] = put(holed[at], **{column: None})
    verdict = check_run("run", holed, AuditOptions())
    outcomes = Counter(reference(filled) for filled in completions(whole, holed, holes))
    counts[verdict.verdict] += 1
    if verdict.verdict == "violates" and outcomes["conforms"]:
        return f"{holes}: violates, and a completion conforms: {verdict.violations}"
    if verdict.verdict == "conforms" and outcomes["violates"]:
        return f"{holes}: conforms, and a completion violates"
    return ""


def without_a_line(rows: list[Row], rng: random.Random, counts: Counter[str]) -> str:
    """Take a line away; it may have been any line near it in its place."""
    whole = some_trace(rng, rows)
    at = rng.randrange(1, len(whole))
    left = [*whole[:at], *whole[at + 1 :]]
    verdict = check_run("run", left, AuditOptions())
    counts[verdict.verdict] += 1
    lines = [whole[at]]
    for column in (name for name in COLUMNS[5:] if whole[at][INDEX[name]] is not None):
        lines += [put(whole[at], **{column: v}) for v in domain(whole, column, whole[at][INDEX[column]])[:2]]
    outcomes = Counter(reference([*left[:at], line, *left[at:]]) for line in lines[: 12 if verdict.violations else 1])
    if verdict.verdict == "violates" and outcomes["conforms"]:
        return f"without line {at}: violates, and a completion conforms: {verdict.violations}"
    goes_on = any(row[NODE] == whole[at][NODE] for row in left[at:])
    return (
        f"without line {at}: conforms although a line is missing" if verdict.verdict == "conforms" and goes_on else ""
    )


def check_many(tmp_path: Path, seeds: range, times: int) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds:
        rows = simulated(tmp_path / str(seed), seed, replicas=2 + seed % 2, requests=3)[:EVENTS_MAX]
        assert reference(rows) == "conforms"
        rng = random.Random(seed)
        for number in range(times):
            kind = without_a_line if number % 3 == 0 else contradictions
            problem = kind(rows, rng, counts)
            assert not problem, f"seed {seed}, number {number}: {problem}"
    assert all(counts[verdict] for verdict in ("conforms", "inconclusive", "violates")), counts


def test_no_verdict_contradicts_a_completion(tmp_path: Path) -> None:
    check_many(tmp_path, range(2), 18)


@pytest.mark.long
def test_no_verdict_contradicts_any_of_thousands_of_completions(tmp_path: Path) -> None:
    check_many(tmp_path, range(100, 160), 60)
