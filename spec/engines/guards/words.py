"""A guard in words: the values it stands on; of a count, who is counted, who is not and why, how many it takes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from viewproof.spec.engines.guards.cells import Cells, Truth, ends
from viewproof.spec.engines.guards.evaluate import Env, Evaluator, Show
from viewproof.spec.lang.definitions import Spec, call_text
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Expr, Op, Quant
from viewproof.spec.lang.sorts import Instance

VALUES_MAX = 12
"""Parts shown for one guard."""
MEMBERS_MAX = 8
"""Members of a quantifier of whom is said why."""

_BOUNDS = {
    ("le", 1): "at least {}",
    ("lt", 1): "more than {}",
    ("le", 0): "at most {}",
    ("lt", 0): "fewer than {}",
    ("eq", 0): "exactly {}",
    ("eq", 1): "exactly {}",
    ("ne", 0): "other than {}",
    ("ne", 1): "other than {}",
}
"""What a comparison asks of a count, by operation and the count's side (0: left)."""


def guard_text(source: Source) -> str:
    """A guard conjunct as written, without the `require(…)` around it and the breaks of a formatter."""
    text = source.text
    for pattern, short in ((r"\(\s+", "("), (r",?\s+\)", ")"), (r"^require\((.*)\)$", r"\1")):
        text = re.sub(pattern, short, text)
    return text


@dataclass(frozen=True)
class Refusal:
    """A guard that is false (or open) for an action with these arguments: its text, its place and the values."""

    action: str
    args: Env
    guard: str
    place: str
    values: tuple[str, ...]
    truth: Truth = False

    def text(self) -> str:
        """One line for a reader."""
        call = call_text(self.action, self.args)
        values = f" ({', '.join(self.values)})" if self.values else ""
        return f"{call}: {self.guard} is {'open' if self.truth is None else 'false'}{values} [{self.place}]"


def refusal(spec: Spec, cells: Cells, action: str, conjunct: int, args: Env, show: Show) -> Refusal:
    """Why a guard conjunct (0-based) of an action stands in the way."""
    guard = spec.ir(action).guards[conjunct]
    words = Words(spec.instance, cells, show)
    try:
        truth = words.truth(guard.cond, args)
        values = words.because(guard.cond, args)
    except SpecError as problem:
        truth, values = False, (problem.message,)
    return Refusal(action, args, guard_text(guard.source), str(guard.source), values, truth)


