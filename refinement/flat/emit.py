"""Event functions over flat memory, from their recorded rules: the twin of `checker.handlers` for complete evidence.

`f(M, C, row)` takes an event's lines in order; it returns 0 if all plainly holds, else the number of a place (`sites`):
something does not hold, or a column is not shown, or cannot be said here. `C` is the address of the columns' addresses,
in the order of a row; a column is a word for each row, `NULL` where it is not shown; a list of strings two, its first
and last + 1 element among the list's codes. What this compiler has no word for is refused by name (`SpecError`).
"""

from __future__ import annotations

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
    nested,
)
from viewproof.refinement.events.system import System
from viewproof.refinement.events.terms import Column, Shown
from viewproof.refinement.flat.terms import (
    NULL,
    Books,
    EventLower,
)
from viewproof.spec.engines.flat.layout import COUNT, FlatLayout, Place
from viewproof.spec.engines.flat.lower import anything
from viewproof.spec.engines.llvm.lower import Site, Term
from viewproof.spec.engines.llvm.objects import NAME, Unit, unit
from viewproof.spec.lang.errors import Source, SpecError
from viewproof.spec.lang.expr import Expr, Param, walk


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
        self.out = self.lowering(codes)
        self.certain: set[str] = {"node", "seq"}
        self._write()

    def lowering(self, codes: Mapping[str, int]) -> EventLower:
        """What lowers its expressions; texts that are written out have these codes."""
        return EventLower(self.layout, self.system, self.rule, codes)

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
            self._load(name)
        self._begin()
        if rule.receives:
            self._match_sent(rule.receives)
        self._lines()
        self._observe()
        if rule.sends:
            self._send(rule.sends)
        self._end()
        self.out.line("return 0")

    def _load(self, name: str) -> None:
        """The column under a name."""
        at = self.system.index[name]
        self.out.line(f"c_{name} = load(load(C + {8 * at}) + 8 * row)")
        if self.system.by_name[name].kind == "strings":
            width = len(self.system.table)
            self.out.line(f"end_{name} = load(load(C + {8 * (at + width)}) + 8 * row)")
            self.out.line(f"list_{name} = load(C + {8 * (at + 2 * width)})")

    def _begin(self) -> None:
        """What comes before the event's lines."""

    def _end(self) -> None:
        """What comes after all else."""

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
        outside = out.depth
        for line, shared, more in nested(self.rule.lines):
            out.source = line.source
            out.depth = outside + shared
            for one in more:
                self._open(one, line)
            out.line("pass")
            self._line(line)
        out.depth = outside
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
                self._agrees(line)
            case Journaled():
                self._journaled(line)
            case InJournal():
                assert line.each is not None
                o = out.env[line.each.name.name].text
                self._called("in_journal", "c_node", *self._values(line.entry), o)
            case _:
                self._other(line)

    def _other(self, line: Line) -> None:
        """A line of another kind."""
        raise SpecError(f"there is no compiled form of {type(line).__name__}", line.source)

    def _agrees(self, line: Agrees) -> None:
        self._need(Column(line.column), line.op)
        place = self.books.agreed[line.column]
        (op,) = self._values(line.op)
        self._called("agreed", _row(place), op, f"c_{line.column}")
        if line.distinct:
            self._called("agreed", _row(self.books.of_one[line.column]), f"c_{line.column}", op)

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
                self._stand_ins(line.action, args, failed)
                out.leave(f"{failed} >= 0", f"{line.action} is refused")
                self._count(line.action)
            if line.journals is not None and line.each is not None and line.how == "must":
                o = out.env[line.each.name.name].text
                self._called("journal", "c_node", *self._values(line.journals), o)
        out.depth = depth

    def _stand_ins(self, action: str, args: Sequence[str], failed: str) -> None:
        """What may be taken where the action was refused, as `failed` says then."""

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
