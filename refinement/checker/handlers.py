"""Python source of the handlers of events, from their recorded rules."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from viewproof.refinement.checker.columns import columns_of, expressions, needed_columns
from viewproof.refinement.checker.nesting import NestedText
from viewproof.refinement.checker.owed import names_of, take_owed
from viewproof.refinement.checker.state import Missing, Reject
from viewproof.refinement.events.lines import (
    Agrees,
    Check,
    Condition,
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
    Observation,
    Owes,
    Range,
    Received,
    Rule,
    Step,
    Tried,
    nested,
)
from viewproof.refinement.events.system import System
from viewproof.refinement.events.terms import Apply, Column, Row, Shown, Text, first_clear, mask
from viewproof.spec.engines.replay import Layout, Replay
from viewproof.spec.engines.replay.emit import Emitter, Names
from viewproof.spec.lang import Spec
from viewproof.spec.lang.errors import Source
from viewproof.spec.lang.expr import Const, Expr, Op, Read, walk

FILE = "<audit>"
"""Name of the compiled handlers in tracebacks."""


class EventEmitter(Emitter):
    """Python text of expressions over the store, the event's columns (`c_<name>`) and the run's bookkeeping."""

    def text(self, expr: Expr, names: Names) -> str:
        match expr:
            case Column():
                return f"c_{expr.name}"
            case Text():
                return repr(expr.value)
            case Shown():
                return f"(c_{expr.name} is not None)"
            case Row():
                return f"S.v_{expr.var}[{self.text(expr.node, names)}]"
            case Apply():
                args = [self.text(a, names) for a in expr.args]
                if expr.name == "name_of":
                    return f"C.labels.get(({', '.join(args)}))"
                return f"f_{expr.name}({', '.join(args)})"
        return super().text(expr, names)


def scope_of(
    replay: Replay, rules: Mapping[str, Rule], observed: Iterable[Observation], numbers: Mapping[str, int]
) -> dict[str, Any]:
    """What the handlers' text names."""
    scope: dict[str, Any] = {f"a_{name}": function for name, function in replay.functions.items()}
    scope |= {f"g_{name}": value for name, value in numbers.items()}
    scope |= {"Reject": Reject, "Missing": Missing, "f_first_clear": first_clear, "f_mask": mask}
    lines = [line for rule in rules.values() for line in rule.lines]
    exprs = [e for line in lines for e in expressions(line)]
    exprs += [o.value for o in observed if o.value is not None]
    for node in (n for e in exprs for n in walk(e)):
        if isinstance(node, Apply) and node.fn is not None:
            scope[f"f_{node.name}"] = node.fn
    scope |= {f"labels_{o.column}": o.labels for o in observed if o.labels}
    return scope


