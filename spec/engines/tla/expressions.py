"""Printing expressions: on one line where it fits, else as the bulleted lists of TLA+.

TLC evaluates `/\\`, `\\/`, `=>` and IF from left to right and only as far as needed, as the language does; so a read
that makes sense only behind a condition stays behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from viewproof.spec.engines.tla.enums import Enums, Labels
from viewproof.spec.engines.tla.names import Scope
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within
from viewproof.spec.lang.sorts import Instance, Sort

ATOM, ARITHMETIC, RANGE, COMPARISON, NEGATION, JUNCTION, IMPLICATION, LOOSE = 9, 7, 6, 5, 4, 3, 1, 0
"""How tightly a printed expression holds together; LOOSE ones (quantifiers, IF) reach as far right as they can."""

SIGNS = {
    "add": "+", "sub": "-", "mod": "%", "eq": "=", "ne": "/=", "lt": "<", "le": "<=",
    "and": "/\\", "or": "\\/", "implies": "=>", "in": "\\in",
}  # fmt: skip
HELPERS = {
    "Max": "Max(a, b) == IF a >= b THEN a ELSE b",
    "Min": "Min(a, b) == IF a <= b THEN a ELSE b",
    "Maximum": "Maximum(S) == CHOOSE a \\in S : \\A b \\in S : a >= b",
    "Holds": "\\* In a guard TLC follows every disjunct, also after a true one, and takes the step once for each.\n"
    "\\* Asked for the value of a formula it stops at the first.\n"
    "Holds(p) == p = TRUE",
}
"""Operators that the module defines where it needs them."""


INLINE = -1
"""The width that asks for one line, however long."""


@dataclass(frozen=True)
class Piece:
    """Printed lines, and how tightly they hold together."""

    lines: tuple[str, ...]
    level: int

    @property
    def is_inline(self) -> bool:
        """Is it one line?"""
        return len(self.lines) == 1

    def above(self, level: int) -> Piece:
        """In parentheses unless it holds together more tightly than `level`."""
        return self if self.level > level else self.wrapped("(", ")")

    def wrapped(self, left: str, right: str) -> Piece:
        """Between brackets; later lines are indented by the width of the left one."""
        pad = " " * len(left)
        lines = [(left if n == 0 else pad) + line for n, line in enumerate(self.lines)]
        lines[-1] += right
        return Piece(tuple(lines), ATOM)


def less(width: int, by: int) -> int:
    """What is left of a width."""
    return INLINE if width == INLINE else max(width - by, 1)


def hang(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    """`right` begins where `left` ends, its later lines below its first."""
    pad = " " * len(left[-1])
    return (*left[:-1], left[-1] + right[0], *(pad + line for line in right[1:]))


def indented(lines: tuple[str, ...], by: int = 2) -> tuple[str, ...]:
    """The lines, further right."""
    return tuple(" " * by + line for line in lines)


def bulleted(sign: str, parts: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """A list of conjuncts or disjuncts, one below the other."""
    return tuple(line for part in parts for line in hang((f"{sign} ",), part))


class Printer:
    """Prints expressions of one instance; remembers which helpers and sorts it used."""

    def __init__(self, instance: Instance, enums: Enums) -> None:
        self.instance = instance
        self.enums = enums
        self.helpers: set[str] = set()
        self.sorts: dict[str, Sort] = {}

    def sort(self, sort: Sort) -> str:
        """The set of a sort's members."""
        if self.instance.hi(sort) is None:
            raise SpecError(f"sort {sort.name} is unbounded: TLA+ export needs a bounded instance")
        self.sorts[sort.name] = sort
        return sort.name

    def top(self, sort: Sort) -> str:
        """The constant that bounds a sort."""
        self.sort(sort)
        return f"Max{sort.ends_with or sort.name}"

    def domain(self, binder: Binder, scope: Scope) -> str:
        """The set that a bound variable ranges over."""
        sort = binder.name.sort
        if sort is not None and is_whole(binder):
            return self.sort(sort)
        ends = (self.line(e, scope).above(RANGE).lines[0] for e in (binder.lo, binder.hi))
        return " .. ".join(ends)

    def line(self, expr: Expr, scope: Scope, labels: Labels = ()) -> Piece:
        """The expression on one line."""
        return self.show(expr, scope, INLINE, labels)

    def show(self, expr: Expr, scope: Scope, width: int, labels: Labels = ()) -> Piece:
        """The expression, on one line of at most `width` characters if possible; constants as `labels` where given."""
        if isinstance(expr, Const):
            return _constant(expr, labels)
        if isinstance(expr, Name):
            return Piece((scope[expr.name],), ATOM)
        if isinstance(expr, SortMax):
            return Piece((self.top(expr.sort),), ATOM)
        if isinstance(expr, Read):
            return self._read(expr, scope)
        if isinstance(expr, Within):
            text = self.line(expr.value, scope).above(COMPARISON).lines[0]
            return Piece((f"{text} \\in {self.sort(expr.sort)}",), COMPARISON)
        if width != INLINE:
            whole = self.line(expr, scope, labels)
            if len(whole.lines[0]) <= width:
                return whole
        if isinstance(expr, Quant):
            return self._quantifier(expr, scope, width)
        if isinstance(expr, Op):
            return self._operation(expr, scope, width, labels)
        raise SpecError(f"TLA+ export knows no {type(expr).__name__}")

    def _read(self, expr: Read, scope: Scope) -> Piece:
        index = ", ".join(self.line(i, scope).lines[0] for i in expr.index)
        prime = "'" if expr.after else ""
        return Piece((f"{expr.var.name}{prime}" + (f"[{index}]" if index else ""),), ATOM)

    def _quantifier(self, expr: Quant, scope: Scope, width: int) -> Piece:
        if expr.kind == "count":
            self.helpers.add("Cardinality")
            return self._collected(expr, scope, width)
        if expr.kind == "max":
            self.helpers.add("Maximum")
            return self._collected(expr, scope, width)
        bound: list[tuple[str, str]] = []
        body: Expr = expr
        while isinstance(body, Quant) and body.kind == expr.kind and (not bound or is_whole(body.binder)):
            domain = self.domain(body.binder, scope)
            name, scope = scope.bind(body.binder.name.name)
            bound.append((name, domain))
            body = body.body
        head = ("\\A " if expr.kind == "forall" else "\\E ") + over(bound) + " :"
        inner = self.show(body, scope, less(width, 2))
        if width == INLINE:
            return Piece((f"{head} {inner.lines[0]}",), LOOSE)
        return Piece((head, *indented(inner.lines)), LOOSE)

    def _collected(self, expr: Quant, scope: Scope, width: int) -> Piece:
        """count and max: an operator over a set."""
        domain = self.domain(expr.binder, scope)
        name, inner = scope.bind(expr.binder.name.name)
        if expr.kind == "count":
            left, right, tail = f"Cardinality({{{name} \\in {domain} : ", "})", ""
        else:
            left, right, tail = f"Maximum({{{expr.default}}} \\cup {{", "})", f" : {name} \\in {domain}"
        body = self.show(expr.body, inner, less(width, len(left + right + tail)))
        if body.is_inline or len(left) + max(map(len, body.lines)) + len(tail + right) <= width:
            return Piece(body.wrapped(left, tail + right).lines, ATOM)
        again = self.show(expr.body, inner, width - 4).lines
        last = (f"{again[-1]}{tail}{right}",)
        return Piece((left.rstrip(), *indented((*again[:-1], *last), 4)), ATOM)

    def _operation(self, expr: Op, scope: Scope, width: int, labels: Labels) -> Piece:
        how: dict[str, Callable[[Op, Scope, int, Labels], Piece]] = {
            "and": self._junction, "or": self._junction, "implies": self._implication, "not": self._negation,
            "ite": self._conditional, "max": self._extreme, "min": self._extreme,
        }  # fmt: skip
        return how.get(expr.op, self._infix)(expr, scope, width, labels)

    def _junction(self, expr: Op, scope: Scope, width: int, _: Labels) -> Piece:
        sign = SIGNS[expr.op]
        if width == INLINE:
            texts = [self.line(a, scope).above(JUNCTION).lines[0] for a in expr.args]
            return Piece((f" {sign} ".join(texts),), JUNCTION)
        return Piece(bulleted(sign, [self.show(a, scope, less(width, 3)).lines for a in expr.args]), JUNCTION)

    def _implication(self, expr: Op, scope: Scope, width: int, _: Labels) -> Piece:
        premise, conclusion = expr.args
        left = self.show(premise, scope, less(width, 3)).above(IMPLICATION)
        if not left.is_inline:
            left = left.above(JUNCTION)
        right = self.show(conclusion, scope, less(width, 2))
        if right.level == IMPLICATION:
            right = right.above(IMPLICATION)
        if width == INLINE:
            return Piece((f"{left.lines[0]} => {right.lines[0]}",), IMPLICATION)
        return Piece((*left.lines[:-1], f"{left.lines[-1]} =>", *indented(right.lines)), IMPLICATION)

    def _negation(self, expr: Op, scope: Scope, width: int, _: Labels) -> Piece:
        inner = self.show(expr.args[0], scope, less(width, 2)).above(ARITHMETIC)
        return Piece(hang(("~",), inner.lines), NEGATION)

    def _conditional(self, expr: Op, scope: Scope, width: int, labels: Labels) -> Piece:
        labels = labels or self.enums.of(expr)
        test = self.show(expr.args[0], scope, less(width, 3))
        then, otherwise = (self.show(a, scope, less(width, 5), labels) for a in expr.args[1:])
        if width == INLINE:
            then = then.above(LOOSE)
            return Piece((f"IF {test.lines[0]} THEN {then.lines[0]} ELSE {otherwise.lines[0]}",), LOOSE)
        lines = (*hang(("IF ",), test.lines), *hang(("THEN ",), then.lines), *hang(("ELSE ",), otherwise.lines))
        return Piece(lines, LOOSE)

    def _extreme(self, expr: Op, scope: Scope, width: int, _: Labels) -> Piece:
        name = "Max" if expr.op == "max" else "Min"
        self.helpers.add(name)
        head = f"{name}("
        pieces = [self.show(a, scope, less(width, len(head) + 1)).lines for a in expr.args]
        if width == INLINE:
            return Piece((f"{head}{', '.join(p[0] for p in pieces)})",), ATOM)
        lines = [*pieces[0][:-1], f"{pieces[0][-1]},", *pieces[1]]
        return Piece(Piece(tuple(lines), ATOM).wrapped(head, ")").lines, ATOM)

    def _infix(self, expr: Op, scope: Scope, width: int, _: Labels) -> Piece:
        a, b = expr.args
        sign = SIGNS[expr.op]
        if expr.op in ("lt", "le") and isinstance(a, Const):
            a, b, sign = b, a, ">" if expr.op == "lt" else ">="
        if expr.op in ("add", "sub", "mod"):
            chained = expr.op == "add" and isinstance(a, Op) and a.op == "add"
            left = self.line(a, scope).above(RANGE if chained else ARITHMETIC)
            right = self.line(b, scope).above(ARITHMETIC)
            return Piece((f"{left.lines[0]} {sign} {right.lines[0]}",), ARITHMETIC)
        labels = self.enums.of(a) or self.enums.of(b)
        right = self.line(b, scope, labels).above(COMPARISON)
        left = self.show(a, scope, less(width, min(len(right.lines[0]), width // 2) + 4), labels).above(COMPARISON)
        head = (*left.lines[:-1], f"{left.lines[-1]} {sign} ")
        right = self.show(b, scope, less(width, len(head[-1])), labels).above(COMPARISON)
        return Piece(hang(head, right.lines), COMPARISON)


def over(bound: list[tuple[str, str]]) -> str:
    """Bound names with their sets: `v, w \\in View, o \\in Op`."""
    groups: list[tuple[list[str], str]] = []
    for name, domain in bound:
        if groups and groups[-1][1] == domain:
            groups[-1][0].append(name)
        else:
            groups.append(([name], domain))
    return ", ".join(f"{', '.join(names)} \\in {domain}" for names, domain in groups)


def is_whole(binder: Binder) -> bool:
    """Does it range over all of its sort?"""
    sort, lo, hi = binder.name.sort, binder.lo, binder.hi
    return (
        sort is not None
        and isinstance(lo, Const)
        and lo.value == sort.lo
        and isinstance(hi, SortMax)
        and hi.sort == sort
    )


def _constant(expr: Const, labels: Labels) -> Piece:
    if expr.is_bool:
        return Piece(("TRUE" if expr.value else "FALSE",), ATOM)
    if labels:
        return Piece((f'"{labels[expr.value]}"',), ATOM)
    return Piece((str(expr.value),), ATOM if expr.value >= 0 else ARITHMETIC)
