"""Printing updates: what an action makes of each variable that it writes."""

from __future__ import annotations

from collections.abc import Sequence

from viewproof.spec.engines.tla.expressions import COMPARISON, INLINE, Printer, hang, indented, less, over
from viewproof.spec.engines.tla.names import Scope
from viewproof.spec.lang.expr import Binder, Name, Update
from viewproof.spec.lang.schema import Var


def assignment(printer: Printer, var: Var, updates: Sequence[Update], scope: Scope, width: int) -> tuple[str, ...]:
    """`x' = …`, all updates of a variable merged; reads are of the state before. What does not fit beside the equals
    sign stands on lines of its own, indented by 2.
    """
    head = f"{var.name}' = "
    if not var.index:
        value = printer.show(updates[0].value, scope, less(width, len(head)), printer.enums.declared(var))
        return hang((head,), value.above(COMPARISON).lines)
    build = _constructor if any(u.binders for u in updates) else _except
    inline = build(printer, updates, scope, INLINE)
    if len(inline) == 1 and len(head) + len(inline[0]) <= width:
        return (head + inline[0],)
    first, *rest = build(printer, updates, scope, less(width, 2))
    return (head + first, *indented(tuple(rest)))


def _except(printer: Printer, updates: Sequence[Update], scope: Scope, width: int) -> tuple[str, ...]:
    """Single cells: `[x EXCEPT ![i] = …, ![j] = …]`."""
    labels = printer.enums.declared(updates[0].var)
    lines: list[str] = []
    for number, update in enumerate(updates, start=1):
        index = ", ".join(printer.line(i, scope).lines[0] for i in update.index)
        left = f"![{index}] = "
        end = "]" if number == len(updates) else ","
        value = printer.show(update.value, scope, less(width, len(left) + 1), labels).lines
        lines += hang((left,), (*value[:-1], value[-1] + end))
    head = f"[{updates[0].var.name} EXCEPT"
    return (f"{head} {' '.join(lines)}",) if width == INLINE else (head, *lines)


def _constructor(printer: Printer, updates: Sequence[Update], scope: Scope, width: int) -> tuple[str, ...]:
    """Ranges of cells: `[i \\in Sort |-> IF i is meant THEN … ELSE x[i]]`."""
    var = updates[0].var
    names, inner = index_names(var, scope, _labels(updates[0]))
    cases: list[tuple[str, tuple[str, ...]]] = []
    for update in updates:
        own = inner
        for position, name in zip(update.index, names, strict=True):
            if isinstance(position, Name) and _binder(update, position) is not None:
                own = own.alias(position.name, name)
        test = " /\\ ".join(_conditions(printer, update, names, own))
        value = printer.show(update.value, own, less(width, 6), printer.enums.declared(var)).lines
        cases.append((test, value))
    old = f"{var.name}[{', '.join(names)}]"
    lines = cases[0][1] if not cases[0][0] else _cases(cases, old, less(width, 1))
    head = f"[{over([(n, printer.sort(s)) for n, s in zip(names, var.index, strict=True)])} |->"
    return (f"{head} {lines[0]}]",) if width == INLINE else (head, *lines[:-1], f"{lines[-1]}]")


def _cases(cases: list[tuple[str, tuple[str, ...]]], old: str, room: int) -> tuple[str, ...]:
    if all(len(value) == 1 for _, value in cases):
        text = "".join(f"IF {test} THEN {value[0]} ELSE " for test, value in cases) + old
        if room == INLINE or len(text) <= room:
            return (text,)
    lines: list[str] = []
    for n, (test, value) in enumerate(cases):
        lines += [f"{'ELSE ' if n else ''}IF {test}", *hang(("THEN ",), value)]
    return (*lines, f"ELSE {old}")


def _binder(update: Update, position: Name) -> Binder | None:
    return next((b for b in update.binders if b.name.name == position.name), None)


def _labels(update: Update) -> list[str | None]:
    """Per position the update's own name for it, if it has one."""
    return [i.name if isinstance(i, Name) and _binder(update, i) is not None else None for i in update.index]


def _conditions(printer: Printer, update: Update, names: list[str], scope: Scope) -> list[str]:
    """When is a cell of these indices meant by the update?"""
    found: list[str] = []
    for position, name, sort in zip(update.index, names, update.var.index, strict=True):
        binder = _binder(update, position) if isinstance(position, Name) else None
        if binder is None:
            found.append(f"{name} = {printer.line(position, scope).lines[0]}")
            continue
        domain = printer.domain(binder, scope)
        if domain != sort.name:
            found.append(f"{name} \\in {domain}")
    return found


def index_names(var: Var, scope: Scope, labels: Sequence[str | None] = ()) -> tuple[list[str], Scope]:
    """Names for the indices of a variable: the given labels, else after the first letter of the sort."""
    names: list[str] = []
    for n, sort in enumerate(var.index):
        label = labels[n] if n < len(labels) else None
        name, scope = scope.fresh(label or sort.name[0].lower())
        names.append(name)
    return names, scope
