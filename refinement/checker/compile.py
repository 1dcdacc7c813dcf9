"""Compile the mapping table and a specification into one Python function per event.

`e_<event>(C, S, row)` takes the event's lines in order on the store `S`; it raises `Reject` at the first that does
not hold and `Missing` where a column is needed that the trace does not show. `C` is the run's bookkeeping
(`state.RunState`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from viewproof.refinement.checker.expressions import columns_of, names_of, translate
from viewproof.refinement.checker.state import Missing, Reject, RunState, first_clear
from viewproof.refinement.mapping import (
    MESSAGE_FIELDS,
    MORE,
    OBSERVED,
    OBSERVED_MORE,
    Agrees,
    Check,
    Configured,
    Each,
    Holds,
    InJournal,
    Journaled,
    Line,
    Log,
    Named,
    Received,
    Rule,
    Step,
    observed_for,
    rules_for,
)
from viewproof.refinement.mapping.partitions import PARTITIONS, reader
from viewproof.refinement.schema import INDEX
from viewproof.spec.engines.replay import Replay, compile_spec
from viewproof.spec.engines.replay.reference import by_interp
from viewproof.spec.lang.schema import Var
from viewproof.spec.vsr import Config, unbounded
from viewproof.spec.vsr.faults import alternatives
from viewproof.spec.vsr.parts import parts_of
from viewproof.spec.vsr.parts.clients.table import Outcome
from viewproof.spec.vsr.parts.partitions.state import Asked

Handler = Callable[[RunState, Any, tuple[Any, ...]], None]

FIRST_OBSERVED = INDEX[OBSERVED[0][0]]
COLUMNS_MORE = tuple(dict.fromkeys(column for column, _, _ in OBSERVED_MORE))
_TAKEN = re.compile(r"spec\.(\w+)\[node\] \+ 1")
"""The first op of a range, where one variable says up to which op steps are taken already."""
END_OBSERVED = FIRST_OBSERVED + len(OBSERVED)
END_MORE = END_OBSERVED + len(COLUMNS_MORE)


@dataclass(frozen=True)
class Program:
    """A compiled audit: the replay of the specification, a handler per event, and the source of the handlers.

    The handlers are for events of which all is shown; `rules` and `observed` are what they are made of. `by_action`
    names the permitted deviations that may stand in for an action; `deviations[event]` those that do other things than
    the action (action, stand-in), to be tried where an event is refused although the action was enabled.
    """

    replay: Replay
    handlers: Mapping[str, Handler]
    source: str
    rules: Mapping[str, Rule]
    observed: tuple[tuple[str, str], ...]
    by_action: Mapping[str, tuple[str, ...]]
    deviations: Mapping[str, tuple[tuple[str, str], ...]]


@lru_cache(maxsize=32)
def compile_program(cfg: Config, allow: tuple[str, ...], engine: str = "replay", *, more: bool = False) -> Program:
    """Compile the audit for one configuration; `allow` names permitted deviations, `more` tells of a run that shows
    the columns of `OBSERVED_MORE`.

    `engine` "interp" lets the reference interpreter take every step: slow, and the judge of the compiled replay.
    Raises `SpecError` for an unknown deviation or one that the audit cannot permit, by name.
    """
    spec = unbounded(cfg)
    options = parts_of(cfg) | ({MORE} if more else set()) | ({"slots"} if cfg.client_table.slots else set())
    rules, observed = rules_for(options), observed_for(options)
    extra = alternatives(allow)
    replay = compile_spec(extra.added_to(spec))
    if engine == "interp":
        replay = by_interp(replay)
    source = "\n\n".join(_RuleText(rule, replay, observed).source() for rule in rules)
    scope: dict[str, Any] = {f"a_{name}": function for name, function in replay.functions.items()}
    labels = tuple(spec.schema.vars["status"].values.labels)
    scope |= {
        "Reject": Reject,
        "Missing": Missing,
        "first_clear": first_clear,
        "replica_count": cfg.replicas,
        "STATUS": labels,
    }
    scope |= {
        "q_r": cfg.quorum_replication,
        "q_v": cfg.quorum_view_change,
        "outcome": Outcome.labels.index,
        "mask": mask,
    }
    scope |= {"partition_count": PARTITIONS, "reader": reader, "operation": Asked.labels.__getitem__}
    exec(compile(source, "<audit>", "exec"), scope)
    handlers = {rule.event: scope[f"e_{rule.event}"] for rule in rules}
    return Program(
        replay,
        handlers,
        source,
        {rule.event: rule for rule in rules},
        observed,
        extra.by_action,
        _deviations(rules, replay, extra.by_action),
    )


def mask(row: Mapping[int, int]) -> int:
    """Bit f-1 for each f whose cell is not 0."""
    return sum(1 << f - 1 for f, value in row.items() if value)


def _deviations(
    rules: tuple[Rule, ...], replay: Replay, by_action: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """By event: (action, stand-in) for stand-ins that do other things than the action does."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for action, stand_ins in by_action.items():
        for stand_in in stand_ins:
            if _effects(replay, action) == _effects(replay, stand_in):
                continue
            for rule in rules:
                if any(isinstance(line, Step) and line.action == action for line in rule.lines):
                    found[rule.event] = (*found.get(rule.event, ()), (action, stand_in))
    return found


