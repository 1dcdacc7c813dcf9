"""Source text of the module that searches one model: written from the IR, compiled by numba (or run as plain Python).

Per action one function that lists all its enabled instances in a state as *writes* (cell, value); per invariant and
witness one function; and `block`, which expands a block of the frontier. Actions read the state before only, so the
order of updates cannot matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from spec.engines.explicit.layout import Layout
from spec.engines.explicit.lower import TRUE, Lower, Site, Term, bounded
from spec.engines.explicit.stutter import stuttering
from spec.engines.explicit.template import BLOCK, HEADER
from spec.lang.definitions import Spec
from spec.lang.errors import SpecError
from spec.lang.expr import ActionIR, Const, Expr, Guard, Name, Op, PredicateIR, Update, walk

PREDICATES_MAX = 60


@dataclass(frozen=True, slots=True)
class Family:
    """An action's instances: numbered `first` onwards, in the order of `interp.instances`."""

    ir: ActionIR
    first: int
    sizes: tuple[tuple[int, int], ...]
    writes_max: int

    @property
    def count(self) -> int:
        """Number of instances."""
        total = 1
        for lo, hi in self.sizes:
            total *= max(0, hi - lo + 1)
        return total

    def args(self, number: int) -> dict[str, int]:
        """Arguments of an instance."""
        values = itertools.product(*(range(lo, hi + 1) for lo, hi in self.sizes))
        chosen = next(itertools.islice(values, number - self.first, None))
        return {p.name: v for p, v in zip(self.ir.params, chosen, strict=True)}


@dataclass
class Program:
    """Emitted source with what the search needs to read its answers."""

    spec: Spec
    layout: Layout
    source: str = ""
    sites: list[Site] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)
    state_invariants: list[PredicateIR] = field(default_factory=list)
    step_invariants: list[PredicateIR] = field(default_factory=list)
    witnesses: list[PredicateIR] = field(default_factory=list)

    @property
    def instances(self) -> int:
        """Number of action instances: a bound of a state's successors."""
        return sum(f.count for f in self.families)

    @property
    def writes_max(self) -> int:
        """Bound of the cells written by all successors of one state together."""
        return sum(f.count * f.writes_max for f in self.families)


def emit(spec: Spec, invariants: Iterable[str] | None = None) -> Program:
    """The program for a bounded instance; `invariants` limits the ids that are checked (default: all)."""
    program = Program(spec, Layout(spec.schema, spec.instance))
    wanted = None if invariants is None else frozenset(invariants)
    unknown = (wanted or frozenset()) - {p.name for p in spec.invariant_irs}
    if unknown:
        known = ", ".join(p.name for p in spec.invariant_irs)
        raise SpecError(f"no invariant {', '.join(sorted(unknown))}; there are: {known}")
    for predicate in spec.invariant_irs:
        if wanted is None or predicate.name in wanted:
            (program.step_invariants if predicate.is_transition else program.state_invariants).append(predicate)
    program.witnesses = [w for w in spec.witness_irs if not w.is_transition]
    for kind in (program.state_invariants, program.step_invariants, program.witnesses):
        if len(kind) > PREDICATES_MAX:
            raise SpecError(f"explicit: more than {PREDICATES_MAX} invariants or witnesses of one kind")
    parts = [HEADER]
    first = 0
    for number, ir in enumerate(spec.action_irs):
        text, family = _action(program, number, ir, first)
        parts.append(text)
        program.families.append(family)
        first += family.count
    parts.extend(_predicates(program))
    parts.append(_block(program))
    program.source = "\n\n".join(parts)
    return program


def _text(name: str, args: str, lower: Lower) -> str:
    body = "\n".join("    " * (depth + 1) + text for depth, text in lower.lines)
    return f"@njit(**INNER)\ndef {name}({args}):\n{body}\n"


def _free(expr: Expr, params: frozenset[str]) -> frozenset[str]:
    return frozenset(n.name for n in walk(expr) if isinstance(n, Name) and n.name in params)


def _action(program: Program, number: int, ir: ActionIR, first: int) -> tuple[str, Family]:
    """Source of one action: loops over its parameters, each guard as far out as its parameters and order allow."""
    sizes = tuple(bounded(program.spec.instance, p.sort) for p in ir.params)
    out = Lower(program.layout, f"action {ir.name}", program.sites, lambda site: f"return fail(ctl, m, {site}, inst)")
    names = frozenset(p.name for p in ir.params)
    out.line("m = ctl[0]")
    out.line("n = ctl[1]")
    out.line(f"inst = {first}")
    guards = list(enumerate(ir.guards))
    bound: set[str] = set()
    hoist = all(hi >= lo for lo, hi in sizes)
    stop = "return 0"
    strides = [1]
    for lo, hi in reversed(sizes[1:]):
        strides.insert(0, strides[0] * max(0, hi - lo + 1))
    base = str(first)
    for level, (param, (lo, hi)) in enumerate(zip(ir.params, sizes, strict=True)):
        if hoist:
            _guards(out, guards, bound, names, stop)
        out.line(f"for p_{param.name} in range({lo}, {hi + 1}):")
        out.depth += 1
        out.env[param.name] = Term(f"p_{param.name}", lo, hi)
        bound.add(param.name)
        base += f" + (p_{param.name} - {lo}) * {strides[level]}"
        out.line(f"inst = {base}")
        stop = "continue"
    _guards(out, guards, set(names), names, stop)
    writes = sum(_update(out, update) for update in ir.updates)
    out.line("we[m] = n")
    out.line("wi[m] = inst")
    out.line("m += 1")
    out.depth = 0
    out.line("ctl[0] = m")
    out.line("ctl[1] = n")
    out.line("return 0")
    return _text(f"e_{number}", "s, wo, wv, we, wi, ctl, blk", out), Family(ir, first, sizes, writes)


