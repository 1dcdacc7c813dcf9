"""Event functions of logs whose lines are owed (`Profile.whole`): rows lie one after the other, `C` is the event's.

What a node owes lies in frames: the number of the set of events of which one must come next, and the values for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from viewproof.refinement.checker.columns import columns_of, expressions
from viewproof.refinement.events.lines import Agrees, Freed, Let, Line, Observation, Owes, Rule
from viewproof.refinement.events.system import System
from viewproof.refinement.events.terms import Apply, Text
from viewproof.refinement.flat.emit import EventText
from viewproof.refinement.flat.terms import NULL, NUMBER, Asks, Books, EventLower
from viewproof.spec.engines.flat.layout import HEADER, FlatLayout
from viewproof.spec.engines.flat.lower import FAILED, anything
from viewproof.spec.engines.llvm.lower import Term
from viewproof.spec.engines.llvm.objects import Unit
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Param, walk


class Frames:
    """The sets of events that lines owe, by number, and how many words a frame has; where they lie."""

    def __init__(self, layout: FlatLayout, rules: Iterable[Rule]) -> None:
        owes = [line for rule in rules for line in rule.lines if isinstance(line, Owes)]
        self.numbers = {events: n for n, events in enumerate(dict.fromkeys(line.events for line in owes))}
        values = max((len(line.values) for line in owes), default=0)
        self.width = max(HEADER, values) + 1  # elements as large as headers are headers
        layout.words_at("due_count", layout.members)
        layout.table("due", (layout.actors, NUMBER))
        layout.table("owing", (NUMBER,))
        layout.table("uses", (NUMBER,))
        layout.words_at("used", 1)


def texts_of(rules: Iterable[Rule]) -> list[str]:
    """All texts that rules name."""
    found = {""}
    for expr in (n for rule in rules for line in rule.lines for e in expressions(line) for n in walk(e)):
        if isinstance(expr, Text):
            found.add(expr.value)
        elif isinstance(expr, Apply) and isinstance(labels := getattr(expr.fn, "__self__", None), tuple):
            found |= set(labels)
    return sorted(found)


class LineText(EventText):
    """Writes the function of one event of such a log; `stand_ins` are numbered by the names of actions, in order."""

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
        asks: Asks,
        frames: Frames,
        stand_ins: Mapping[str, Sequence[str]],
    ) -> None:
        self.frames, self.stand_ins, self.asks = frames, stand_ins, asks
        super().__init__(system, rule, layout, books, observed, actions, params, codes)

    def lowering(self, codes: Mapping[str, int]) -> EventLower:
        return EventLower(self.layout, self.system, self.rule, codes, self.asks)

    def _load(self, name: str) -> None:
        self.out.line(f"c_{name} = load(C + {8 * self.system.index[name]})")

    def _begin(self) -> None:
        """Take what led to this line, if the node owes any."""
        out, rule = self.out, self.rule
        names = columns_of(e for line in rule.lines for e in expressions(line))
        if not rule.aside or "node" in names:
            out.leave("c_node < 0", "it is a line of no node")
        if rule.aside:
            return
        out.line(f"frame = owed(M, c_node, {self.frames.width})")
        fitting = [number for events, number in self.frames.numbers.items() if rule.event in events]
        with out.block("if frame != 0:"):
            other = " and ".join(f"load(frame) != {number}" for number in fitting) or "True"
            out.leave(other, "another line had to come")
        if rule.taken is not None and rule.taken.must:
            out.leave("frame == 0", "nothing before leads to it")
        if rule.taken is not None:
            taken = (rule.taken.was, *rule.taken.names)
            for place, name in enumerate(taken):
                out.line(f"t_{place} = 0")
                out.env = {**out.env, name.name: anything(f"t_{place}") if place else Term("t_0", 0, 1)}
            with out.block("if frame != 0:"):
                out.line("t_0 = 1")
                for place in range(1, len(taken)):
                    out.line(f"t_{place} = load(frame + {8 * place})")
        out.line("owing = 0")

    def _end(self) -> None:
        if any(isinstance(line, Owes) for line in self.rule.lines):
            self.out.leave(f"owe(M, c_node, owing, {self.frames.width}) != 0", "memory")

    def _other(self, line: Line) -> None:
        out = self.out
        match line:
            case Let():
                self._need(line.value)
                term = out.lower(line.value)
                named = out.known(out.word(term, line.value.is_bool), term.lo, term.hi)
                out.env = {**out.env, line.name.name: named}
            case Owes() if not self.rule.aside:
                self._need(*line.values)
                values = [str(self.frames.numbers[line.events]), *self._words(line)]
                out.line(f"at = make(M, M + external('o_owing'), owing, {self.frames.width}, 0)")
                out.leave("at == 0", "memory")
                for place, value in enumerate(values):
                    out.line(f"store(at + {8 * place}, {value})")
                out.line("owing = owing + 1")
            case Freed():
                node = "c_node"
                if line.by is not None:
                    self._need(line.by)
                    (node,) = self._values(line.by)
                    out.leave(f"{node} < 0 or {node} >= external('o_count')", "a node that is none")
                out.line(f"store(M + external('o_due_count') + 8 * {node}, 0)")
            case _:
                super()._other(line)

    def _words(self, line: Owes) -> list[str]:
        if any(value.is_bool for value in line.values):
            raise SpecError("a truth value is handed on", line.source)
        return self._values(*line.values)

    def _agrees(self, line: Agrees) -> None:
        with self.out.block(f"if c_{line.column} != {NULL}:"):
            super()._agrees(line)

    def _stand_ins(self, action: str, args: Sequence[str], failed: str) -> None:
        out = self.out
        for name in self.stand_ins.get(action, ()):
            number = [n for some in self.stand_ins.values() for n in some].index(name)
            with out.block(f"if {failed} >= 0:"):
                out.leave(f"{failed} == {FAILED}", f"{action} cannot be said")
                other = out.known(f"{self.actions[name].symbol}({', '.join(['M', *args])})", 0, 0).text
                out.leave(f"{other} == {FAILED}", f"{name} cannot be said")
                with out.block(f"if {other} < 0:"):
                    out.leave(f"used(M, {number}, c_node, c_seq) != 0", "memory")
                    out.line(f"{failed} = {other}")