def _effects(replay: Replay, action: str) -> list[tuple[Any, ...]]:
    updates = replay.spec.ir(action).updates
    return [(u.var.name, *(i.key() for i in u.index), u.value.key()) for u in updates]


class _RuleText:
    """Writes the handler of one event."""

    def __init__(self, rule: Rule, replay: Replay, observed: tuple[tuple[str, str], ...]) -> None:
        self.rule = rule
        self.replay = replay
        self.observed = observed
        self.layout = replay.layout
        self.out: list[str] = []
        self.indent = 1
        self.certain: set[str] = {"node", "seq"}

    def put(self, text: str) -> None:
        self.out.append("    " * self.indent + text)

    def expr(self, text: str) -> str:
        return translate(text, self.layout)

    def source(self) -> str:
        rule = self.rule
        for name in self._columns():
            self.put(f"{name} = row[{INDEX[name]}]")
        if rule.receives:
            self._match_sent(rule.receives)
        for number, line in enumerate(rule.lines):
            self._line(number, line)
        self._observe()
        if rule.sends:
            fields = ", ".join(MESSAGE_FIELDS[rule.sends])
            self.put(f"C.sent[node][seq] = ({rule.sends!r}, {fields},)")
        return f"def e_{rule.event}(C, S, row):\n" + "\n".join(self.out)

    def _columns(self) -> list[str]:
        texts: list[str] = ["node", "seq"]
        for line in self.rule.lines:
            texts += _texts_of(line)
        names = {name for text in texts for name in columns_of(text)}
        for kind in filter(None, (self.rule.sends, self.rule.receives.partition("|")[0])):
            names |= set(MESSAGE_FIELDS[kind])
        if self.rule.receives:
            names |= {"m_from", "m_seq"}
        return sorted(names, key=lambda name: INDEX[name])

    def _match_sent(self, kind: str) -> None:
        """Compare with the event that sent the message, and fill columns that this event does not show.

        `kind` may name several kinds, with "|": then the columns of the first are compared.
        """
        kinds = tuple(kind.split("|"))
        self.put("if m_from is not None and m_seq is not None:")
        self.indent += 1
        self.put("sent = C.sent[m_from].get(m_seq) if m_from < replica_count else None")
        self.put(f"if sent is None or sent[0] not in {kinds!r}: raise C.never_sent({kind!r}, m_from, m_seq)")
        for position, name in enumerate(MESSAGE_FIELDS[kinds[0]], 1):
            self.put(f"if {name} is None: {name} = sent[{position}]")
            self.put(f"elif {name} != sent[{position}] is not None:")
            self.put(f"    raise C.altered({name!r}, sent[{position}], {name}, m_from, m_seq)")
        self.indent -= 1

    def _need(self, *texts: str) -> None:
        for name in dict.fromkeys(n for text in texts for n in columns_of(text)):
            if name not in self.certain:
                self.put(f"if {name} is None: raise Missing({name!r})")
                if self.indent == 1:
                    self.certain.add(name)

    def _line(self, number: int, line: Line) -> None:
        match line:
            case Check():
                self._check(line)
            case Holds():
                self._holds(line)
            case Configured():
                self.put(
                    f"if {line.column} != C.configured[{line.column!r}]: C.configure({line.column!r}, {line.column})"
                )
            case Received():
                self._received(line)
            case Step():
                self._step(number, line)
            case Named():
                self._named(line)
            case Log():
                self._log(line)
            case Agrees():
                self._agrees(line)
            case Journaled():
                self._journaled(line)
            case InJournal():
                self._in_journal(line)

    def _check(self, line: Check) -> None:
        self._open(line.only_if, None)
        if not (line.when.startswith("-") or line.column == "m_type"):
            self._need(line.column)
        self.put(f"if {line.column} is not None:")
        self.indent += 1
        self._need(line.expected)
        self.put(f"expected = {self.expr(line.expected)}")
        arguments = f"{line.column!r}, expected, {line.column}, {line.rule!r}"
        self.put(f"if {line.column} != expected: raise C.differs({arguments})")
        self.indent -= 1
        self._close(line.only_if, None)

    def _holds(self, line: Holds) -> None:
        self._open(line.only_if, None)
        self._need(*(n for n in columns_of(line.cond) if "is None" not in line.cond))
        arguments = f"{line.column!r}, {line.message!r}, {line.rule!r}"
        self.put(f"if not ({self.expr(line.cond)}): raise C.broken({arguments})")
        self._close(line.only_if, None)

    def _named(self, line: Named) -> None:
        self._need(line.checksum, line.entry, line.op)
        entry, op = self.expr(line.entry), self.expr(line.op)
        self.put(f"entry = {entry}")
        self.put(
            f"if C.labels.get((entry, {op})) != {line.checksum}: "
            f"C.name({line.checksum!r}, {line.checksum}, entry, {op})"
        )

    def _log(self, line: Log) -> None:
        self._need(line.column, line.top)
        self.put(f"top = {self.expr(line.top)}")
        self.put(f"if len({line.column}) > top: raise C.broken({line.column!r}, 'the log has more entries than ops')")
        self.put(f"for o, checksum in enumerate({line.column}, top - len({line.column}) + 1):")
        self.put(f"    entry = {self.expr(line.entry)}")
        self.put(f"    if C.labels.get((entry, o)) != checksum: C.name({line.column!r}, checksum, entry, o)")

    def _agrees(self, line: Agrees) -> None:
        self._open(line.only_if, None)
        self.put(f"if {line.column} is None: C.unseen[node].setdefault({line.column!r}, seq)")
        self.put("else:")
        self.indent += 1
        self._need(line.op)
        self.put(f"C.unseen[node].pop({line.column!r}, None)")
        self.put(f"agreed = C.agreed.setdefault(({line.column!r}, {self.expr(line.op)}), {line.column})")
        self.put(
            f"if agreed != {line.column}: raise C.disagrees({line.rule!r}, {line.column!r}, agreed, {line.column})"
        )
        self.indent -= 1
        self._close(line.only_if, None)

    def _journaled(self, line: Journaled) -> None:
        if line.checksum:
            self._need(line.checksum, line.op)
            self.put(f"C.journal_body(node, {line.checksum}, {self.expr(line.op)})")
            return
        if line.afresh:
            self.put("C.journaled[node].clear()")
        self._open("", line.each)
        self.put(f"C.journaled[node].add(({self.expr(line.entry)}, o))")
        self._close("", line.each)

    def _in_journal(self, line: InJournal) -> None:
        self._open("", line.each)
        self.put(f"entry = {self.expr(line.entry)}")
        self.put("if (entry, o) not in C.journaled[node]: raise C.not_in_journal(entry, o)")
        self._close("", line.each)

    def _open(self, only_if: str, each: Each | None) -> None:
        """A condition that names the variable of the range is asked for each of its values, another one before."""
        inside = each is not None and each[0] in names_of(only_if)
        if only_if:
            self._need(only_if)
        if only_if and not inside:
            self.put(f"if {self.expr(only_if)}:")
            self.indent += 1
        if each:
            name, lo, hi = each
            self._need(lo, hi)
            self.put(f"for {name} in range({self.expr(lo)}, {self.expr(hi)} + 1):")
            self.indent += 1
        if inside:
            self.put(f"if {self.expr(only_if)}:")
            self.indent += 1

    def _close(self, only_if: str, each: Each | None) -> None:
        self.indent -= bool(only_if) + bool(each)

    def _received(self, line: Received) -> None:
        var = self.replay.spec.schema.vars[line.var]
        self._open(line.only_if, line.each)
        self._need(*line.index)
        index = [self.expr(i) for i in line.index]
        key = self.layout.key(index)
        if var.kind == "watermark":
            self._watermark(var, key, line)
        else:
            self.put(f"value = S.v_{var.name}.get({key}, {var.init})")
            if line.value:
                self._need(line.value)
                self.put(f"if {line.value} != value: raise C.unsent({var.name!r}, {key}, {line.value}, value)")
            if line.some:
                self.put(f"if not value: raise C.unsent({var.name!r}, {key}, None, value)")
            self.put(f"S.in_{var.name}[node][{key}] = value")
        self._close(line.only_if, line.each)

    def _watermark(self, var: Var, key: str, line: Received) -> None:
        self._need(line.value)
        value = self.expr(line.value)
        self.put(f"limit = S.v_{var.name}.get({key}, {var.init})")
        self.put(f"if {value} > limit: raise C.unsent({var.name!r}, {key}, {value}, limit)")
        self.put(f"inbox = S.in_{var.name}[node]")
        self.put(f"if {value} > inbox.get({key}, {var.init}): inbox[{key}] = {value}")

    def _step(self, number: int, line: Step) -> None:
        if line.each:
            name, lo, hi = line.each
            self._need(lo, hi)
            self.put(f"first = {self.expr(lo)}")
            taken = _TAKEN.fullmatch(lo)
            pairs = ", ".join(f"{n!r}: {self.expr(hi if t == name else t)}" for n, t in line.args.items())
            asked = f"{line.action!r}, {taken[1] if taken else ''!r}, {{{pairs}}}"
            self.put(f"if first > {self.expr(hi)}: raise C.nothing({asked}, first, {self.expr(hi)})")
        only_if = f"({line.only_if}) and not ({line.unless})" if line.unless else line.only_if
        self._open(only_if, line.each)
        names = [p.name for p in self.replay.spec.action(line.action).params]
        tried = next((n for n in names if line.args[n].endswith("?")), None)
        self._need(*(t for t in line.args.values() if not t.endswith("?")))
        args = {n: self.expr(t) if not t.endswith("?") else t for n, t in line.args.items()}
        if tried is None:
            self._take(line.action, [args[n] for n in names])
            if line.journals:
                self.put(f"C.journaled[node].add(({self.expr(line.journals)}, o))")
        else:
            self._try_all(line, names, tried, args)
        self._close(only_if, line.each)

    def _try_all(self, line: Step, names: list[str], tried: str, args: Mapping[str, str]) -> None:
        action = line.action
        column = args[tried].rstrip("?")
        choices = f"range(replica_count) if {column} is None else ({column},)" if column else "range(replica_count)"
        others = ["x" if n == tried else args[n] for n in names]
        self.put("failed = 0")
        self.put(f"for x in {choices}:")
        if line.tried_if:
            self.put(f"    if not ({self.expr(line.tried_if)}): continue")
        self.put(f"    failed = a_{action}(S, {', '.join(others)})")
        self.put("    if failed < 0: break")
        pairs = ", ".join(f"{n!r}: {'x' if n == tried else args[n]}" for n in names)
        self.put(f"if failed >= 0: raise C.refused({action!r}, failed, {{{pairs}}})")
        self.put(f"C.coverage[{action!r}] += 1")

    def _take(self, action: str, values: list[str]) -> None:
        names = [p.name for p in self.replay.spec.action(action).params]
        pairs = ", ".join(f"{n!r}: {v}" for n, v in zip(names, values, strict=True))
        self.put(f"failed = a_{action}(S, {', '.join(values)})")
        self.put(f"if failed >= 0: raise C.refused({action!r}, failed, {{{pairs}}})")
        self.put(f"C.coverage[{action!r}] += 1")

    def _observe(self) -> None:
        """One comparison of all observations; anything that is not plainly equal goes to `C.observe`."""
        names = [name for name, _ in self.observed]
        head = self.expr("spec.entry[node, spec.op[node]]")
        commit_min = self.expr("spec.commit_min[node]")
        special = {
            "status": f"STATUS[{self.expr('spec.status[node]')}]",
            "head": f"C.labels.get(({head}, {self.expr('spec.op[node]')}), '')",
            "digest": f"C.digests.get({commit_min}, '')",
            "table": f"C.tables.get({commit_min}, '')",
        }
        values = [special.get(name) or self.expr(text) for name, text in self.observed]
        self.put(f"state = ({', '.join(values)},)")
        end = FIRST_OBSERVED + len(names)
        self.put(f"if row[{FIRST_OBSERVED}:{end}] != state or C.unseen[node]: C.observe(row, state, {head})")
        if end != END_MORE:
            self.put(f"if row[{END_OBSERVED}:{END_MORE}] != {(None,) * len(COLUMNS_MORE)}: C.not_expected(row)")


def _texts_of(line: Line) -> list[str]:
    match line:
        case Check():
            return [line.column, line.expected, *filter(None, (line.only_if,))]
        case Holds():
            return [line.cond, line.column, *filter(None, (line.only_if,))]
        case Configured():
            return [line.column]
        case Named():
            return [line.checksum, line.entry, line.op]
        case Log():
            return [line.column, line.top]
        case Agrees():
            return [line.column, line.op, *filter(None, (line.only_if,))]
        case Journaled():
            return [*filter(None, (line.checksum, line.op)), *line.each[1:]]
        case InJournal():
            return [*line.each[1:]]
        case Received():
            return [*line.index, *filter(None, (line.value, line.only_if)), *(line.each or ())[1:]]
        case Step():
            texts = [t.rstrip("?") for t in line.args.values()]
            return [*filter(None, texts), *filter(None, (line.only_if, line.tried_if)), *(line.each or ())[1:]]
