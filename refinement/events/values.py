"""Values that event functions speak of beside columns and cells: what is shown, names of entries, texts, functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewproof.refinement.events.terms import TEXT, Apply, Column, Row, Shown, Text, lifted
from viewproof.spec.lang import SpecError
from viewproof.spec.lang.errors import here
from viewproof.spec.lang.expr import expect
from viewproof.spec.lang.kinds import BOOLEAN, NUMBER
from viewproof.spec.lang.record import RecordedCells


def shown(column: Any) -> Any:
    """Does the event show the column?"""
    if not isinstance(column, Column):
        raise SpecError("shown is asked of a column of the event, such as e.m_view", here())
    return Shown(column.name)


def name_of(entry: Any, op: Any) -> Any:
    """The checksum that names the entry at an op; a text that nothing equals where it has no name yet."""
    return Apply("name_of", (lifted(entry), lifted(op)), denotes=TEXT)


def first_clear_of(cells: Any, node: Any, top: Any, base: Any = None) -> Any:
    """The first op from base + 1 on such that none up to `top` is set in the node's row (filled from below)."""
    of: RecordedCells = cells
    args = (Row(of.var.name, lifted(node)), lifted(top), *(() if base is None else (lifted(base),)))
    return Apply("first_clear", args, denotes=of.var.index[1].kind)


def mask_of(cells: Any, node: Any) -> Any:
    """Bit f-1 for each f whose cell in the node's row is not 0."""
    return Apply("mask", (Row(cells.var.name, lifted(node)),))


def bit(number: Any, position: Any) -> Any:
    """Is bit f-1 of the number set?"""
    return Apply("bit", (lifted(number), lifted(position)), _bit, denotes=BOOLEAN, is_bool=True)


def _bit(number: int, position: int) -> bool:
    return bool(number >> (position - 1) & 1)


def label_of(sort: type, text: Any) -> Any:
    """The label of the sort that a text names."""
    of: Any = sort
    return Apply(f"label_of_{of.name}", (lifted(text),), of.labels.index, denotes=of.kind)


def text(value: str) -> Any:
    """A text, where an expression is asked for."""
    return Text(value)


def text_of(sort: type, label: Any) -> Any:
    """The text of a label."""
    of: Any = sort
    expect(of.kind, lifted(label), f"a label of {of}")
    return Apply(f"text_of_{of.name}", (lifted(label),), of.labels.__getitem__, denotes=TEXT)


def call(fn: Callable[..., int], *args: Any, sort: type | None = None) -> Any:
    """A function of numbers, which must be importable: known where all its arguments are. It is of the sort, if any."""
    of: Any = sort
    return Apply(fn.__name__, tuple(map(lifted, args)), fn, denotes=NUMBER if sort is None else of.kind)