class HandlerText(NestedText):
    """Writes the handler of one event: `lines`, and of each the place in the event function that it is made of."""

    def __init__(
        self, system: System, rule: Rule, spec: Spec, observed: tuple[Observation, ...], owing: bool = False,
        stand_ins: Mapping[str, tuple[str, ...]] | None = None,
    ) -> None:  # fmt: skip
        """`owing`: nodes owe lines; `stand_ins` are taken where an action is refused."""
        self.owing = owing and not rule.aside
        self.stand_ins = stand_ins or {}
        self.system = system
        self.rule = rule
        self.observed = observed
        self.layout = Layout(spec.schema, spec.instance)
        self.emitter = EventEmitter(self.layout, spec.instance)
        self.params = {action.name: action.params for action in spec.actions}
        self.replicas = system.profile.nodes(spec.cfg)
        self.lines = [f"def e_{rule.event}(C, S, row):"]
        self.places: list[Source | None] = [None]
        self.place: Source | None = None
        self.indent = 1
        self.certain: set[str] = {"node", "seq"}
        self.names: dict[str, str] = {}
        self._write()

    def put(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)
        self.places.append(self.place)

    def expr(self, expr: Expr) -> str:
        return self.emitter.text(expr, self.names)

    def _write(self) -> None:
        rule = self.rule
        for name in self._columns():
            self.put(f"c_{name} = row[{self.system.index[name]}]")
        if self.owing:
            self.lines += [f"    {text}" for text in take_owed(rule)]
            self.places += [None] * (len(self.lines) - len(self.places))
            self.names |= {name.name: name.name for name in names_of(rule)}
        if rule.receives:
            self._match_sent(rule.receives)
        self._lines()
        self.place = None
        if any(isinstance(line, Owes) for line in rule.lines):
            self.put("queue[0:0] = owing")
        self._observe()
        if rule.sends:
            fields = "".join(f", c_{name}" for name in self.system.messages[rule.sends])
            self.put(f"C.sent[c_node][c_seq] = ({rule.sends!r}{fields},)")

    def _columns(self) -> list[str]:
        exprs = [e for line in self.rule.lines for e in expressions(line)]
        exprs += [e for o in self.observed for e in (o.value, o.at) if e is not None]
        names = {"node", "seq", *columns_of(exprs)}
        names |= {n.name for e in exprs for n in walk(e) if isinstance(n, Shown)}
        for kind in filter(None, (self.rule.sends, self.rule.receives.partition("|")[0])):
            names |= set(self.system.messages[kind])
        if self.rule.receives:
            names |= {"m_from", "m_seq"}
        return sorted(names, key=lambda name: self.system.index[name])

    def _match_sent(self, kind: str) -> None:
        """Compare with the event that sent the message, and fill columns that this event does not show.

        `kind` may name several kinds, with "|": then the columns of the first are compared.
        """
        kinds = tuple(kind.split("|"))
        self.put("if c_m_from is None and c_m_seq is not None: raise Missing('m_from')")
        self.put("if c_m_from is not None and c_m_seq is not None:")
        self.indent += 1
        self.put(f"sent = C.sent[c_m_from].get(c_m_seq) if c_m_from < {self.replicas} else None")
        self.put(f"if sent is None or sent[0] not in {kinds!r}: raise C.never_sent({kind!r}, c_m_from, c_m_seq)")
        for position, name in enumerate(self.system.messages[kinds[0]], 1):
            self.put(f"if c_{name} is None: c_{name} = sent[{position}]")
            self.put(f"elif c_{name} != sent[{position}] is not None:")
            self.put(f"    raise C.altered({name!r}, sent[{position}], c_{name}, c_m_from, c_m_seq)")
        self.indent -= 1

    def _need(self, *exprs: Expr) -> None:
        for name in needed_columns(exprs):
            if name not in self.certain:
                self.put(f"if c_{name} is None: raise Missing({name!r})")
                if self.indent == 1:
                    self.certain.add(name)

    # where a line stands

    def _lines(self) -> None:
        """The lines, those that share conditions and a range below one `if` and `for`."""
        outside = self.indent
        for line, shared, more in nested(self.rule.lines):
            self.place = line.source
            self.indent = outside + shared
            for one in more:
                self._open(one, line)
            self._line(line)
        self.indent = outside

    def _open(self, one: Condition | Range, line: Line) -> None:
        if isinstance(one, Condition):
            self._need(one.cond)
            self.put(f"if {self.expr(one.cond)}:")
        else:
            self._need(one.lo, one.hi)
            self._before_range(one, line)
            name = one.name.name
            self.names[name] = name
            self.put(f"for {name} in range({self.expr(one.lo)}, {self.expr(one.hi)} + 1):")
        self.indent += 1

    def _before_range(self, one: Range, line: Line) -> None:
        if isinstance(line, Journaled) and line.afresh:
            self.put("C.journaled[c_node].clear()")
        step = next((s for s in self.rule.lines if isinstance(s, Step) and s.each is one), None)
        if not one.at_least or step is None:
            return
        self.put(f"first = {self.expr(one.lo)}")
        self.names[one.name.name] = self.expr(one.hi)
        pairs = ", ".join(f"{n!r}: {self.expr(v)}" for n, v in step.args.items() if not isinstance(v, Tried))
        asked = f"{step.action!r}, {taken_by(one.lo)!r}, {{{pairs}}}"
        self.put(f"if first > {self.expr(one.hi)}: raise C.nothing({asked}, first, {self.expr(one.hi)})")

    # lines

    def _line(self, line: Line) -> None:
        match line:
            case Check():
                self._check(line)
            case Holds():
                self._need(line.cond)
                arguments = f"{line.column!r}, {line.message!r}, {line.rule!r}"
                self.put(f"if not ({self.expr(line.cond)}): raise C.broken({arguments})")
            case Configured():
                name = line.column
                self.put(f"if c_{name} != C.configured[{name!r}]: C.configure({name!r}, c_{name})")
            case Received():
                self._received(line)
            case Step():
                self._step(line)
            case Named():
                self._named(line)
            case Log():
                self._log(line)
            case Agrees():
                self._agrees(line)
            case Journaled():
                self._journaled(line)
            case Havoc():
                self.put(f"raise Missing({line.var.name!r})")
            case Let():
                self._need(line.value)
                self.names[line.name.name] = line.name.name
                self.put(f"{line.name.name} = {self.expr(line.value)}")
            case Owes():
                self._need(*line.values)
                values = "".join(f"{self.expr(value)}, " for value in line.values)
                self.put(f"owing.append(({line.events!r}, ({values})))")
            case Freed():
                self.put(f"C.due[{'c_node' if line.by is None else self.expr(line.by)}].clear()")
            case InJournal():
                op = self.names[line.each.name.name] if line.each else ""
                self.put(f"entry = {self.expr(line.entry)}")
                self.put(f"if (entry, {op}) not in C.journaled[c_node]: raise C.not_in_journal(entry, {op})")
            case _:
                self._nested(line)

    def _check(self, line: Check) -> None:
        name = f"c_{line.column}"
        if not line.if_shown:
            self._need(Column(line.column))
        self.put(f"if {name} is not None:")
        self.indent += 1
        self._need(line.expected)
        self.put(f"expected = {self.expr(line.expected)}")
        self.put(f"if {name} != expected: raise C.differs({line.column!r}, expected, {name}, {line.rule!r})")
        self.indent -= 1

    def _named(self, line: Named) -> None:
        self._need(Column(line.checksum), line.entry, line.op)
        entry, op = self.expr(line.entry), self.expr(line.op)
        self.put(f"entry = {entry}")
        self.put(
            f"if C.labels.get((entry, {op})) != c_{line.checksum}: "
            f"C.name({line.checksum!r}, c_{line.checksum}, entry, {op})"
        )

    def _log(self, line: Log) -> None:
        self._need(Column(line.column), line.top)
        name, o = f"c_{line.column}", line.name.name
        self.names[o] = o
        self.put(f"top = {self.expr(line.top)}")
        self.put(f"if len({name}) > top: raise C.broken({line.column!r}, 'the log has more entries than ops')")
        self.put(f"for {o}, checksum in enumerate({name}, top - len({name}) + 1):")
        self.put(f"    entry = {self.expr(line.entry)}")
        self.put(f"    if C.labels.get((entry, {o})) != checksum: C.name({line.column!r}, checksum, entry, {o})")

    def _agrees(self, line: Agrees) -> None:
        name = f"c_{line.column}"
        self.put(f"if {name} is None: C.unseen[c_node].setdefault({line.column!r}, c_seq)")
        self.put("else:")
        self.indent += 1
        self._need(line.op)
        self.put(f"C.unseen[c_node].pop({line.column!r}, None)")
        op = self.expr(line.op)
        self.put(f"agreed = C.agreed.setdefault(({line.column!r}, {op}), {name})")
        self.put(f"if agreed != {name}: raise C.disagrees({line.rule!r}, {line.column!r}, agreed, {name})")
        if line.distinct:
            self.put(f"C.own_of({line.rule!r}, {line.column!r}, {op}, {name})")
        self.indent -= 1

    def _journaled(self, line: Journaled) -> None:
        if line.entry is None:
            assert line.op is not None
            self._need(Column(line.checksum), line.op)
            self.put(f"C.journal_body(c_node, c_{line.checksum}, {self.expr(line.op)})")
        elif line.each is not None:
            self.put(f"C.journaled[c_node].add(({self.expr(line.entry)}, {self.names[line.each.name.name]}))")

    def _received(self, line: Received) -> None:
        var = line.var
        self._need(*line.index)
        node = "c_node"
        if line.by is not None:
            self._need(line.by)
            node = self.expr(line.by)
        key = self.layout.key([self.expr(i) for i in line.index])
        if var.kind == "watermark":
            self._watermark(line, key, node)
            return
        self.put(f"value = S.v_{var.name}.get({key}, {var.init})")
        if line.value is not None:
            self._need(line.value)
            value = self.expr(line.value)
            self.put(f"if {value} != value: raise C.unsent({var.name!r}, {key}, {value}, value)")
        if line.sent:
            self.put(f"if not value: raise C.unsent({var.name!r}, {key}, None, value)")
        self.put(f"S.in_{var.name}[{node}][{key}] = value")

    def _watermark(self, line: Received, key: str, node: str) -> None:
        var = line.var
        assert line.value is not None
        self._need(line.value)
        value = self.expr(line.value)
        self.put(f"limit = S.v_{var.name}.get({key}, {var.init})")
        self.put(f"if {value} > limit: raise C.unsent({var.name!r}, {key}, {value}, limit)")
        self.put(f"inbox = S.in_{var.name}[{node}]")
        self.put(f"if {value} > inbox.get({key}, {var.init}): inbox[{key}] = {value}")

    def _step(self, line: Step) -> None:
        if line.how == "may":
            self.put(f"raise Missing({line.action!r})")
            return
        indent = self.indent
        if line.unless is not None:
            self._need(line.unless)
            self.put(f"if not {self.expr(line.unless)}:")
            self.indent += 1
        self._need(*(v for v in line.args.values() if not isinstance(v, Tried)))
        self._in_sorts(line)
        if line.how == "if":
            args = ", ".join(self.expr(v) for v in line.args.values() if not isinstance(v, Tried))
            self.put(f"if a_{line.action}(S, {args}) < 0: C.coverage[{line.action!r}] += 1")
        elif line.tried:
            self._try_all(line)
        else:
            self._take(line.action, {n: self.expr(v) for n, v in line.args.items() if not isinstance(v, Tried)})
            if line.journals is not None and line.each is not None:
                op = self.names[line.each.name.name]
                self.put(f"C.journaled[c_node].add(({self.expr(line.journals)}, {op}))")
        self.indent = indent

    def _in_sorts(self, line: Step) -> None:
        """An argument that the trace shows is a member of its parameter's sort."""
        for param in self.params[line.action]:
            value = line.args[param.name]
            if isinstance(value, Tried) or not any(isinstance(n, Column) and n.name != "node" for n in walk(value)):
                continue
            text, lo, replicas = self.expr(value), param.sort.lo, param.sort.name == self.emitter.layout.actors
            wrong = f"not {lo} <= {text} < {self.replicas}" if replicas else f"{text} < {lo}"
            if lo or replicas:
                self.put(f"if {wrong}: raise C.outside({line.action!r}, {param.name!r}, {text}, {param.sort.name!r})")

    def _try_all(self, line: Step) -> None:
        tried = line.args[line.tried]
        assert isinstance(tried, Tried)
        x = tried.name.name
        self.names[x] = x
        args = {n: x if isinstance(v, Tried) else self.expr(v) for n, v in line.args.items()}
        everyone = f"range({self.replicas})"
        column = tried.column
        choices = f"{everyone} if c_{column} is None else (c_{column},)" if column else everyone
        self.put("failed = 0")
        self.put(f"for {x} in {choices}:")
        if tried.where is not None:
            self.put(f"    if not ({self.expr(tried.where)}): continue")
        self.put(f"    failed = a_{line.action}(S, {', '.join(args.values())})")
        self.put("    if failed < 0: break")
        pairs = ", ".join(f"{n!r}: {v}" for n, v in args.items())
        self.put(f"if failed >= 0: raise C.refused({line.action!r}, failed, {{{pairs}}})")
        self.put(f"C.coverage[{line.action!r}] += 1")

    def _take(self, action: str, args: Mapping[str, str]) -> None:
        pairs = ", ".join(f"{n!r}: {v}" for n, v in args.items())
        given = ", ".join(["S", *args.values()])
        self.put(f"failed = a_{action}({given})")
        for other in self.stand_ins.get(action, ()):
            self.put(f"if failed >= 0 and a_{other}({given}) < 0: failed = C.allowed({other!r})")
        self.put(f"if failed >= 0: raise C.refused({action!r}, failed, {{{pairs}}})")
        self.put(f"C.coverage[{action!r}] += 1")

    # observations

    def _observe(self) -> None:
        """One comparison of all observations; anything that is not plainly equal goes to `C.observe`."""
        values, marks = [], []
        for one in self.observed:
            values.append(self._expected(one))
            marks.append(self._mark(one))
        if values:
            self.put(f"state = ({', '.join(values)},)")
            shown = self._of_row([one.column for one in self.observed])
            marks_text = f"({', '.join(marks)},)"
            self.put(f"if {shown} != state or C.unseen[c_node]: C.observe(row, state, {marks_text})")
        looked_at = {one.column for one in self.observed}
        others = [name for name in self.system.optional if name not in looked_at]
        if others:
            self.put(f"if {self._of_row(others)} != {(None,) * len(others)}: C.not_expected(row, {others!r})")

    def _of_row(self, columns: list[str]) -> str:
        places = [self.system.index[name] for name in columns]
        if places == list(range(places[0], places[0] + len(places))):
            return f"row[{places[0]}:{places[-1] + 1}]"
        return f"({''.join(f'row[{place}], ' for place in places)})"

    def _expected(self, one: Observation) -> str:
        if one.agreed:
            assert one.at is not None
            return f"C.shared[{one.column!r}].get({self.expr(one.at)}, '')"
        assert one.value is not None
        value = self.expr(one.value)
        if one.named:
            assert one.at is not None
            return f"C.labels.get(({value}, {self.expr(one.at)}), '')"
        return f"labels_{one.column}[{value}]" if one.labels else value

    def _mark(self, one: Observation) -> str:
        if one.at is None:
            return "None"
        at = self.expr(one.at)
        return f"({self.expr(one.value)}, {at})" if one.named and one.value is not None else at


def taken_by(lo: Expr) -> str:
    """The variable that says up to which op steps are taken already, where the range begins after it alone."""
    if isinstance(lo, Op) and lo.op == "add":
        read, one = lo.args
        by_node = isinstance(read, Read) and len(read.index) == 1 and isinstance(read.index[0], Column)
        if by_node and isinstance(one, Const) and one.value == 1:
            assert isinstance(read, Read)
            return read.var.name
    return ""
