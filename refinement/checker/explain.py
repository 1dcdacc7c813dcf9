"""Turn a rejected event into a violation a reader can act on: place, expectation, state before, and why not."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from viewproof.refinement.checker.state import Reject, RunState
from viewproof.refinement.checker.story import columns_of_event, rule_in_words
from viewproof.refinement.checker.terms import TermEvaluator
from viewproof.refinement.events.lines import Holds
from viewproof.refinement.events.system import System
from viewproof.refinement.places import place_in
from viewproof.refinement.schema import FILE_INDEX, INDEX, LINE_INDEX, Row
from viewproof.refinement.value_text import show_value
from viewproof.refinement.verdict import Violation
from viewproof.spec.engines.guards import Evaluator, Refusal, Span, Words, guard_text, refusal
from viewproof.spec.engines.replay.cells import PartialCells
from viewproof.spec.lang.definitions import Action, Spec
from viewproof.spec.lang.errors import SpecError
from viewproof.spec.lang.expr import Expr, Read, walk

LEAVES_MAX = 40
NEAREST_MAX = 4


def explain(run_id: str, spec: Spec, before: PartialCells, state: RunState, row: Row, reject: Reject) -> Violation:
    """The violation for a rejected event, over the cells before the step that was refused."""
    node, event = row[INDEX["node"]], row[INDEX["event"]]
    action = event
    why: list[str] = []
    expected, observed = _text(reject.expected), _text(reject.observed)
    place = ""
    if reject.own is not None:
        action, own = reject.own
        conjunct, _ = Evaluator(spec.instance, before).first_false(spec.ir(action), own)
        if conjunct is not None:
            why.append(_refusal(spec, before, action, conjunct, own).text())
    if reject.refused is not None:
        action, conjunct, args = reject.refused
        refused = _refusal(spec, before, action, conjunct, args)
        why.append(refused.text())
        expected, observed, place = refused.guard, ", ".join(refused.values), refused.place
    if reject.own or reject.refused:  # else a value is not what it must be: no action could have made it so
        others = _nearest(spec, before, state.system, row, [a for a in spec.actions if a.name != action])
        why += [text for _, number, text in others if number][:NEAREST_MAX]
    elif held := _condition(spec, state.system, event, reject):
        words = Words(spec.instance, before, show_value, partial(_evaluator, spec, before, state, row))
        decisive = words.because(held.cond, reject.lets)
        why.append(f"{guard_text(held.source)} is false ({', '.join(decisive)}) [{held.source}]")
        makers = sorted(_nearest(spec, before, state.system, row, _that_write(spec, held.cond)))
        why += [text for _, _, text in makers[:NEAREST_MAX]]
    return Violation(
        run_id=run_id,
        seq=row[INDEX["seq"]],
        file=row[FILE_INDEX],
        line=row[LINE_INDEX],
        node=node,
        action=action,
        rule_id=reject.rule,
        severity="error",
        message=f"{event} at node {node}: {reject.message}",
        expected=expected or reject.message,
        observed=observed or columns_of_event(row, state.system, state.observed),
        rule_fingerprint=hashlib.blake2b(f"{event}|{reject.rule}".encode(), digest_size=8).hexdigest(),
        prefix_length=state.events,
        state_before=dict(leaves(spec, before, node)),
        why_not=tuple(why),
        rule=rule_in_words(state.system, spec, reject.rule, event),
        mapped_at="" if reject.place is None else str(reject.place),
        place=place or place_in(spec, reject.rule, action),
    )


def _text(value: object) -> str:
    return "" if value == "" else str(value)


def _refusal(spec: Spec, cells: PartialCells, action: str, conjunct: int, args: Mapping[str, int]) -> Refusal:
    return refusal(spec, cells, action, conjunct, args, show_value)


def _condition(spec: Spec, system: System, event: str, reject: Reject) -> Holds | None:
    """The condition of the event function that was false, if it was one, and looked at no range."""
    lines = system.rule_for(spec, event).lines if event in system.by_event else ()
    return next(
        (one for one in lines if isinstance(one, Holds) and one.each is None and one.source == reject.place), None
    )


class _Reader(TermEvaluator):
    """Notes all that it reads, what is known too."""

    keeps_known = True


def _evaluator(spec: Spec, cells: PartialCells, state: RunState, row: Row) -> TermEvaluator:
    columns = dict(zip(state.system.names, row, strict=False))
    return _Reader(spec.instance, cells, spec.schema, state.system.by_name, columns, state.labels)


def _that_write(spec: Spec, cond: Expr) -> list[Action]:
    """The actions that write what a condition reads."""
    read = {node.var.name for node in walk(cond) if isinstance(node, Read)}
    return [action for action in spec.actions if read & spec.ir(action.name).writes()]


def _nearest(
    spec: Spec, cells: PartialCells, system: System, row: Row, candidates: Iterable[Action]
) -> list[tuple[int, int, str]]:
    """Actions of the same replica whose parameters the event suggests: of each how many guards are left from the first
    false one on, the number of that one, and it in words.
    """
    given: dict[str, Any] = {"r": row[INDEX["node"]]}
    for parameter, columns in system.profile.parameters.items():
        values = [row[system.index[name]] for name in columns]
        given[parameter] = next((value for value in values if value is not None), None)
    found: list[tuple[int, int, str]] = []
    for candidate in candidates:
        if candidate.actor is None:
            continue
        args = {p.name: given.get(p.name) for p in candidate.params}
        if any(value is None for value in args.values()):
            continue
        known = {name: int(value) for name, value in args.items() if value is not None}
        try:
            conjunct, _ = Evaluator(spec.instance, cells).first_false(spec.ir(candidate.name), known)
        except SpecError:
            continue
        if conjunct is not None:
            text = _refusal(spec, cells, candidate.name, conjunct, known).text()
            found.append((len(spec.ir(candidate.name).guards) - conjunct, conjunct, text))
    return found


def leaves(spec: Spec, cells: PartialCells, node: int) -> Iterator[tuple[str, str]]:
    """Cells of the acting replica that differ from the initial state; of its log, the last few ops."""
    op = cells.read(spec.schema.vars["op"], (node,)) if "op" in spec.schema.vars else 0
    recent = 0 if isinstance(op, Span) else op - 3
    count = 0
    for var in spec.schema.vars.values():
        if var.is_message or not var.index or var.index[0].name != cells.actors:
            continue
        for index, value in sorted(cells.known[var.name].items(), key=lambda cell: cell[0]):
            if index[0] == node and (len(index) == 1 or index[1] > recent) and count < LEAVES_MAX:
                count += 1
                shown = "not known" if isinstance(value, Span) else show_value(var, value)
                yield f"{var.name}[{', '.join(map(str, index))}]", shown
