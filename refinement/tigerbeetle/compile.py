"""Compile a table of log lines, its mapping and a specification into one Python function per pattern.

`handler(C, S, g)` takes the lines of the event's rule on the store `S`, `g` being the texts of the pattern's fields; it
raises `Reject` at the first that does not hold. `C` is the run's bookkeeping (`Bookkeeping`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from viewproof.refinement.tigerbeetle.rules import Do, Eq, Expect, If, Let, Line, Note, Ok, Rule, Took
from viewproof.refinement.tigerbeetle.table import Pattern, Table
from viewproof.spec.engines.replay import Layout, Replay

Handler = Callable[[Any, Any, tuple[str, ...]], None]

_CONVERT = {
    "d": "int({})",
    "p": "int({})",
    "u": "int({})",
    "w": "{}",
    "c": "{}",
    "t": "{}",
    "b": "{} == 'true'",
    "m": "C.headers.get({})",
}


_INTERRUPTS = ("crash", "init_journal")
"""Events of a replica that dies, whatever it had to go on with."""


class MappingError(Exception):
    """The mapping names something that neither the line nor the specification has."""


@dataclass(frozen=True)
class Program:
    """Handlers by pattern number (None for notes), the compiled specification, and the handlers' source."""

    handlers: tuple[Handler | None, ...]
    replay: Replay
    source: str


def compile_table(
    table: Table,
    rules: tuple[Rule, ...],
    replay: Replay,
    constants: Mapping[str, Any],
    helpers: frozenset[str],
    stand_ins: Mapping[str, tuple[str, ...]],
) -> Program:
    """Compile; raises `MappingError` where table, mapping and specification do not fit together.

    `stand_ins` maps an action to those that a permitted deviation may take where it is refused.
    """
    by_event = {rule.event: rule for rule in rules}
    events = table.events()
    if missing := sorted(set(events) ^ set(by_event)):
        raise MappingError(f"events without a rule, or rules without an event: {', '.join(missing)}")
    scope: dict[str, Any] = {f"a_{name}": function for name, function in replay.functions.items()}
    scope |= constants
    texts, names = [], []
    for number, pattern in enumerate(table.patterns):
        if not pattern.event:
            names.append("")
            continue
        writer = _Writer(table, pattern, by_event[pattern.event], replay, frozenset(constants), helpers, stand_ins)
        names.append(f"h{number}_{pattern.event}")
        texts.append(writer.source(names[-1]))
    source = "\n\n".join(texts)
    from viewproof.refinement.tigerbeetle.bookkeeping import Reject

    scope |= {"Reject": Reject, "convert": dict(table.converters)}
    exec(compile(source, f"<audit of TigerBeetle {table.family}>", "exec"), scope)
    handlers = tuple(scope[name] if name else None for name in names)
    return Program(handlers, replay, source)


