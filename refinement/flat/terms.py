"""What event functions over flat memory are made of: expressions as terms over columns and cells, and a run's books."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from viewproof.refinement.events.lines import (
    Rule,
)
from viewproof.refinement.events.system import System
from viewproof.refinement.events.terms import Apply, Column, Row, Shown, Text
from viewproof.spec.engines.flat.layout import COUNT, HEADER, MEMBERS_MAX, FlatLayout
from viewproof.spec.engines.flat.lower import CELL_MAX, NUMBER_MAX, FlatLower, anything
from viewproof.spec.engines.llvm.lower import Term
from viewproof.spec.engines.llvm.machine import MachineError, Translator
from viewproof.spec.engines.llvm.objects import NAME, Unit, unit
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Expr, Op
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
        fields = max((len(columns) for columns in system.messages.values()), default=0)
        self.sent_words = max(HEADER, fields) + 1  # elements as large as headers are headers
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


ASK = "viewproof_ask"
"""The function that compiled code asks, of the run and the number of a function (`asking`)."""
ASKED = "asked"
"""Where the arguments lie of a function that is asked."""
ARGUMENTS_MAX = 8


@dataclass(frozen=True)
class Ask:
    """A function of Python that compiled code asks for a value. Of each argument: is it a text? The first is the `row`
    of a replica's variable, if that names one: all its cells that are not as at first.
    """

    module: str
    name: str
    texts: tuple[bool, ...]
    row: str = ""


class Asks:
    """The functions of Python that compiled code may ask: those that have no compiled form."""

    def __init__(self, layout: FlatLayout) -> None:
        self.layout = layout
        self.known: dict[Ask, int] = {}
        layout.words_at(ASKED, ARGUMENTS_MAX)

    def check_row(self, row: Row, expr: Apply, source: Source) -> None:
        """Refuse a variable whose rows functions cannot look at here."""
        place = self.layout.places[row.var]
        if place.init or len(place.index) != 2:
            raise SpecError(f"there is no compiled form of {expr.name} of {row.var}", source)

    def number(self, expr: Apply, texts: Sequence[bool], source: Source) -> int:
        """The number of the function; one that cannot be found by its name is refused."""
        fn, row = expr.fn, expr.args[0] if expr.args else None
        name, module = getattr(fn, "__qualname__", ""), getattr(fn, "__module__", "")
        if getattr(sys.modules.get(module), name, None) is not fn or fn is None or len(texts) > ARGUMENTS_MAX:
            raise SpecError(f"there is no compiled form of {expr.name}", source)
        if isinstance(row, Row):
            self.check_row(row, expr, source)
        return self.known.setdefault(
            Ask(module, name, tuple(texts), row.var if isinstance(row, Row) else ""), len(self.known)
        )


class EventLower(FlatLower):
    """Terms of event functions: columns, texts as codes, and the functions that the replays know by name; with `asks`
    also those that only Python knows.
    """

    def __init__(
        self, layout: FlatLayout, system: System, rule: Rule, codes: Mapping[str, int], asks: Asks | None = None
    ) -> None:
        super().__init__(layout, rule.event)
        self.asks = asks
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
                    if isinstance(one, Column) and not self.asks and not self.system.by_name[one.name].choices:
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
        labels = getattr(expr.fn, "__self__", None)
        if self.asks is not None and labels is None and any(isinstance(a, Row) or self._is_text(a) for a in args):
            return self.of_row(expr, self.asks) if isinstance(args[0], Row) else self.asked(expr, self.asks)
        terms = [self.atom(self.lower(a)) for a in args]
        texts = ", ".join(t.text for t in terms)
        if name == "name_of":
            return self.known(f"label(M, {texts})", -1, WORD_MAX)
        if name == "bit":
            return Term(f"((lshr({terms[0].text}, {terms[1].text} - 1) & 1) != 0)", 0, 1)
        if isinstance(labels, tuple) and name.startswith("label_of_"):
            return self.chosen(terms[0], {self.codes[text]: n for n, text in enumerate(labels) if text in self.codes})
        if isinstance(labels, tuple) and name.startswith("text_of_"):
            return self.chosen(terms[0], {number: self.codes.get(text, NO_TEXT) for number, text in enumerate(labels)})
        return self.called(expr, terms)

    def of_row(self, expr: Apply, asks: Asks) -> Term:
        """A function of a replica's row and of numbers: compiled, if its source can be, else asked."""
        row = expr.args[0]
        assert isinstance(row, Row)
        try:
            asks.check_row(row, expr, self.source)
            function = row_function_unit(expr, self.source)
        except SpecError:
            return self.asked(expr, asks)
        self.functions[expr.name] = function
        place = self.layout.places[row.var]
        node = self.indices((row.node,))
        if place.depth:
            at = self.known(self.fixed(place, [*node, anything("0")]), 0, 0).text
            cells = [f"load({at})", f"load({at} + 8)", f"load({at} + 16)"]
        else:
            at = self.known(self.fixed(place, [*node, Term("0", 0, 0)]), 0, 0).text
            cells = [at, "0", f"external('o_{COUNT}')"]
        terms = [self.atom(self.lower(a)) for a in expr.args[1:]]
        for term in terms:
            if term.lo < 0 or term.hi > NUMBERED_MAX:
                self.leave(f"{term.text} < 0 or {term.text} > {NUMBERED_MAX}", f"a number for {expr.name}")
        value = self.known(f"{function.symbol}({', '.join([*cells, *(t.text for t in terms)])})", 0, CELL_MAX)
        self.leave(f"{value.text} < 0 or {value.text} > {CELL_MAX}", f"what {expr.name} gives")
        return value

    def called(self, expr: Apply, terms: Sequence[Term]) -> Term:
        """A function of numbers, compiled from its source; of small ones, so that its products fit a word."""
        try:
            self.functions[expr.name] = function = function_unit(expr, self.source)
        except SpecError:
            if self.asks is None:
                raise
            return self.asked(expr, self.asks)
        for term in terms:
            if term.lo < 0 or term.hi > NUMBERED_MAX:
                self.leave(
                    f"{term.text} < 0 or {term.text} > {NUMBERED_MAX}", f"a number that {expr.name} is not given"
                )
        value = self.known(f"{function.symbol}({', '.join(t.text for t in terms)})", 0, CELL_MAX)
        self.leave(f"{value.text} < 0 or {value.text} > {CELL_MAX}", f"what {expr.name} gives")
        return value

    def _is_text(self, expr: Expr) -> bool:
        return isinstance(expr, Text) or (isinstance(expr, Column) and self.system.by_name[expr.name].kind != "int")

    def asked(self, expr: Apply, asks: Asks) -> Term:
        """What the function says of these arguments."""
        number = asks.number(expr, [self._is_text(a) for a in expr.args], self.source)
        terms = [self.atom(self.lower(a.node if isinstance(a, Row) else a)) for a in expr.args]
        for place, term in enumerate(terms):
            self.line(f"store(M + external('o_{ASKED}') + {8 * place}, {term.text})")
        value = self.known(f"{ASK}(M, {number})", 0, CELL_MAX)
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


