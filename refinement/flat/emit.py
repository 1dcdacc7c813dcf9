"""Event functions over flat memory, from their recorded rules: the twin of `checker.handlers` for complete evidence.

`f(M, C, row)` takes an event's lines in order; it returns 0 if all plainly holds, else the number of a place (`sites`):
something does not hold, or a column is not shown, or cannot be said here. `C` is the address of the columns' addresses,
in the order of a row; a column is a word for each row, `NULL` where it is not shown; a list of strings two, its first
and last + 1 element among the list's codes. What this compiler has no word for is refused by name (`SpecError`).
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Mapping, Sequence

from viewproof.refinement.checker.columns import columns_of, expressions, needed_columns
from viewproof.refinement.events.lines import (
    Agrees,
    Check,
    Condition,
    Configured,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Observation,
    Range,
    Received,
    Rule,
    Step,
    Tried,
)
from viewproof.refinement.events.system import System
from viewproof.refinement.events.terms import Apply, Column, Row, Shown, Text
from viewproof.spec.engines.flat.layout import COUNT, MEMBERS_MAX, FlatLayout, Place
from viewproof.spec.engines.flat.lower import CELL_MAX, NUMBER_MAX, FlatLower, anything
from viewproof.spec.engines.llvm.lower import Site, Term
from viewproof.spec.engines.llvm.machine import MachineError, Translator
from viewproof.spec.engines.llvm.objects import NAME, Unit, unit
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Expr, Op, Param, walk
from viewproof.spec.lang.sorts import Sort

NULL = -(1 << 63)
"""The word of a column that an event does not show."""
PRODUCTS_MAX = 2
WORD_MAX = 1 << 61
"""Columns that are of no sort stay below."""
NO_TEXT = -1
"""The code of a label's text that no column may have."""
NUMBERED_MAX = 1 << 20
"""Columns that are numbered from 0 on, and arguments of functions of numbers, stay below."""
NUMBER = Sort("Number")


def numbered_columns(system: System) -> frozenset[str]:
    """Columns whose values may be numbered."""
    return frozenset(name for group in system.profile.numbered for name in group)


class Books:
    """Where the audit's own tables lie, beside those of the specification (`books`)."""

    def __init__(self, system: System, layout: FlatLayout, actions: Sequence[str], rules: Mapping[str, Rule]) -> None:
        actor = layout.actors
        for name in (
            "names_op",
            "names_entry",
            "fact_executed",
            "fact_digests",
            "fact_first",
            "fact_count",
            "fact_place",
        ):
            layout.table(name, (NUMBER,))
        layout.table("labels", (NUMBER, NUMBER))
        layout.table("fact_prepares", (NUMBER, NUMBER))
        layout.table("fact_offsets", (NUMBER, NUMBER))
        layout.table("journaled", (actor, NUMBER, NUMBER))
        self.sent = layout.table("sent", (actor, NUMBER))
        self.kinds = {kind: number for number, kind in enumerate(system.messages, 1)}
        self.sent_words = 1 + max((len(columns) for columns in system.messages.values()), default=0)
        self.shared = {column: layout.table(f"shared_{column}", (NUMBER,)) for column in system.by_name}
        self.owners = {column: layout.table(f"owners_{column}", (NUMBER,)) for column in system.by_name}
        self.agreed = {column: layout.table(f"agreed_{column}", (NUMBER,)) for column in system.by_name}
        self.of_one = {column: layout.table(f"of_one_{column}", (NUMBER,)) for column in system.by_name}
        self.configured = {column: f"configured_{column}" for column in system.profile.configuration}
        for name in self.configured.values():
            layout.words_at(name, 1)
        self.coverage = {action: number for number, action in enumerate(actions)}
        self.judged = {event: number for number, event in enumerate(rules)}
        layout.words_at("coverage", len(actions))
        layout.words_at("judged", len(rules))
        layout.words_at("last_seq", layout.members)
        layout.words_at("last_clock", layout.members)


