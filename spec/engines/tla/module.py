"""The module and its configuration, from a recorded specification."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from viewproof.spec.engines.tla.abbreviations import Body, body_of, label_of
from viewproof.spec.engines.tla.enums import Enums, numeric_enums
from viewproof.spec.engines.tla.expressions import HELPERS, Printer, bulleted, hang, indented, over
from viewproof.spec.engines.tla.names import GlobalNames, Scope, comment, is_identifier, wrapped
from viewproof.spec.engines.tla.tidy import tidy
from viewproof.spec.engines.tla.updates import assignment, index_names
from viewproof.spec.lang.definitions import Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import ActionIR, Expr, Op, PredicateIR, Quant, SortMax, Within, walk
from viewproof.spec.lang.schema import Var
from viewproof.spec.lang.sorts import Sort, Values

WIDTH = 100
"""Lines are broken to fit into this many characters, where they can be."""

GROUPS = (
    ("state_vars", ("state",), "What the processes hold"),
    ("message_vars", ("register", "watermark"), "What was sent: a fact, once sent, that any receiver may act on"),
    ("history_vars", ("ghost",), "History that only invariants and bounds read"),
)
"""Groups of variables: name of the tuple, kinds, title."""

WITNESSES = """\
Witnesses: states that must be reachable, or the invariant of that name would say nothing.
To see one, check its Never_ operator as an invariant: the counterexample ends in such a state."""


@dataclass(frozen=True)
class Module:
    """A TLA+ module: its name, the text of NAME.tla and NAME.cfg, and which operator states which predicate.

    `properties` maps the operators that the configuration checks to ids of invariants; `witnesses` maps ids of
    witnesses to the operators that say they are never met.
    """

    name: str
    text: str
    config: str
    properties: dict[str, str]
    witnesses: dict[str, str]

    def write(self, directory: Path) -> tuple[Path, Path]:
        """Write NAME.tla and NAME.cfg into a directory, made if it is not there."""
        directory.mkdir(parents=True, exist_ok=True)
        paths = directory / f"{self.name}.tla", directory / f"{self.name}.cfg"
        for path, text in zip(paths, (self.text, self.config), strict=True):
            path.write_text(text, encoding="utf-8")
        return paths


def export(spec: Spec, *, note: str = "", invariants: Iterable[str] | None = None) -> Module:
    """The module of a bounded instance. `note` goes into its head; `invariants` limits the ids that the configuration
    checks. What TLA+ cannot say raises `SpecError` by name.
    """
    return Writer(spec, note, invariants).module()


class Writer:
    """Writes one module."""

    def __init__(self, spec: Spec, note: str, invariants: Iterable[str] | None) -> None:
        self.spec = spec
        self.note = note
        self.wanted = [p.id for p in spec.invariants] if invariants is None else list(invariants)
        unknown = set(self.wanted) - {p.id for p in spec.invariants}
        if unknown:
            raise SpecError(f"no invariant {', '.join(sorted(unknown))}")
        self.printer = Printer(spec.instance, Enums(numeric_enums(spec)))
        self.names = GlobalNames()
        self.sorts = _sorts(spec)
        self.bounds = {self.printer.top(s): spec.instance.hi(s) for s in self.sorts}
        self.vars = list(spec.schema.vars.values())
        self.groups = [(name, [v for v in self.vars if v.kind in kinds], title) for name, kinds, title in GROUPS]
        self.groups = [group for group in self.groups if group[1]]
        self._define_names()
        self.scope = Scope(frozenset(self.names.taken))

    def _define_names(self) -> None:
        for constant in self.bounds:
            self.names.define(constant, "constant")
        for sort in self.sorts:
            self.names.define(sort.name, "sort")
        for name, _, _ in self.groups:
            self.names.define(name, "group of variables")
        for var in self.vars:
            self.names.define(var.name, "variable")
        for action in self.spec.action_irs:
            self.names.define(action.name, "action")
        self.invariant_names = {p.name: self.names.define(_operator(p), "invariant") for p in self.spec.invariant_irs}
        self.step_names = {
            p.name: self.names.define(f"Always_{_dotless(p.name)}", "property")
            for p in self.spec.invariant_irs
            if p.is_transition
        }
        self.witness_names = {
            p.name: (
                self.names.define(f"Witness_{_dotless(p.name)}", "witness"),
                self.names.define(f"Never_{_dotless(p.name)}", "witness"),
            )
            for p in self.spec.witness_irs
        }

    def module(self) -> Module:
        """The whole module."""
        name = self.spec.name
        if not is_identifier(name):
            raise SpecError(f"{name} cannot be the name of a TLA+ module")
        body = [
            *self._variables(), *self._type_ok(), *self._init(),
            *(line for action in self.spec.action_irs for line in self._action(action)),
            *self._next(), *self._invariants(), *self._witnesses(),
        ]  # fmt: skip
        lines = [*self._head(name), *body, "=" * 78]
        properties = {self.step_names.get(id, self.invariant_names[id]): id for id in self.wanted}
        never = {id: never for id, (_, never) in self.witness_names.items()}
        return Module(name, "\n".join(lines) + "\n", self._config(properties), properties, never)

    def _head(self, name: str) -> list[str]:
        rule = "-" * max(4, (70 - len(name)) // 2)
        lines = [f"{rule} MODULE {name} {rule}"]
        lines += comment(f"Exported from a Viewproof specification. {self.note}".rstrip())
        lines += comment(
            "Sets of indices reach as far as the constants say. Numbers in the text, such as sizes of quorums,\n"
            "belong to the configuration that was exported."
        )
        lines += ["EXTENDS Integers, FiniteSets", ""]
        if self.bounds:
            lines += ["CONSTANTS", *indented(tuple(wrapped(self.bounds, WIDTH - 2))), ""]
        for sort in self.sorts:
            lines.append(f"{sort.name} == {sort.lo} .. {self.printer.top(sort)}")
        helpers = [line for key, text in HELPERS.items() if key in self.printer.helpers for line in text.splitlines()]
        return [*lines, *([""] if self.sorts else []), *([*helpers, ""] if helpers else [])]

    def _variables(self) -> list[str]:
        lines: list[str] = []
        for _, members, title in self.groups:
            width = max(len(v.name) for v in members) + 1
            lines += [*comment(f"{title}."), *self._records(members), "VARIABLES"]
            for var in members:
                mark = " " if var is members[-1] else ","
                lines.append(f"  {var.name + mark:<{width}}  \\* {self._describe(var)}")
            lines.append("")
        for name, members, _ in self.groups:
            lines += _tuple(name, [v.name for v in members])
        lines += _tuple("vars", [name for name, _, _ in self.groups])
        return [*lines, ""]

    def _records(self, members: list[Var]) -> list[str]:
        """Which variables make the record of a message."""
        lines: list[str] = []
        for message in self.spec.schema.messages.values():
            if message.record is None or message.vars[0] not in members:
                continue
            key = ", ".join(sort.name for sort in message.key)
            fields = [f"{name} |-> {one.var.name}" for name, one in message.fields.items()]
            sent = [f"sent |-> {message.flag.name}"] if message.flag else []
            record = "\n   ".join(wrapped([*sent, *fields], WIDTH - 8))
            lines += comment(f"{message.title}[{key}] ==\n  [{record}]")
        return lines

    def _describe(self, var: Var) -> str:
        index = f"[{', '.join(s.name for s in var.index)}] " if var.index else ""
        return f"{index}{' '.join(var.doc.split())}"

    def _type_ok(self) -> list[str]:
        lines = ["TypeOK =="]
        for var in self.vars:
            values = self._values(var)
            domain = " \\X ".join(s.name for s in var.index)
            lines.append(f"  /\\ {var.name} \\in {f'[{domain} -> {values}]' if domain else values}")
        return [*lines, ""]

    def _values(self, var: Var) -> str:
        values: Values = var.values
        if values.is_bool:
            return "BOOLEAN"
        if self.printer.enums.declared(var):
            return "{" + ", ".join(f'"{label}"' for label in values.labels) + "}"
        if values.sort is None:
            return f"{values.lo} .. {values.hi}"
        plus = f" {'+' if values.plus > 0 else '-'} {abs(values.plus)}" if values.plus else ""
        return f"{values.lo} .. {self.printer.top(values.sort)}{plus}"

    def _init(self) -> list[str]:
        lines = ["Init =="]
        for var in self.vars:
            value = str(var.init)
            if var.values.is_bool:
                value = "TRUE" if var.init else "FALSE"
            elif labels := self.printer.enums.declared(var):
                value = f'"{labels[var.init]}"'
            names, _ = index_names(var, self.scope)
            bound = over([(n, s.name) for n, s in zip(names, var.index, strict=True)])
            lines.append(f"  /\\ {var.name} = {f'[{bound} |-> {value}]' if bound else value}")
        return [*lines, ""]

    def _action(self, action: ActionIR) -> list[str]:
        scope, params = self.scope, []
        for param in action.params:
            name, scope = scope.bind(param.name)
            params.append(name)
        lines = [*comment(action.doc), *_origin(action.source.file)]
        lines.append(f"{_call(action.name, params)} ==")
        body = body_of(self.spec, action, scope.taken)
        definitions, scope = self._definitions(body, scope)
        parts = [self._guard(cond, scope) for cond in body.conjuncts]
        for var in dict.fromkeys(u.var for u in body.updates):
            mine = [u for u in body.updates if u.var is var]
            parts.append(assignment(self.printer, var, mine, scope, WIDTH - 5))
        unchanged = self._unchanged(action.writes())
        if unchanged:
            parts.append(unchanged)
        return [*lines, *definitions, *indented(bulleted("/\\", parts)), ""]

    def _definitions(self, body: Body, scope: Scope) -> tuple[list[str], Scope]:
        """LET … IN, if there is anything to define."""
        lines: list[str] = []
        for ir_name, value in body.definitions:
            name, scope = scope.fresh(label_of(ir_name))
            head = f"{'      ' if lines else '  LET '}{name} == "
            lines += hang((head,), self.printer.show(value, scope, WIDTH - len(head)).lines)
            scope = scope.alias(ir_name.name, name)
        if len(lines) < 2:
            return [f"{line} IN" for line in lines], scope
        return [*lines, "  IN"], scope

    def _guard(self, cond: Expr, scope: Scope) -> tuple[str, ...]:
        """A conjunct of a guard. A disjunction is asked for its value: see `HELPERS`."""
        if not _branches(cond):
            return self.printer.show(cond, scope, WIDTH - 5).lines
        self.printer.helpers.add("Holds")
        return self.printer.show(cond, scope, WIDTH - 12).wrapped("Holds(", ")").lines

    def _unchanged(self, written: frozenset[str]) -> tuple[str, ...]:
        names: list[str] = []
        for group, members, _ in self.groups:
            left = [v.name for v in members if v.name not in written]
            names += [group] if len(left) == len(members) else left
        if not written:
            return ("UNCHANGED vars",)
        if len(names) < 2:
            return tuple(f"UNCHANGED {name}" for name in names)
        lines = wrapped(names, WIDTH - 18)
        lines[-1] += ">>"
        return hang(("UNCHANGED <<",), tuple(lines))

    def _next(self) -> list[str]:
        lines = ["Next =="] if self.spec.actions else ["Next == FALSE"]
        for action in self.spec.action_irs:
            scope, bound = self.scope, []
            for param in action.params:
                name, scope = scope.bind(param.name)
                bound.append((name, self.printer.sort(param.sort)))
            head = f"\\E {over(bound)} : " if bound else ""
            lines.append(f"  \\/ {head}{_call(action.name, [n for n, _ in bound])}")
        return [*lines, "", "Spec == Init /\\ [][Next]_vars", ""]

    def _predicate(self, name: str, predicate: PredicateIR) -> list[str]:
        shown = self.printer.show(tidy(predicate.cond), self.scope, WIDTH - 2)
        return [*comment(f"{predicate.title}:\n{predicate.doc}"), f"{name} ==", *indented(shown.lines), ""]

    def _invariants(self) -> list[str]:
        lines: list[str] = []
        for predicate in self.spec.invariant_irs:
            name = self.invariant_names[predicate.name]
            lines += self._predicate(name, predicate)
            if predicate.name in self.step_names:
                lines[-1:] = [f"{self.step_names[predicate.name]} == [][{name}]_vars", ""]
        return lines

    def _witnesses(self) -> list[str]:
        if not self.spec.witness_irs:
            return []
        lines = [*comment(WITNESSES), ""]
        for predicate in self.spec.witness_irs:
            if predicate.is_transition:
                raise SpecError(f"witness {predicate.name} compares two states: TLC has no invariant of that form")
            name, never = self.witness_names[predicate.name]
            lines += self._predicate(name, predicate)
            lines[-1:] = [f"{never} == ~{name}", ""]
        return lines

    def _config(self, properties: dict[str, str]) -> str:
        lines = comment("Checked by: java -cp tla2tools.jar tlc2.TLC -workers auto " + self.spec.name)
        lines.append("SPECIFICATION Spec")
        lines += ["CONSTANTS", *(f"  {name} = {hi}" for name, hi in self.bounds.items())] if self.bounds else []
        steps = set(self.step_names.values())
        lines += ["INVARIANTS", "  TypeOK", *(f"  {name}" for name in properties if name not in steps)]
        kept = [name for name in properties if name in steps]
        lines += ["PROPERTIES", *(f"  {name}" for name in kept)] if kept else []
        lines += ["\\* A state without a successor is no error: bounds end every behaviour.", "CHECK_DEADLOCK FALSE"]
        return "\n".join(lines) + "\n"


def _call(name: str, args: Sequence[str]) -> str:
    return f"{name}({', '.join(args)})" if args else name


def _tuple(name: str, members: Sequence[str]) -> list[str]:
    lines = wrapped(members, WIDTH - len(name) - 8)
    lines[-1] += ">>"
    return list(hang((f"{name} == <<",), tuple(lines)))


def _origin(file: str) -> list[str]:
    return comment(f"({file})") if file.endswith(".py") else []


def _dotless(name: str) -> str:
    """An id such as `outcome.stale`, as part of an identifier."""
    return name.replace(".", "_")


def _operator(predicate: PredicateIR) -> str:
    """I1_agreement where the title is a word, else I1."""
    name, title = _dotless(predicate.name), predicate.title
    return f"{name}_{title}" if re.fullmatch(r"[A-Za-z0-9_]+", title) else name


def _branches(cond: Expr) -> bool:
    """Would TLC take an action guarded by this once for each way in which it is true?"""
    if isinstance(cond, Op):
        return cond.op == "or" or (cond.op in ("and", "ite", "implies") and any(map(_branches, cond.args)))
    return isinstance(cond, Quant) and (cond.kind == "exists" or _branches(cond.body))


def _sorts(spec: Spec) -> list[Sort]:
    """Every sort that the specification mentions, in the order of mention."""
    found: dict[str, Sort] = {}
    for var in spec.schema.vars.values():
        for sort in (*var.index, *([var.values.sort] if var.values.sort else [])):
            found.setdefault(sort.name, sort)
    exprs = [p.cond for p in (*spec.invariant_irs, *spec.witness_irs)]
    for action in spec.action_irs:
        for param in action.params:
            found.setdefault(param.sort.name, param.sort)
        exprs += [g.cond for g in action.guards]
        for update in action.updates:
            exprs += [update.value, *update.index, *(e for b in update.binders for e in (b.lo, b.hi))]
    for node in (n for e in exprs for n in walk(e)):
        if isinstance(node, (SortMax, Within)):
            found.setdefault(node.sort.name, node.sort)
    return list(found.values())
