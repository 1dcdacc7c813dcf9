"""How `vsr check` shows its results."""

from __future__ import annotations

import click

from viewproof.refinement.reports.text import number
from viewproof.refinement.value_text import show_value
from viewproof.spec.engines.explicit.reach import Answer
from viewproof.spec.engines.explicit.result import ActionCoverage, Change, Result, Step
from viewproof.spec.engines.story import broken
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State

__all__ = ["show_answer", "show_behaviour", "show_change", "show_result", "show_value"]

VALUES_SHOWN = 6
"""Cells that are shown of those by which an invariant fails."""


def show_result(spec: Spec, result: Result, *, coverage: bool = False, deadlock: bool = False) -> None:
    """Verdict, behaviour, counts and coverage; with `coverage` every guard conjunct, with `deadlock` the way to one."""
    lacks = unmet(result) if result.verdict == "holds" else ""
    headline = {
        "holds": f"holds: {', '.join(result.invariants)}" + (f"; but in this size {lacks}" if lacks else ""),
        "violated": f"violated: {result.broken} {result.title}, after {number(len(result.behaviour), 'step')}",
        "inconclusive": f"inconclusive: {result.reason}",
    }
    click.echo(headline[result.verdict])
    if result.verdict == "violated":
        _show_broken(spec, result)
    show_behaviour(spec, result.behaviour)
    missed = f"; a state missed by equal fingerprints: p < {result.collision_probability:.1e}"
    spilled = f", {result.spilled_bytes / 1e6:,.0f} MB to files" if result.spilled_bytes else ""
    click.echo(
        f"{result.distinct:,} distinct states, {result.generated:,} generated, depth {result.depth}, "
        f"{result.deadlocks:,} without a successor; {result.seconds:.1f} s, {result.states_per_second:,.0f} states/s, "
        f"{result.workers} threads, {result.memory_bytes / 1e6:,.0f} MB{spilled}{missed if result.distinct else ''}"
    )
    if result.symmetry:
        click.echo(f"  states that differ by names of {', '.join(result.symmetry)} only are counted once")
    if deadlock and result.deadlock:
        click.echo(f"a nearest state without a successor, after {number(len(result.deadlock), 'step')}:")
        show_behaviour(spec, result.deadlock)
    _show_coverage(result, coverage)
    table = getattr(spec.cfg, "client_table", None)
    if table is not None and table.forgets:
        click.echo(table.weakness)


def _show_broken(spec: Spec, result: Result) -> None:
    """What the invariant says, and for which members the last state breaks it."""
    if result.broken not in {p.id for p in spec.invariants}:
        return
    states = [State.initial(), *(step.state for step in result.behaviour)]
    ending = broken(spec, str(result.broken), states, show_value)
    click.echo(f"  {' '.join(ending.doc.split())}")
    if ending.values:
        members = ", ".join(f"{name}={value}" for name, value in ending.members)
        values = "; ".join(ending.values[:VALUES_SHOWN]) + ("; …" if len(ending.values) > VALUES_SHOWN else "")
        click.echo(f"  fails{' for ' if members else ''}{members}: {values}")


def unmet(result: Result) -> str:
    """What a search that ended never met, in words: actions never enabled, witnesses not reached; empty if nothing."""
    idle = [action.name for action in result.coverage if not action.generated]
    vacuous = [id for id in result.unwitnessed if id in result.invariants]
    what = ((idle, "never enabled"), (vacuous, "vacuous"))
    return "; ".join(f"{word}: {', '.join(names)}" for names, word in what if names)


def show_behaviour(spec: Spec, steps: list[Step]) -> None:
    """Each step with its arguments, its line, and the cells that it changed."""
    for place, step in enumerate(steps, start=1):
        args = ", ".join(f"{key}={value}" for key, value in step.args.items())
        click.echo(f"{place:3}. {step.action}({args})  [{step.source}]")
        for change in step.changes:
            click.echo(f"       {show_change(spec, change)}")


def show_answer(spec: Spec, answer: Answer) -> None:
    """What was found about a state that can always be reached."""
    goal, result = answer.goal, answer.result
    what = {
        "holds": f"from each of {answer.premises:,} states",
        "violated": f"out of reach from {answer.stuck:,} of {answer.premises:,} states, one after "
        f"{len(result.behaviour)} steps",
        "inconclusive": result.reason,
    }
    click.echo(f"can always reach, {goal.id} {goal.title}: {result.verdict}: {what[result.verdict]}")
    click.echo(f"  where {goal.premise.title}; {answer.good:,} states in which {goal.good.title}")
    show_behaviour(spec, result.behaviour)


def _show_coverage(result: Result, guards: bool) -> None:
    for action in result.coverage:
        never = "" if action.generated else "  NEVER ENABLED" + _stuck(action)
        click.echo(f"  {action.name:<24}{action.generated:>14,} steps {action.distinct:>12,} new states{never}")
        for n, (text, count) in enumerate(action.guards if guards else []):
            click.echo(f"    {count:>14,} {_judged(action, n):<14}{' '.join(text.split())[:90]}")
    if result.verdict != "holds":
        if result.unwitnessed:
            click.echo(f"  witnesses not met before the search ended: {', '.join(result.unwitnessed)}")
        return
    for id, title in result.unwitnessed.items():
        what = f"{id} is vacuous in this size" if id in result.invariants else f"{id} is not reached"
        click.echo(f"  {what}, as there is never this: {title}")


def _judged(action: ActionCoverage, number: int) -> str:
    """How a conjunct fared where those before it were true."""
    if number >= action.reached:
        return "never reached"
    if number == action.reached - 1 and not action.generated:
        return "never true"
    return "never false" if action.guards[number][1] == 0 else "times false"


def _stuck(action: ActionCoverage) -> str:
    """The last guard conjunct that an action never enabled came to."""
    return f": {action.guards[action.reached - 1][0]}" if action.reached else ""


def show_change(spec: Spec, change: Change) -> str:
    """`entry[r=1, …]: none → v0`: a changed cell, values as a reader wants to see them."""
    var = spec.schema.vars[change.var]
    index = f"[{', '.join(str(i) for i in change.index)}]" if change.index else ""
    return f"{change.var}{index}: {show_value(var, change.before)} → {show_value(var, change.after)}"
