"""The compiled matching of lines says what regular expressions say."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from tests.refinement.tigerbeetle import by_regex
from tests.refinement.tigerbeetle.logs import lines_of
from viewproof.refinement.tigerbeetle.parse import FIRST, UNKNOWN, Parser
from viewproof.refinement.tigerbeetle.profile import JULY, JUNE
from viewproof.refinement.tigerbeetle.records import Family
from viewproof.refinement.tigerbeetle.table import FIELD, Pattern, Table, read_table

LOGS = {"2022": "tigerbeetle-2022-06/seed-43.log.zst", "2026": "tigerbeetle-2026-07/seed-108.log.zst"}
FILLED = {
    "d": ("0", "7", "123456789012345678", "1234567890123456789", "9" * 39, "9" * 40),
    "p": ("  3", "3", ""),
    "u": ("_ 3", "12", "__"),
    "c": ("0", "00ff", "12345678901234567890", "g"),
    "x": ("ab01", "-"),
    "w": ("normal", "vsr.Status.normal", "a..b", "@L|x", "é", ""),
    "k": ("", "v", "N", "1"),
    "t": ("", "some text (op=1)", "x op=2 view=3"),
    "e": ("|", " ", "é"),
    "m": ("Header{ .view = 3, .op = 4 }", "View{ }", "View{ .op=1", "{ .op=1 }"),
    "b": ("true", "false", "maybe"),
    "": ("", "anything: at all", "a..b"),
}
"""Texts that fields of each kind may have, and some that they may not."""


Found = tuple[list[tuple[int, int, tuple[str, ...]]], list[int], list[int]]


def matched(table: Table, lines: Sequence[str]) -> Found:
    """What the compiled code finds: (pattern, line, texts of the fields), lines by pattern, and unexplained ones."""
    parser, found, unknown = Parser(table), [], []
    for rows, _ in parser.rows("".join(f"{line}\n" for line in lines).encode(), 1):
        for pattern, number, _, *values in rows:
            if pattern == UNKNOWN:
                unknown.append(number)
            elif pattern >= 0:
                kinds = [kind for _, kind in table.patterns[pattern].fields]
                texts = (_text(parser, kind, value) for kind, value in zip(kinds, values, strict=False))
                found.append((pattern, number, tuple(texts)))
    return found, parser.counts.tolist(), unknown


def _text(parser: Parser, kind: str, value: int) -> str:
    if value < 0:
        return parser.texts.text(-1 - value)
    return ("false", "true")[value] if kind == "b" else str(value)


def expected(table: Table, lines: Sequence[str]) -> Found:
    """The same by regular expressions."""
    parser, found, unknown = by_regex.Parser(table), [], []
    for number, line in enumerate(lines, 1):
        before = parser.counts.unknown.total()
        match = parser.match(line, number)
        if parser.counts.unknown.total() > before:
            unknown.append(number)
        if match is not None and table.patterns[match[0]].event:
            kinds = [kind for _, kind in table.patterns[match[0]].fields]
            texts = (_plain(kind, text) for kind, text in zip(kinds, match[1], strict=True))
            found.append((match[0], number, tuple(texts)))
    return found, parser.counts.by_pattern, unknown


def _plain(kind: str, text: str) -> str:
    return str(int(text)) if kind in "dpu" and len(text) <= 18 else text


def line_like(pattern: Pattern, rng: random.Random) -> str:
    """A line of that pattern, or nearly one."""
    text = FIELD.sub(lambda found: rng.choice(FILLED[(found[2] or "d") if found[1] else ""]), pattern.text)
    if rng.random() < 0.2:
        at = rng.randrange(len(text) + 1)
        text = text[:at] + rng.choice(("", "x", ": ", "..", " ")) + text[at + rng.randrange(2) :]
    return f"[{rng.choice(by_regex.LEVELS)}] ({pattern.subsystem}): {text}"


@pytest.mark.parametrize("family", [JUNE, JULY], ids=lambda family: family.name)
def test_lines_like_those_of_the_table(family: Family) -> None:
    rng = random.Random(family.name)
    lines = [line_like(pattern, rng) for pattern in family.table.patterns for _ in range(30)]
    lines += ["", "[", "[debug]", "[debug] (replica): ", "[debug] (journal):", "[err] (superblock_x): 1: a", "panic"]
    assert matched(family.table, lines) == expected(family.table, lines)


@pytest.mark.parametrize("family", [JUNE, JULY], ids=lambda family: family.name)
def test_lines_of_a_log(family: Family) -> None:
    lines = lines_of(LOGS[family.name], 40_000)
    assert matched(family.table, lines) == expected(family.table, lines)


def table_with(*patterns: str) -> Table:
    """A table of one subsystem."""
    return read_table("t", "\n".join(("protocol: system", "[system]", *patterns)))


def test_a_line_of_a_table_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no line of a table: stp go"):
        table_with("stp go {node}: go")


def test_fields_are_taken_out_of_a_line() -> None:
    table = table_with("step go {node}: go: op={op} by {who:w} ({sure:b})")
    found, _, _ = matched(table, ["[debug] (system): 3: go: op=12 by x_y (true)"])
    assert found == [(0, 1, ("3", "12", "x_y", "true"))]


def test_a_protocol_line_without_a_pattern_is_told_and_other_lines_are_not() -> None:
    table = table_with("note - {node}: known {}")
    assert matched(table, ["[warn] (system): 1: odd 77", "[warn] (other): 1: odd", "[warn] (system): 1: known"])[2] == [
        1,
        3,
    ]
    parser = Parser(table)
    parser.note_unknown("[warn] (system): 1: odd 77", 1)
    parser.note_unknown("[warn] (system): 1: odd 78", 2)
    assert parser.unknown == {"[warn] (system): N: odd N": 2}
    assert parser.first_unknown == {"[warn] (system): N: odd N": 1}


def test_a_note_with_an_open_end_hides_no_event() -> None:
    table = table_with("note - {node}: go: {}", "step go {node}: go: op={op}")
    found, counts, _ = matched(table, ["[debug] (system): 3: go: op=12", "[debug] (system): 3: go: slowly"])
    assert found == [(1, 1, ("3", "12"))]
    assert counts == [1, 1]


def test_texts_and_rows_of_any_number_are_held() -> None:
    table = table_with("step go {node}: go {who:w}")
    lines = [f"[debug] (system): 1: go {'x' * 90}{n}" for n in range(20_000)]
    found, _, _ = matched(table, lines)
    assert [(number, texts[1]) for _, number, texts in found] == [(n + 1, f"{'x' * 90}{n}") for n in range(20_000)]
    assert FIRST == 3