class EventLower(FlatLower):
    """Terms of event functions: columns, texts as codes, and the functions that the replays know by name."""

    def __init__(self, layout: FlatLayout, system: System, rule: Rule, codes: Mapping[str, int]) -> None:
        super().__init__(layout, rule.event)
        self.system, self.codes = system, codes
        self.fail = lambda site: f"return {site}"
        self.excused: frozenset[str] = frozenset()
        self.functions: dict[str, Unit] = {}

    def leave(self, test: str, what: str) -> None:
        """Leave where `test` is true; a place of its own."""
        self.error(test, what)

    def code(self, text: str) -> int:
        """The code of a text that is written out."""
        if text not in self.codes:
            raise SpecError(f"the text {text!r} is none that a column is declared to have", self.source)
        return self.codes[text]

    def column(self, name: str) -> Term:
        """A column; those that may not be shown can be NULL."""
        of = self.system.by_name[name]
        if name == "node":
            return Term("c_node", 0, MEMBERS_MAX - 1)
        if of.kind != "int":
            return Term(f"c_{name}", NULL, WORD_MAX)
        if name in numbered_columns(self.system):
            return Term(f"c_{name}", NULL if name in self.excused else 0, NUMBERED_MAX - 1)
        top = min(of.maximum, WORD_MAX if of.sort is None else NUMBER_MAX)
        return Term(f"c_{name}", NULL if name in self.excused else of.minimum, top)

    def lower(self, expr: Expr) -> Term:
        match expr:
            case Column():
                return self.column(expr.name)
            case Text():
                code = self.code(expr.value)
                return Term(str(code), code, code)
            case Shown():
                return Term(f"(c_{expr.name} != {NULL})", 0, 1)
            case Apply():
                return self.apply(expr)
            case Op(op="eq" | "ne") if any(isinstance(a, Apply) and a.name.startswith("text_of_") for a in expr.args):
                for one in expr.args:
                    if isinstance(one, Column) and not self.system.by_name[one.name].choices:
                        raise SpecError(f"there is no compiled form of a label's text beside {one.name}", self.source)
        return super().lower(expr)

    def row(self, row: Expr) -> str:
        """The address of the window that holds a replica's row."""
        if not isinstance(row, Row):
            raise SpecError("a function of a row is given one", self.source)
        place = self.layout.places[row.var]
        return self.known(self.fixed(place, [*self.indices((row.node,)), anything("0")]), 0, 0).text

    def apply(self, expr: Apply) -> Term:
        name, args = expr.name, expr.args
        if name in ("first_clear", "mask"):
            row, rest = self.row(args[0]), [self.atom(self.lower(a)) for a in args[1:]]
            if name == "mask":
                return self.known(f"mask(M, {row})", 0, WORD_MAX)
            base = rest[1].text if len(rest) > 1 else "0"
            return self.known(f"first_clear(M, {row}, {rest[0].text}, {base})", 0, NUMBER_MAX)
        terms = [self.atom(self.lower(a)) for a in args]
        texts = ", ".join(t.text for t in terms)
        if name == "name_of":
            return self.known(f"label(M, {texts})", -1, WORD_MAX)
        if name == "bit":
            return Term(f"((lshr({terms[0].text}, {terms[1].text} - 1) & 1) != 0)", 0, 1)
        labels = getattr(expr.fn, "__self__", None)
        if isinstance(labels, tuple) and name.startswith("label_of_"):
            return self.chosen(terms[0], {self.codes[text]: n for n, text in enumerate(labels) if text in self.codes})
        if isinstance(labels, tuple) and name.startswith("text_of_"):
            return self.chosen(terms[0], {number: self.codes.get(text, NO_TEXT) for number, text in enumerate(labels)})
        return self.called(expr, terms)

    def called(self, expr: Apply, terms: Sequence[Term]) -> Term:
        """A function of numbers, compiled from its source; of small ones, so that its products fit a word."""
        self.functions[expr.name] = function = function_unit(expr, self.source)
        for term in terms:
            if term.lo < 0 or term.hi > NUMBERED_MAX:
                self.leave(
                    f"{term.text} < 0 or {term.text} > {NUMBERED_MAX}", f"a number that {expr.name} is not given"
                )
        value = self.known(f"{function.symbol}({', '.join(t.text for t in terms)})", 0, CELL_MAX)
        self.leave(f"{value.text} < 0 or {value.text} > {CELL_MAX}", f"what {expr.name} gives")
        return value

    def chosen(self, of: Term, values: Mapping[int, int]) -> Term:
        """The value that a finite function gives; none is a reason to leave."""
        result = self.fresh("x")
        self.line(f"{result} = {NULL}")
        for given, value in values.items():
            with self.block(f"if {of.text} == {given}:"):
                self.line(f"{result} = {value}")
        self.leave(f"{result} == {NULL}", "a value that has no label")
        return Term(result, min(values.values()), max(values.values()))