def _guards(out: Lower, guards: list[tuple[int, Guard]], bound: set[str], names: frozenset[str], stop: str) -> None:
    """Emit the next guards, in order, as long as they read only the parameters bound so far."""
    while guards and _free(guards[0][1].cond, names) <= bound:
        number, guard = guards.pop(0)
        out.source = guard.source
        out.line(f"# {guard.source}: {guard.source.text[:90]}")
        _guard(out, number, guard.cond, stop)


def _guard(out: Lower, number: int, cond: Expr, stop: str) -> None:
    if isinstance(cond, Op) and cond.op == "and":
        for part in cond.args:
            _guard(out, number, part, stop)
        return
    term = out.lower(cond)
    if term == TRUE:
        return
    with out.block(f"if not {term.text}:"):
        out.line(f"blk[{number}] += 1")
        out.line(stop)


def _update(out: Lower, update: Update) -> int:
    """Emit one update; returns the largest number of cells that it writes."""
    out.source = update.source
    out.line(f"# {update.source}: {update.source.text[:90]}")
    place = out.layout.places[update.var.name]
    env, depth, most = out.env, out.depth, 1
    for binder in update.binders:
        head = out.enter(binder)
        span = out.env[binder.name.name]
        most *= max(0, span.hi - span.lo + 1)
        out.line(head)
        out.depth += 1
    value = out.lower(update.value)
    if not update.value.is_bool:
        if value.lo < place.lo or value.hi > place.hi:
            value = out.atom(value)
            out.error(f"{value.text} < {place.lo} or {value.text} > {place.hi}", f"value of {update.var.name}")
        text = value.text if place.lo == 0 else f"{value.text} - {place.lo}"
    else:
        text = {"True": "1", "False": "0"}.get(value.text, f"1 if {value.text} else 0")
    offset = out.offset(place, update.index)
    out.line(f"wo[n] = {offset}")
    out.line(f"wv[n] = {text}")
    out.line("n += 1")
    out.env, out.depth = env, depth
    return most


def _predicate(program: Program, name: str, predicate: PredicateIR, cond: Expr) -> str:
    out = Lower(program.layout, predicate.name, program.sites, lambda site: f"return -{site}")
    out.source = predicate.source
    term = out.lower(cond)
    out.line(f"return 1 if {term.text} else 0")
    return f"# {predicate.name}: {predicate.title}\n" + _text(name, "s, t", out)


def _predicates(program: Program) -> list[str]:
    """Sources of invariants and witnesses, and of the functions that ask those an action can have changed."""
    parts = [_predicate(program, f"i_{n}", p, p.cond) for n, p in enumerate(program.state_invariants)]
    parts += [_predicate(program, f"w_{n}", p, p.cond) for n, p in enumerate(program.witnesses)]
    parts += [_predicate(program, f"t_{n}", p, p.cond) for n, p in enumerate(program.step_invariants)]
    still = [(n, p, stuttering(p.cond)) for n, p in enumerate(program.step_invariants)]
    kept = [(n, p, cond) for n, p, cond in still if not (isinstance(cond, Const) and cond.value)]
    parts += [_predicate(program, f"r_{n}", p, cond) for n, p, cond in kept]
    ask = ["    if wmask != 0:"]
    for n in range(len(program.witnesses)):
        ask += [
            f"        if wmask >> {n} & 1 and wit[{n}] < 0:",
            f"            v = w_{n}(t, t)",
            "            if v < 0:",
            "                return v",
            "            if v == 1:",
            f"                wit[{n}] = depth",
        ]
    if not program.witnesses:
        ask = []
    for n in range(len(program.state_invariants)):
        ask += _asked(f"i_{n}(t, t)", n)
    parts.append("@njit(**INNER)\ndef visit(t, mask, wmask, wit, depth):\n" + "\n".join([*ask, "    return 0"]) + "\n")
    steps = [line for n in range(len(program.step_invariants)) for line in _asked(f"t_{n}(s, t)", n)]
    parts.append("@njit(**INNER)\ndef steps(s, t, mask):\n" + "\n".join([*steps, "    return 0"]) + "\n")
    calls = [f"    if r_{n}(s, s) != 1:\n        return 2" for n, _, _ in kept]
    parts.append("@njit(**INNER)\ndef stutter(s):\n" + "\n".join([*calls, "    return 1"]) + "\n")
    return parts


def _asked(call: str, number: int) -> list[str]:
    return [
        f"    if mask >> {number} & 1:",
        f"        v = {call}",
        "        if v != 1:",
        f"            return v if v < 0 else {number + 1}",
    ]


def _block(program: Program) -> str:
    calls: list[str] = []
    blk = 0
    for number, family in enumerate(program.families):
        end = blk + len(family.ir.guards)
        calls.append("if ctl[2] == 0:")
        calls.append(f"    e_{number}(s, wo, wv, we, wi, ctl, blk[{blk}:{end}])")
        blk = end
    text = "\n".join("        " + line for line in calls)
    return BLOCK.replace("        @EXPAND@", text).replace("@INSTANCES@", str(program.instances)).replace(
        "@ALL_STEPS@", str((1 << len(program.step_invariants)) - 1)
    )