class Words:
    """Says why an expression is true, false or open; `evaluator` makes one that knows more than cells."""

    def __init__(
        self, instance: Instance, cells: Cells, show: Show, evaluator: Callable[[], Evaluator] | None = None
    ) -> None:
        self.show = show
        self.evaluator = evaluator or partial(Evaluator, instance, cells)

    def truth(self, expr: Expr, env: Env) -> Truth:
        """Truth of a Boolean expression."""
        return self.evaluator().truth(expr, env)

    def because(self, expr: Expr, env: Env) -> tuple[str, ...]:
        """The values that its truth stands on, each once; a few of many."""
        found = list(dict.fromkeys(self._because(expr, env)))
        more = len(found) - VALUES_MAX
        return tuple([*found[:VALUES_MAX], f"and {more} more"] if more > 0 else found)

    def failing(self, expr: Expr, env: Env) -> Iterator[tuple[str, int]]:
        """The members of `forall` for which a false expression fails, outermost first."""
        if isinstance(expr, Quant) and expr.kind == "forall":
            for member in self._members(expr, env):
                inner = {**env, expr.binder.name.name: member}
                if self.truth(expr.body, inner) is False:
                    yield expr.binder.name.name.rpartition("_")[0], member
                    yield from self.failing(expr.body, inner)
                    return
        elif isinstance(expr, Op) and expr.op in ("and", "or"):
            for arg in expr.args:
                if self.truth(arg, env) is False:
                    yield from self.failing(arg, env)
                    if expr.op == "and":
                        return

    def _members(self, expr: Quant, env: Env) -> range:
        return self.evaluator().members(expr.binder, env) or range(0)

    def _because(self, expr: Expr, env: Env) -> Iterator[str]:
        if isinstance(expr, Op) and expr.op == "not":
            yield from self._because(expr.args[0], env)
        elif isinstance(expr, Op) and expr.op in ("and", "or"):
            yield from self._connected(expr, env)
        elif isinstance(expr, Quant) and expr.is_bool:
            yield from self._quantified(expr, env)
        elif isinstance(expr, Op) and (side := _count_side(expr)) is not None:
            counted, other = expr.args[side], expr.args[1 - side]
            assert isinstance(counted, Quant)
            yield self._counted(counted, env, self._needed(expr.op, side, other, env))
            yield from self._readings(other, env)
        else:
            yield from self._readings(expr, env)

    def _readings(self, expr: Expr, env: Env) -> Iterator[str]:
        evaluator = self.evaluator()
        evaluator.value(expr, env)
        yield from (reading.text(self.show) for reading in evaluator.readings)

    def _connected(self, expr: Op, env: Env) -> Iterator[str]:
        """Of `and`, `or`: the part that decides, or all."""
        stop = expr.op == "or"
        truth = self.truth(expr, env)
        for arg in expr.args:
            own = self.truth(arg, env)
            if own is truth:
                yield from self._because(arg, env)
                if truth is stop:
                    return

    def _quantified(self, expr: Quant, env: Env) -> Iterator[str]:
        """Of `forall`, `exists`: the member that decides; where none does, what is so of each."""
        truth, stop = self.truth(expr, env), expr.kind == "exists"
        if truth is (not stop) and stop:
            yield self._counted(expr, env, "at least 1")
            return
        for member in self._members(expr, env):
            inner = {**env, expr.binder.name.name: member}
            if self.truth(expr.body, inner) is truth:
                yield from self._because(expr.body, inner)
                if truth is stop:
                    return

    def _needed(self, op: str, side: int, other: Expr, env: Env) -> str:
        lo, hi = ends(self.evaluator().value(other, env))
        return _BOUNDS[op, side].format(lo if lo == hi else "a number that is not known")

    def _counted(self, expr: Quant, env: Env, needed: str) -> str:
        """`2 of 3 (q = 0, 1), at least 3 needed; not 2: ack[2, 0, 1] = 0`; `none of 3 (q = 0 … 2), …`."""
        by_truth: dict[Truth, list[int]] = {True: [], False: [], None: []}
        members = self._members(expr, env)
        for member in members:
            by_truth[self.truth(expr.body, {**env, expr.binder.name.name: member})].append(member)
        name = expr.binder.name.name.rpartition("_")[0]
        whole = f"{name} = {members.start} … {members.stop - 1}" if members else f"no {name}"
        counted = ", ".join(map(str, by_truth[True]))
        which, number = (f"{name} = {counted}", str(len(by_truth[True]))) if counted else (whole, "none")
        text = f"{number} of {len(members)} ({which}), {needed} needed"
        for truth, word in ((False, "not"), (None, "open")):
            text += "".join(
                f"; {word} {member}" + self._why(expr, {**env, expr.binder.name.name: member})
                for member in by_truth[truth][:MEMBERS_MAX]
            )
            if len(by_truth[truth]) > MEMBERS_MAX:
                text += f"; {word} {len(by_truth[truth]) - MEMBERS_MAX} more"
        return text

    def _why(self, expr: Quant, env: Env) -> str:
        values = ", ".join(dict.fromkeys(self._because(expr.body, env)))
        return f": {values}" if values else ""


def _count_side(expr: Op) -> int | None:
    """On which side of a comparison something is counted."""
    if expr.op not in ("eq", "ne", "lt", "le"):
        return None
    return next((n for n, arg in enumerate(expr.args) if isinstance(arg, Quant) and arg.kind == "count"), None)
