"""The premises of a lemma: for each of its conjuncts the expression that says when the conjunct says something.

A lemma is taken apart as written: through quantifiers over all members, conjunctions, and the last disjunct of a
disjunction (so also behind `implies`). What is left is a *part*; its premise is that the quantified names have values
for which all disjuncts before it are false. A conjunct before it that a nested part stands behind is taken to hold, as
it does wherever the lemma holds: it may be what gives that part's reads a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.spec.lang import Predicate, Spec, all_of, any_of, between, not_, within
from viewproof.spec.lang.expr import Binder, Const, Expr, Name, Op, Quant, Read, SortMax, Within, walk
from viewproof.spec.lang.record import Recorder, record_predicate

Layer = Binder | Expr
"""A quantified name, or what must hold."""


@dataclass(frozen=True)
class Part:
    """A conjunct of a lemma: its number in the lemma, from 1, and its premise.

    `of_step`: the lemma compares the states before and after a step; `reads_after`: so does the premise.
    """

    lemma: str
    number: int
    premise: Expr
    of_step: bool
    reads_after: bool

    @property
    def label(self) -> str:
        """`I3.1`."""
        return f"{self.lemma}.{self.number}"

    def predicate(self, negated: bool = False) -> Predicate:
        """The premise (or that it is false) as a predicate for any engine."""

        def fn(s: Any) -> Any:
            found: Any = self.premise if isinstance(s, Recorder) else value(self.premise, s, {})
            return not_(found) if negated else found

        return Predicate(self.label, f"part {self.number} of {self.lemma} says something", fn, "A premise.")


def parts(spec: Spec, lemma: Predicate) -> list[Part]:
    """The parts of a lemma in a specification."""
    ir = record_predicate(lemma.id, lemma.title, lemma.fn, spec.schema, spec.cfg, lemma.doc)
    premises = list(_split(ir.cond, ()))
    return [
        Part(lemma.id, n, p, ir.is_transition, any(isinstance(node, Read) and node.after for node in walk(p)))
        for n, p in enumerate(premises, start=1)
    ]


def _split(node: Expr, layers: tuple[Layer, ...]) -> Iterator[Expr]:
    if isinstance(node, Quant) and node.kind == "forall":
        yield from _split(node.body, (*layers, node.binder))
    elif isinstance(node, Op) and node.op == "and":
        for n, arg in enumerate(node.args):
            nested = isinstance(arg, Quant) or (isinstance(arg, Op) and arg.op in ("and", "or"))
            yield from _split(arg, (*layers, *node.args[:n]) if nested else layers)
    elif isinstance(node, Op) and node.op == "or":
        yield from _split(node.args[-1], (*layers, *(Op("not", (a,), True) for a in node.args[:-1])))
    elif not isinstance(node, Const):
        yield _within(layers)


def _within(layers: tuple[Layer, ...]) -> Expr:
    """There are members for which all of it holds, in the order of the layers."""
    if not layers:
        return Const(1, True)
    first, rest = layers[0], layers[1:]
    if isinstance(first, Binder):
        return Quant("exists", first, _within(rest))
    held = [first]
    while rest and isinstance(rest[0], Expr):
        held.append(rest[0])
        rest = rest[1:]
    if rest:
        held.append(_within(rest))
    return held[0] if len(held) == 1 else Op("and", tuple(held), True)


def value(node: Expr, s: Any, env: Mapping[str, int]) -> Any:
    """Value of an expression in a concrete state (`s` is what specification functions get), for values of its names."""
    if isinstance(node, Const):
        return bool(node.value) if node.is_bool else node.value
    if isinstance(node, Name):
        return env[node.name]
    if isinstance(node, SortMax):
        return s.members(node.sort).stop - 1
    if isinstance(node, Read):
        receiver = None if node.receiver is None else value(node.receiver, s, env)
        return s.read(node.var, tuple(value(i, s, env) for i in node.index), receiver, node.after)
    if isinstance(node, Within):
        return within(node.sort, value(node.value, s, env))
    if isinstance(node, Quant):
        return _quantified(node, s, env)
    assert isinstance(node, Op), node
    return _operation(node, s, env)


def _quantified(node: Quant, s: Any, env: Mapping[str, int]) -> Any:
    name, sort = node.binder.name.name, node.binder.name.sort
    assert sort is not None
    domain = between(sort, value(node.binder.lo, s, env), value(node.binder.hi, s, env))
    return s.quantify(node.kind, domain, lambda m: value(node.body, s, {**env, name: m}), node.default)


def _operation(node: Op, s: Any, env: Mapping[str, int]) -> Any:
    if node.op in ("and", "or"):
        join = all_of if node.op == "and" else any_of
        return join(*(lambda a=a: value(a, s, env) for a in node.args))
    if node.op == "ite":
        cond, then, other = node.args
        return value(then if value(cond, s, env) else other, s, env)
    args = [value(a, s, env) for a in node.args]
    if node.op == "not":
        return not_(args[0])
    a, b = args
    operations = {
        "add": lambda: a + b, "sub": lambda: a - b, "mod": lambda: a % b, "eq": lambda: a == b, "ne": lambda: a != b,
        "lt": lambda: a < b, "le": lambda: a <= b, "max": lambda: max(a, b), "min": lambda: min(a, b),
    }  # fmt: skip
    return operations[node.op]()