class _Writer:
    """Writes the handler of one pattern."""

    def __init__(
        self,
        table: Table,
        pattern: Pattern,
        rule: Rule,
        replay: Replay,
        constants: frozenset[str],
        helpers: frozenset[str],
        stand_ins: Mapping[str, tuple[str, ...]],
    ) -> None:
        self.table = table
        self.pattern = pattern
        self.rule = rule
        self.replay = replay
        self.stand_ins = stand_ins
        self.fields = {name for name, _ in pattern.fields}
        self.known = self.fields | constants | helpers | {"was_due"}
        self.helpers = helpers
        self.out: list[str] = []
        self.indent = 1
        self.expects = False

    def put(self, text: str) -> None:
        self.out.append("    " * self.indent + text)

    def source(self, name: str) -> str:
        for position, (field, kind) in enumerate(self.pattern.fields):
            text = f"g[{position}]"
            if kind in self.table.converters:
                self.put(f"{field} = convert[{kind!r}]({text})")
            else:
                self.put(f"{field} = {_CONVERT[kind].format(text)}")
        if "node" in self.fields:
            self.put("if node >= n_nodes: raise Reject('line.node', f'there is no replica {node}')")
            self._due()
        for line in self.rule.lines:
            self._line(line)
        if self.expects:
            self.put("queue[0:0] = expected")
        return f"def {name}(C, S, g):\n" + "\n".join(self.out or ["    pass"])

    def _due(self) -> None:
        """What the replica's lines before left due must be this line, if anything."""
        event = self.rule.event
        self.put("queue = C.due[node]")
        self.expects = any(True for line in _flat(self.rule.lines) if isinstance(line, Expect))
        if self.expects:
            self.put("expected = []")
        took = [line for line in _flat(self.rule.lines) if isinstance(line, Took)]
        self.put("was_due = bool(queue)")
        self.put("if was_due:")
        self.put(f"    if {event!r} not in queue[0][0] and {event not in _INTERRUPTS}: raise C.overdue(node)")
        self.put("    taken = queue.pop(0)[1]")
        if took:
            self.put("else: taken = -1")

    def expr(self, text: str) -> str:
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError as error:
            raise MappingError(f"{self.rule.event}: {text!r} is no expression") from error
        return ast.unparse(_Names(self, text).visit(tree))

    def _line(self, line: Line) -> None:
        match line:
            case Eq():
                self.put(f"expected_value = {self.expr(line.expected)}")
                self.put(
                    f"if {line.field} != expected_value: raise C.differs({line.field!r}, expected_value, {line.field})"
                )
            case Ok():
                self.put(f"if not ({self.expr(line.cond)}): raise C.broken({self.rule.event!r}, {line.message!r})")
            case Let():
                self.put(f"{line.name} = {self.expr(line.value)}")
                self.known.add(line.name)
            case Note():
                self.put(self.expr(line.call))
            case Expect():
                self.put(f"expected.append(({line.events!r}, {self.expr(line.value)}))")
            case Took():
                self._took(line)
            case If():
                self._if(line)
            case Do():
                self._do(line)

    def _took(self, line: Took) -> None:
        if not line.optional:
            self.put(f"if not was_due: raise C.unexpected({self.rule.event!r})")
        self.put(f"{line.name} = taken")
        self.known.add(line.name)

    def _if(self, line: If) -> None:
        self.put(f"if {self.expr(line.cond)}:")
        self.indent += 1
        for inner in line.lines:
            self._line(inner)
        self.indent -= 1
        if line.otherwise:
            self.put("else:")
            self.indent += 1
            for inner in line.otherwise:
                self._line(inner)
            self.indent -= 1

    def _do(self, line: Do) -> None:
        params = [p.name for p in self.replay.spec.action(line.action).params]
        given = {"r": "node", **line.args} if "r" in params else dict(line.args)
        if set(params) != set(given):
            raise MappingError(f"{self.rule.event}: {line.action} takes {params}, given {sorted(given)}")
        values = [self.expr(given[name]) for name in params]
        call = ", ".join(values)
        self.put(f"failed = a_{line.action}(S, {call})")
        for other in self.stand_ins.get(line.action, ()):
            self.put(f"if failed >= 0 and a_{other}(S, {call}) < 0: failed = C.allowed({other!r})")
        pairs = ", ".join(f"{n!r}: {v}" for n, v in zip(params, values, strict=True))
        self.put(f"if failed >= 0: raise C.refused({line.action!r}, failed, {{{pairs}}})")
        self.put(f"C.coverage[{line.action!r}] += 1")


def _flat(lines: tuple[Line, ...]) -> list[Line]:
    found: list[Line] = []
    for line in lines:
        found.append(line)
        if isinstance(line, If):
            found += _flat(line.lines) + _flat(line.otherwise)
    return found


class _Names(ast.NodeTransformer):
    """`variable[index]` becomes a read of the store, `helper(…)` a method of the run."""

    def __init__(self, writer: _Writer, text: str) -> None:
        self.writer = writer
        self.text = text
        self.layout: Layout = writer.replay.layout

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self.writer.known and node.id not in ("max", "min", "len", "bool"):
            raise MappingError(f"{self.writer.rule.event}: {self.text!r} names {node.id!r}, which is not known here")
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        node.args = [self.visit(arg) for arg in node.args]
        if isinstance(node.func, ast.Name):
            if node.func.id in self.writer.helpers:
                node.func = ast.parse(f"C.{node.func.id}", mode="eval").body
            else:
                self.visit_Name(node.func)
        else:
            node.func = self.visit(node.func)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        variables = self.layout.schema.vars
        if not (isinstance(node.value, ast.Name) and node.value.id in variables):
            node.value = self.visit(node.value)
            node.slice = self.visit(node.slice)
            return node
        var = variables[node.value.id]
        items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = [ast.unparse(self.visit(item)) for item in items]
        if self.layout.shape(var) == "rows" and len(index) == 1 and len(var.index) > 1:
            return ast.parse(f"S.v_{var.name}[{index[0]}]", mode="eval").body
        if len(index) != len(var.index):
            raise MappingError(f"{self.writer.rule.event}: {self.text!r}: {var.name} has {len(var.index)} indices")
        return ast.parse(self.layout.read(var, index), mode="eval").body
