"""The tables of what evidence is worth have a row for all there is, and say what is so."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from benchmarks.evidence import ALWAYS, cases, line_rows, lost, merged, rows_of, without_column, without_event, worth
from benchmarks.fault_runs import END, FAULT_RUNS, MARK
from viewproof.refinement.schema import COLUMNS, EVENTS, Row

ROOT = Path(__file__).parents[2]


def table(file: str) -> dict[str, list[str]]:
    """First cell of each row -> the others."""
    text = (ROOT / file).read_text(encoding="utf-8")
    lines = text.partition(MARK.format("benchmarks.evidence"))[2].partition(END)[0].splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return {first: rest for first, *rest in cells[2:]}


@pytest.fixture(scope="module")
def good() -> list[list[Row]]:
    return [rows_of(0, 3, 6, None, ())]


def test_the_table_of_what_to_log_has_each_column_and_event() -> None:
    rows = table("traces/README.md")
    assert [name for name in rows if name.startswith("`")] == [f"`{column}`" for column in COLUMNS[ALWAYS:]]
    assert [name for name in rows if name.startswith("lines of")] == [f"lines of `{event}`" for event in EVENTS]
    assert {verdict for verdict, _ in rows.values()} == {"conforms", "inconclusive", "not shown"}


def test_the_table_of_lost_lines_has_each_mistake_that_shows_in_traces() -> None:
    rows = table("docs/audit.md")
    assert [*rows][:-1] == [f"`{fault}`" for fault, runs in FAULT_RUNS.items() if runs.shows_in_trace]


@pytest.mark.parametrize("column", ["m_parent", "m_checksum", "m_evicted"])
def test_what_the_table_says_of_good_runs_is_so(column: str, good: list[list[Row]]) -> None:
    verdict, _ = worth(partial(without_column, column=column), [], good)
    assert (verdict, "none") == worth(partial(without_column, column=column), [], good)
    assert verdict in (table("traces/README.md")[f"`{column}`"][0], "conforms")


def test_a_mistake_whose_column_is_not_there_is_named_as_lost(good: list[list[Row]]) -> None:
    (case, *_) = cases("commit.out_of_order", 1)
    assert worth(partial(without_event, event="commit"), [case], good) == ("inconclusive", "1: `commit.out_of_order`")
    assert worth(partial(without_column, column="features"), [case], good)[1] == "none"


def test_lines_are_lost_at_random_and_the_same_ones_each_time() -> None:
    rows = rows_of(1, 3, 6, None, ())
    some = lost(rows, 0.5, 3)
    assert some == lost(rows, 0.5, 3) != lost(rows, 0.5, 4)
    assert lost(rows, 0, 3) == rows
    assert next(line_rows(["commit.out_of_order"], 1))[:2] == ("`commit.out_of_order`", "1 of 1")


def test_rows_of_some_mistakes_take_their_place_in_the_table() -> None:
    header = ["| mistake | caught | 1 % of lines lost | 10 % of lines lost | 50 % of lines lost |", "| --- |"]
    old = ["| `commit.out_of_order` | 20 of 20 | 100 % | 90 % | 50 % |", "| `view.even_quorum` | 0 of 20 | – | – | – |"]
    new = [*header, "| `commit.fence_on_commit_max` | 10 of 20 | 100 % | 10 % | 0 % |", "| all | x |"]
    assert merged(old, new) == [
        *header,
        old[0],
        new[2],
        old[1],
        "| all | 30 of 60 | 100 % | 63 % | 33 % |",
    ]