def function_unit(expr: Apply, source: Source) -> Unit:
    """A function of numbers as a unit. Refused is what the subset of `machine` does not have, or has many products."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(expr.fn))) if expr.fn is not None else None
    except (OSError, TypeError, SyntaxError):
        tree = None
    if tree is None or not isinstance(tree.body[0], ast.FunctionDef):
        raise SpecError(f"there is no compiled form of {expr.name}", source)
    grows = [n for n in ast.walk(tree) if isinstance(n, (ast.Mult, ast.Pow, ast.LShift))]
    if len(grows) > PRODUCTS_MAX or any(not isinstance(n, ast.Mult) for n in grows):
        raise SpecError(f"there is no compiled form of {expr.name}: its values may not fit a word", source)
    tree.body[0].name = NAME.strip("@")
    made = unit(f"function {expr.name}", ast.unparse(tree).replace(f"def {NAME.strip('@')}(", f"def {NAME}("))
    try:
        Translator(made.symbol, made.source).translate()
    except MachineError as error:
        raise SpecError(f"there is no compiled form of {expr.name}: {error}", source) from error
    return made


class EventText:
    """Writes the function of one event."""

    def __init__(
        self,
        system: System,
        rule: Rule,
        layout: FlatLayout,
        books: Books,
        observed: Sequence[Observation],
        actions: Mapping[str, Unit],
        params: Mapping[str, Sequence[Param]],
        codes: Mapping[str, int],
    ) -> None:
        self.system, self.rule, self.layout, self.books = system, rule, layout, books
        self.observed, self.actions, self.params = observed, actions, params
        self.out = EventLower(layout, system, rule, codes)
        self.certain: set[str] = {"node", "seq"}
        self._write()

    @property
    def sites(self) -> list[Site]:
        """Where the function can leave, by number from 1."""
        return self.out.sites

    def units(self) -> list[Unit]:
        """The function as a unit, and those that it calls beside actions."""
        return [self.unit(), *self.out.functions.values()]

    def unit(self) -> Unit:
        """The function as a unit."""
        return unit(f"event {self.rule.event}", self.out.text(NAME, "M: I64, C: I64, row: I64"))

    def _write(self) -> None:
        rule = self.rule
        for name in self._columns():
            at = self.system.index[name]
            if self.system.by_name[name].kind == "strings":
                width = len(self.system.table)
                self.out.line(f"c_{name} = load(load(C + {8 * at}) + 8 * row)")
                self.out.line(f"end_{name} = load(load(C + {8 * (at + width)}) + 8 * row)")
                self.out.line(f"list_{name} = load(C + {8 * (at + 2 * width)})")
            else:
                self.out.line(f"c_{name} = load(load(C + {8 * at}) + 8 * row)")
        if rule.receives:
            self._match_sent(rule.receives)
        self._lines()
        self._observe()
        if rule.sends:
            self._send(rule.sends)
        self.out.line("return 0")

    def _columns(self) -> list[str]:
        exprs = [e for line in self.rule.lines for e in expressions(line)]
        exprs += [e for o in self.observed for e in (o.value, o.at) if e is not None]
        names = {"node", "seq", *columns_of(exprs), *(o.column for o in self.observed)}
        names |= {n.name for e in exprs for n in walk(e) if isinstance(n, Shown)}
        for kind in filter(None, (self.rule.sends, self.rule.receives.partition("|")[0])):
            names |= set(self.system.messages[kind])
        if self.rule.receives:
            names |= {"m_from", "m_seq"}
        looked_at = {one.column for one in self.observed}
        names |= {name for name in self.system.optional if name not in looked_at}
        return sorted(names, key=lambda name: self.system.index[name])

    def _match_sent(self, kind: str) -> None:
        """Compare with the event that sent the message, and fill columns that this event does not show."""
        out, kinds = self.out, kind.split("|")
        out.leave(f"c_m_from == {NULL} and c_m_seq != {NULL}", "m_from is not shown")
        with out.block(f"if c_m_from != {NULL} and c_m_seq != {NULL}:"):
            out.leave(f"c_m_from >= external('o_{COUNT}')", "m_from")
            place = f"M + external('o_{self.books.sent.name}') + 32 * c_m_from"
            out.line(f"sent = find(M, {place}, c_m_seq, {self.books.sent_words})")
            out.leave("sent == 0", "never sent")
            none = " and ".join(f"load(sent) != {self.books.kinds[k]}" for k in kinds)
            out.leave(none, "never sent")
            for position, name in enumerate(self.system.messages[kinds[0]], 1):
                out.line(f"was = load(sent + {8 * position})")
                with out.block(f"if c_{name} == {NULL}:"):
                    out.line(f"c_{name} = was")
                out.leave(f"was != {NULL} and c_{name} != was", f"{name} is not as it was sent")

    def _send(self, kind: str) -> None:
        out, books = self.out, self.books
        at = f"make(M, M + external('o_{books.sent.name}') + 32 * c_node, c_seq, {books.sent_words}, 0)"
        out.line(f"sent = {at}")
        out.leave("sent == 0", "memory")
        out.line(f"store(sent, {books.kinds[kind]})")
        for position, name in enumerate(self.system.messages[kind], 1):
            if self.system.by_name[name].kind == "strings":
                raise SpecError(f"a list of strings is a field of the message {kind}")
            out.line(f"store(sent + {8 * position}, c_{name})")

    def _need(self, *exprs: Expr) -> None:
        self.out.excused = frozenset(n.name for e in exprs for n in walk(e) if isinstance(n, Shown))
        for name in needed_columns(exprs):
            if name not in self.certain:
                self.out.leave(f"c_{name} == {NULL}", f"{name} is not shown")
                if self.out.depth == 0:
                    self.certain.add(name)

    # where a line stands

    def _lines(self) -> None:
        out = self.out
        opened: list[Condition | Range] = []
        for line in self.rule.lines:
            out.source = line.source
            each = () if line.each is None else (line.each,)
            wanted: list[Condition | Range] = [*line.only_if, *each, *line.if_each]
            same = 0
            while same < min(len(opened), len(wanted)) and opened[same] is wanted[same]:
                same += 1
            out.depth -= len(opened) - same
            del opened[same:]
            for one in wanted[same:]:
                self._open(one, line)
                opened.append(one)
            out.line("pass")
            self._line(line)
        out.depth -= len(opened)
        out.source = Source("", 0, "")

    def _open(self, one: Condition | Range, line: Line) -> None:
        out = self.out
        if isinstance(one, Condition):
            self._need(one.cond)
            out.line(f"if {out.lower(one.cond).text}:")
        else:
            self._need(one.lo, one.hi)
            lo, hi = out.atom(out.lower(one.lo)), out.atom(out.lower(one.hi))
            if isinstance(line, Journaled) and line.afresh:
                out.line("clear(M, M + external('o_journaled') + 32 * c_node, 0, 2)")
            if one.at_least:
                out.leave(f"{lo.text} > {hi.text}", "nothing is left to take")
            name = out.fresh("o")
            out.env = {**out.env, one.name.name: Term(name, lo.lo, hi.hi)}
            out.line(f"for {name} in range({lo.text}, {hi.text} + 1):")
        out.depth += 1

    # lines

    def _line(self, line: Line) -> None:
        out = self.out
        match line:
            case Check():
                self._check(line)
            case Holds():
                self._need(line.cond)
                out.leave(f"not {out.lower(line.cond).text}", line.message)
            case Configured():
                name = line.column
                was = out.known(f"load(M + external('o_{self.books.configured[name]}'))", 0, 0).text
                none = f"(c_{name} == {NULL} or c_{name} == 0) and ({was} == {NULL} or {was} == 0)"
                out.leave(f"c_{name} != {was} and not ({none})", f"{name} is another than at first")
            case Received():
                self._received(line)
            case Step():
                self._step(line)
            case Named():
                self._need(Column(line.checksum), line.entry, line.op)
                self._called("named", f"c_{line.checksum}", *self._values(line.entry, line.op))
            case Log():
                self._log(line)
            case Agrees():
                self._need(Column(line.column), line.op)
                place = self.books.agreed[line.column]
                (op,) = self._values(line.op)
                self._called("agreed", _row(place), op, f"c_{line.column}")
                if line.distinct:
                    self._called("agreed", _row(self.books.of_one[line.column]), f"c_{line.column}", op)
            case Journaled():
                self._journaled(line)
            case InJournal():
                assert line.each is not None
                o = out.env[line.each.name.name].text
                self._called("in_journal", "c_node", *self._values(line.entry), o)
            case _:
                raise SpecError(f"there is no compiled form of {type(line).__name__}", line.source)

    def _values(self, *exprs: Expr) -> list[str]:
        return [self.out.atom(self.out.lower(e)).text for e in exprs]

    def _called(self, function: str, *args: str) -> None:
        self.out.leave(f"{function}(M, {', '.join(args)}) != 0", function)

    def _check(self, line: Check) -> None:
        out, name = self.out, f"c_{line.column}"
        if not line.if_shown:
            self._need(Column(line.column))
        with out.block(f"if {name} != {NULL}:"):
            self._need(line.expected)
            term = out.atom(out.lower(line.expected))
            out.leave(f"{name} != {out.word(term, line.expected.is_bool)}", f"{line.column} differs")

    def _log(self, line: Log) -> None:
        out, name = self.out, line.column
        self._need(Column(name), line.top)
        top = out.atom(out.lower(line.top))
        out.leave(f"end_{name} - c_{name} > {top.text}", "the log has more entries than ops")
        k, o = out.fresh("k"), out.fresh("o")
        with out.block(f"for {k} in range(c_{name}, end_{name}):"):
            out.line(f"{o} = {top.text} - end_{name} + {k} + 1")
            out.env = {**out.env, line.name.name: anything(o)}
            entry = self._values(line.entry)[0]
            self._called("named", f"load(list_{name} + 8 * {k})", entry, o)

    def _journaled(self, line: Journaled) -> None:
        if line.entry is None:
            assert line.op is not None
            self._need(Column(line.checksum), line.op)
            self._called("journal_body", "c_node", f"c_{line.checksum}", *self._values(line.op))
        elif line.each is not None:
            o = self.out.env[line.each.name.name].text
            self._called("journal", "c_node", *self._values(line.entry), o)

    def _received(self, line: Received) -> None:
        out, var = self.out, line.var
        self._need(*line.index)
        node = out.column("node")
        if line.by is not None:
            self._need(line.by)
            node = out.atom(out.lower(line.by))
        index = out.indices(line.index)
        sent = out.cell(self.layout.places[var.name], index)
        inbox = self.layout.inboxes[var.name]
        value = ""
        if line.value is not None:
            self._need(line.value)
            value = out.atom(Term(out.word(out.lower(line.value), line.value.is_bool), 0, 0)).text
        if var.kind == "watermark":
            out.leave(f"{value} > {sent}", f"{var.name} was not sent")
            have = out.cell(inbox, [node, *index])
            with out.block(f"if {value} > {have}:"):
                out.write(inbox, [node, *index], value)
            return
        if value:
            out.leave(f"{value} != {sent}", f"{var.name} was not sent with this value")
        if line.sent:
            out.leave(f"{sent} == 0", f"{var.name} was not sent")
        out.write(inbox, [node, *index], sent)

    def _in_sorts(self, line: Step) -> None:
        """An argument that the trace shows is a member of its parameter's sort."""
        out = self.out
        for param in self.params[line.action]:
            value = line.args[param.name]
            if isinstance(value, Tried) or not any(isinstance(n, Column) and n.name != "node" for n in walk(value)):
                continue
            (text,) = self._values(value)
            if param.sort.name == self.layout.actors.name:
                out.leave(f"{text} < 0 or {text} >= external('o_{COUNT}')", f"{param.name} of {line.action}")
            elif param.sort.lo:
                out.leave(f"{text} < {param.sort.lo}", f"{param.name} of {line.action}")

    def _step(self, line: Step) -> None:
        out = self.out
        if line.how == "may":
            raise SpecError("there is no compiled form of a step that may have been taken", line.source)
        depth = out.depth
        if line.unless is not None:
            self._need(line.unless)
            out.line(f"if not {out.lower(line.unless).text}:")
            out.depth += 1
        self._need(*(v for v in line.args.values() if not isinstance(v, Tried)))
        self._in_sorts(line)
        if line.tried:
            self._try_all(line)
        else:
            args = self._values(*(v for v in line.args.values() if not isinstance(v, Tried)))
            failed = out.known(f"{self.actions[line.action].symbol}({', '.join(['M', *args])})", 0, 0).text
            if line.how == "if":
                with out.block(f"if {failed} < 0:"):
                    self._count(line.action)
            else:
                out.leave(f"{failed} >= 0", f"{line.action} is refused")
                self._count(line.action)
            if line.journals is not None and line.each is not None and line.how == "must":
                o = out.env[line.each.name.name].text
                self._called("journal", "c_node", *self._values(line.journals), o)
        out.depth = depth

    def _count(self, action: str) -> None:
        at = f"M + external('o_coverage') + {8 * self.books.coverage[action]}"
        self.out.line(f"store({at}, load({at}) + 1)")

    def _try_all(self, line: Step) -> None:
        out, tried = self.out, line.args[line.tried]
        assert isinstance(tried, Tried)
        x, failed = out.fresh("i"), out.fresh("x")
        first, last = "0", f"external('o_{COUNT}')"
        if tried.column is not None:
            c = f"c_{tried.column}"
            first = out.known(f"{c} if {c} != {NULL} else 0", 0, 0).text
            last = out.known(f"{c} + 1 if {c} != {NULL} else external('o_{COUNT}')", 0, 0).text
        out.env = {**out.env, tried.name.name: anything(x)}
        self._need(*(one for one in (tried.where,) if one is not None))
        out.line(f"{failed} = 0")
        with out.block(f"for {x} in range({first}, {last}):"):
            if tried.where is not None:
                with out.block(f"if not {out.lower(tried.where).text}:"):
                    out.line("continue")
            args = [x if isinstance(v, Tried) else self._values(v)[0] for v in line.args.values()]
            out.line(f"{failed} = {self.actions[line.action].symbol}({', '.join(['M', *args])})")
            with out.block(f"if {failed} < 0:"):
                out.line("break")
        out.leave(f"{failed} >= 0", f"{line.action} is refused")
        self._count(line.action)

    # observations

    def _observe(self) -> None:
        for one in self.observed:
            self._need(*(e for e in (one.value, one.at) if e is not None), Column(one.column))
            self._observation(one, f"c_{one.column}")
        looked_at = {one.column for one in self.observed}
        for name in self.system.optional:
            if name not in looked_at:
                self.out.leave(f"c_{name} != {NULL}", f"{name} is shown, and was not at first")

    def _observation(self, one: Observation, shown: str) -> None:
        out = self.out
        if one.agreed:
            assert one.at is not None
            owners = _row(self.books.owners[one.column]) if one.distinct else "0"
            self._called("share", _row(self.books.shared[one.column]), owners, *self._values(one.at), shown)
            return
        assert one.value is not None
        if one.named:
            assert one.at is not None
            self._called("head", shown, *self._values(one.value, one.at))
            return
        term = out.atom(out.lower(one.value))
        if one.labels:
            term = out.chosen(term, {number: out.code(text) for number, text in enumerate(one.labels)})
        out.leave(f"{shown} != {out.word(term, one.value.is_bool and not one.labels)}", f"{one.column} is another")


def _row(place: Place) -> str:
    return f"M + external('o_{place.name}')"
