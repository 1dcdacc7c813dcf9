"""Sources of the functions of one model, written from the IR in the subset of Python that `machine` compiles.

Per action one function that lists all its enabled instances in a state as *writes* (cell, value); per invariant and
witness one; and the glue that calls them. Each is a *unit* of its own, named by its content, so that a change of one
action compiles only that one again. Actions read the state before only, so the order of updates cannot matter.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field

from viewproof.spec.engines.explicit.layout import Layout
from viewproof.spec.engines.explicit.lower import RowLower
from viewproof.spec.engines.explicit.partial_order import free_groups
from viewproof.spec.engines.explicit.stutter import stuttering
from viewproof.spec.engines.llvm.lower import TRUE, Site, Term, bounded
from viewproof.spec.engines.llvm.objects import NAME, Unit, unit
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Const, Expr, Guard, Name, Op, PredicateIR, Update, walk

PREDICATES_MAX = 60
SITES_MAX = 4096
"""More places at which one predicate can leave a range are refused."""


@dataclass(frozen=True, slots=True)
class Family:
    """An action's instances: numbered `first` onwards, in the order of `interp.instances`."""

    ir: ActionIR
    first: int
    sizes: tuple[tuple[int, int], ...]
    writes_max: int
    sites: tuple[Site, ...] = ()

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
    """Emitted sources with what the search needs to read its answers."""

    spec: Spec
    layout: Layout
    units: list[Unit] = field(default_factory=list)
    free: list[list[str]] = field(default_factory=list)
    predicate_sites: list[list[Site]] = field(default_factory=list)
    families: list[Family] = field(default_factory=list)
    state_invariants: list[PredicateIR] = field(default_factory=list)
    step_invariants: list[PredicateIR] = field(default_factory=list)
    witnesses: list[PredicateIR] = field(default_factory=list)

    @property
    def predicates(self) -> list[PredicateIR]:
        """All that is asked, in the order of `predicate_sites`."""
        return [*self.state_invariants, *self.step_invariants, *self.witnesses]

    @property
    def key(self) -> str:
        """Identity of the model by content: what a checkpoint must fit."""
        text = "\n".join(u.source for u in self.units) + repr(self.layout.bits)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def site(self, code: int) -> Site:
        """Where a predicate left a range, from the (negative) code that its caller returned."""
        return self.predicate_sites[-code // SITES_MAX][-code % SITES_MAX - 1]

    @property
    def instances(self) -> int:
        """Number of action instances: a bound of a state's successors."""
        return sum(f.count for f in self.families)

    @property
    def writes_max(self) -> int:
        """Bound of the cells written by all successors of one state together."""
        return sum(f.count * f.writes_max for f in self.families)


def emit(spec: Spec, invariants: Iterable[str] | None = None, *, reduce: bool = False) -> Program:
    """The program for a bounded instance; `invariants` limits the ids that are checked (default: all).

    With `reduce`, groups of actions that commute with all others are explored alone (see `partial_order`).
    """
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
    first = 0
    actions = []
    for ir in spec.action_irs:
        made, family = _action(program, ir, first)
        actions.append(made)
        program.families.append(family)
        first += family.count
    program.units = [*actions, *_predicates(program), _expand(program, actions, reduce), _unpack(program)]
    return program


def _text(args: str, lower: RowLower) -> str:
    body = "\n".join("    " * (depth + 1) + text for depth, text in lower.lines)
    return f"def {NAME}({args}):\n{body}\n"


def _free(expr: Expr, params: frozenset[str]) -> frozenset[str]:
    return frozenset(n.name for n in walk(expr) if isinstance(n, Name) and n.name in params)


SUCCESSORS = "wo: U16P, wv: U8P, we: U32P, wi: U32P, ctl: I64P, blk: I64P"
CALL = "wo, wv, we, wi, ctl, blk"


def _action(program: Program, ir: ActionIR, first: int) -> tuple[Unit, Family]:
    """Source of one action: loops over its parameters, each guard as far out as its parameters and order allow."""
    sizes = tuple(bounded(program.spec.instance, p.sort) for p in ir.params)
    sites: list[Site] = []
    out = RowLower(program.layout, f"action {ir.name}", sites, lambda site: f"return fail(ctl, m, n, {site}, inst)")
    names = frozenset(p.name for p in ir.params)
    out.line("m = ctl[0]")
    out.line("n = ctl[1]")
    out.line("inst = first")
    guards = list(enumerate(ir.guards))
    bound: set[str] = set()
    hoist = all(hi >= lo for lo, hi in sizes)
    stop = "return 0"
    strides = [1]
    for lo, hi in reversed(sizes[1:]):
        strides.insert(0, strides[0] * max(0, hi - lo + 1))
    base = "first"
    for level, (param, (lo, hi)) in enumerate(zip(ir.params, sizes, strict=True)):
        if hoist:
            _guards(out, guards, bound, names, stop)
        out.line(f"for p_{param.name} in range({lo}, {hi + 1}):")
        out.depth += 1
        out.env[param.name] = Term(f"p_{param.name}", lo, hi)
        bound.add(param.name)
        base += f" + (p_{param.name} - {lo}) * {strides[level]}"
        out.line(f"inst = {base}")
        # What the guards before the loop stored stays stored: `return` ends the action, `continue` this instance.
        stop = "continue"
    _guards(out, guards, set(names), names, stop)
    writes = sum(_update(out, update) for update in ir.updates)
    for text in ("we[m] = n", "wi[m] = inst", "m += 1", "ctl[0] = m", "ctl[1] = n"):
        out.line(text)
    made = unit(f"action {ir.name}", _text(f"s: U8P, {SUCCESSORS}, first: I64, guard: I64", out))
    return made, Family(ir, first, sizes, writes, tuple(sites))


def _guards(out: RowLower, guards: list[tuple[int, Guard]], bound: set[str], names: frozenset[str], stop: str) -> None:
    """Emit the next guards, in order, as long as they read only the parameters bound so far."""
    while guards and _free(guards[0][1].cond, names) <= bound:
        number, guard = guards.pop(0)
        out.source = guard.source
        out.line(f"# {guard.source}: {guard.source.text[:90]}")
        _guard(out, number, guard.cond, stop)


def _guard(out: RowLower, number: int, cond: Expr, stop: str) -> None:
    if isinstance(cond, Op) and cond.op == "and":
        for part in cond.args:
            _guard(out, number, part, stop)
        return
    term = out.lower(cond)
    if term == TRUE:
        return
    with out.block(f"if not {term.text}:"):
        out.line(f"blk[guard + {number}] += 1")
        out.line(stop)


def _update(out: RowLower, update: Update) -> int:
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


def _predicate(program: Program, predicate: PredicateIR, cond: Expr) -> tuple[Unit, list[Site]]:
    sites: list[Site] = []
    out = RowLower(program.layout, predicate.name, sites, lambda site: f"return -{site}")
    out.source = predicate.source
    term = out.lower(cond)
    out.line(f"return 1 if {term.text} else 0")
    if len(sites) >= SITES_MAX:
        raise SpecError(f"explicit: {predicate.name} reads at more than {SITES_MAX} places", predicate.source)
    return unit(predicate.name, _text("s: U8P, t: U8P", out)), sites


def _predicates(program: Program) -> list[Unit]:
    """Invariants and witnesses, and the functions that ask those an action can have changed."""
    made = [_predicate(program, p, p.cond) for p in program.predicates]
    program.predicate_sites = [sites for _, sites in made]
    units = [u for u, _ in made]
    states, steps = len(program.state_invariants), len(program.step_invariants)
    still = [(p, stuttering(p.cond)) for p in program.step_invariants]
    kept = [_predicate(program, p, cond)[0] for p, cond in still if not (isinstance(cond, Const) and cond.value)]
    ask = ["    if wmask != 0:"] if program.witnesses else []
    for n, u in enumerate(units[states + steps :]):
        ask += [
            f"        if (wmask >> {n}) & 1 and wit[{n}] < 0:",
            f"            v = {u.symbol}(t, t)",
            "            if v < 0:",
            f"                return v - {(states + steps + n) * SITES_MAX}",
            "            if v == 1:",
            f"                wit[{n}] = depth",
        ]
    for n, u in enumerate(units[:states]):
        ask += _asked(f"{u.symbol}(t, t)", n, n)
    visit = "def visit(t: U8P, mask: I64, wmask: I64, wit: I64P, depth: I64):\n" + "\n".join([*ask, "    return 0\n"])
    asked = [_asked(f"{u.symbol}(s, t)", n, states + n) for n, u in enumerate(units[states : states + steps])]
    lines = [line for part in asked for line in part]
    step = "def steps(s: U8P, t: U8P, mask: I64):\n" + "\n".join([*lines, "    return 0\n"])
    calls = [f"    if {u.symbol}(s, s) != 1:\n        return 2" for u in kept]
    stutter = "def stutter(s: U8P):\n" + "\n".join([*calls, "    return 1\n"])
    return [*units, *kept, Unit("what is asked of a state and a step", "visit", "\n".join((visit, step, stutter)))]


def _asked(call: str, bit: int, number: int) -> list[str]:
    return [
        f"    if (mask >> {bit}) & 1:",
        f"        v = {call}",
        "        if v < 0:",
        f"            return v - {number * SITES_MAX}",
        "        if v != 1:",
        f"            return {bit + 1}",
    ]


def _expand(program: Program, actions: list[Unit], reduce: bool) -> Unit:
    calls: dict[str, list[str]] = {}
    guard = 0
    for family, made in zip(program.families, actions, strict=True):
        calls[family.ir.name] = [
            f"    {made.symbol}(s, {CALL}, {family.first}, {guard})",
            "    if ctl[2] != 0:",
            "        return 0",
        ]
        guard += len(family.ir.guards)
    lines: list[str] = []
    if reduce:
        for group in free_groups(program.spec.action_irs, program.predicates):
            lines += ["    before = ctl[0]", *(line for ir in group for line in calls.pop(ir.name))]
            lines += ["    if ctl[0] > before:", "        return 0"]
            program.free.append([ir.name for ir in group])
    lines += [line for call in calls.values() for line in call]
    return Unit("all actions", "expand", "\n".join([f"def expand(s: U8P, {SUCCESSORS}):", *lines, "    return 0\n"]))


def _unpack(program: Program) -> Unit:
    """Packed row at an offset → working row, without loops."""
    layout, lines, current = program.layout, ["def unpack(rows: I64P, at: I64, s: U8P):"], -1
    for cell in range(layout.cells):
        word, shift, mask = int(layout.word[cell]), int(layout.shift[cell]), int(layout.mask[cell])
        if word != current:
            lines.append(f"    x = rows[at + {word}]")
            current = word
        lines.append(f"    s[{cell}] = lshr(x, {shift}) & {mask}")
    return Unit("rows", "unpack", "\n".join([*lines, "    return 0\n"]))