class _Rows(ast.NodeTransformer):
    """Makes of a function of a row one of its cells: their address, the place of the first, and how many there are."""

    def __init__(self, row: str) -> None:
        self.row = row

    def _is(self, node: ast.expr, method: str) -> bool:
        return isinstance(node, ast.Call) and ast.unparse(node.func) == f"{self.row}.{method}" and not node.keywords

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if self._is(node, "get") and len(node.args) == 1:
            names = [ast.Name(f"{self.row}_{part}", ast.Load()) for part in ("at", "base", "size")]
            return ast.Call(ast.Name("cell_of", ast.Load()), [*names, *node.args], [])
        return node

    def visit_For(self, node: ast.For) -> ast.AST:
        if self._is(node.iter, "values") and isinstance(node.target, ast.Name) and not node.orelse:
            head = f"for {self.row}_k in range({self.row}_size):"
            made = ast.parse(f"{head}\n {node.target.id} = load({self.row}_at + 8 * {self.row}_k)").body[0]
            assert isinstance(made, ast.For)
            made.body += node.body
            node = made
        self.generic_visit(node)
        return node


def row_function_unit(expr: Apply, source: Source) -> Unit:
    """A function of a row, of which it asks for cells and for all values, and of numbers, as a unit."""
    tree = _source_of(expr, source)
    made = tree.body[0]
    assert isinstance(made, ast.FunctionDef)
    row = made.args.args[0].arg
    _Rows(row).visit(tree)
    parts = [ast.arg(f"{row}_{part}", None) for part in ("at", "base", "size")]
    made.args.args = [*parts, *(ast.arg(arg.arg, None) for arg in made.args.args[1:])]
    return _unit_of(ast.fix_missing_locations(tree), expr, source)


def _source_of(expr: Apply, source: Source) -> ast.Module:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(expr.fn))) if expr.fn is not None else None
    except (OSError, TypeError, SyntaxError):
        tree = None
    if tree is None or not isinstance(tree.body[0], ast.FunctionDef):
        raise SpecError(f"there is no compiled form of {expr.name}", source)
    return tree


def function_unit(expr: Apply, source: Source) -> Unit:
    """A function of numbers as a unit. Refused is what the subset of `machine` does not have, or has many products."""
    return _unit_of(_source_of(expr, source), expr, source)


def _unit_of(tree: ast.Module, expr: Apply, source: Source) -> Unit:
    function = tree.body[0]
    assert isinstance(function, ast.FunctionDef)
    if any(isinstance(n, ast.Call) and not isinstance(n.func, ast.Name) for n in ast.walk(tree)):
        raise SpecError(f"there is no compiled form of {expr.name}: it calls a method", source)
    grows = [n for n in ast.walk(tree) if isinstance(n, (ast.Mult, ast.Pow, ast.LShift))]
    if len(grows) > PRODUCTS_MAX or any(not isinstance(n, ast.Mult) for n in grows):
        raise SpecError(f"there is no compiled form of {expr.name}: its values may not fit a word", source)
    function.name = NAME.strip("@")
    made = unit(f"function {expr.name}", ast.unparse(tree).replace(f"def {NAME.strip('@')}(", f"def {NAME}("))
    try:
        Translator(made.symbol, made.source).translate()
    except MachineError as error:
        raise SpecError(f"there is no compiled form of {expr.name}: {error}", source) from error
    return made
