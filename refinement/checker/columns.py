"""Which columns and expressions the lines of a rule use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from viewproof.refinement.events.lines import (
    Agrees,
    Check,
    Configured,
    Freed,
    Havoc,
    Holds,
    InJournal,
    Journaled,
    Let,
    Line,
    Log,
    Named,
    Owes,
    Received,
    Step,
    Tried,
)
from viewproof.refinement.events.nested import Arrived, Branch, Loop, inner
from viewproof.refinement.events.terms import Column, Shown
from viewproof.spec.lang.expr import Const, Expr, walk


def expressions(line: Line) -> Iterator[Expr]:
    """All expressions of a line, those it stands under first."""
    yield from (one.cond for one in line.only_if)
    if line.each is not None:
        yield from (line.each.lo, line.each.hi)
    yield from (one.cond for one in line.if_each)
    yield from own_expressions(line)
    for one in inner(line):
        yield from expressions(one)


def own_expressions(line: Line) -> Iterator[Expr]:
    """The expressions of a line itself."""
    match line:
        case Check():
            yield from (Column(line.column), line.expected)
        case Holds():
            yield line.cond
            yield from (Column(name) for name in (line.column,) if name)
        case Configured():
            yield Column(line.column)
        case Received():
            yield from line.index
            yield from (one for one in (line.value, line.by) if one is not None)
        case Step():
            yield from (_tried_column(v) if isinstance(v, Tried) else v for v in line.args.values())
            yield from (v.where for v in line.args.values() if isinstance(v, Tried) and v.where is not None)
            yield from (one for one in (line.journals, line.unless) if one is not None)
        case Named():
            yield from (Column(line.checksum), line.entry, line.op)
        case Log():
            yield from (Column(line.column), line.top, line.entry)
        case Agrees():
            yield from (Column(line.column), line.op)
        case Journaled():
            yield from (one for one in (line.entry, line.op) if one is not None)
            if line.checksum:
                yield Column(line.checksum)
        case InJournal():
            yield line.entry
        case Havoc():
            yield from line.index
        case Branch():
            yield line.cond
        case Loop():
            yield from (line.over.lo, line.over.hi)
        case Arrived():
            yield from (*line.index, line.by)
        case Let():
            yield line.value
        case Owes():
            yield from line.values
        case Freed() if line.by is not None:
            yield line.by


def _tried_column(tried: Tried) -> Expr:
    return Const(0) if tried.column is None else Column(tried.column)


def columns_of(exprs: Iterable[Expr]) -> list[str]:
    """Columns that expressions use, in order of first use; those that are only asked whether they are shown are not."""
    return list(dict.fromkeys(n.name for e in exprs for n in walk(e) if isinstance(n, Column)))


def needed_columns(exprs: Iterable[Expr]) -> list[str]:
    """Columns without which the expressions cannot be evaluated: not those that may be missing (`shown`)."""
    found = list(exprs)
    excused = {n.name for e in found for n in walk(e) if isinstance(n, Shown)}
    return [name for name in columns_of(found) if name not in excused]
