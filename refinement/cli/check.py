"""`vsr check`: all states of a bounded model of the specification."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from refinement.cli.output import PLAIN_SECONDS, json_option, note, save_json
from refinement.reports.table import write_json
from refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from spec.engines import explicit, interp
from spec.engines.explicit.replay import changes
from spec.engines.explicit.result import ActionCoverage, Change, Result, Step
from spec.lang import Spec
from spec.lang.concrete import State
from spec.lang.schema import Var
from spec.vsr import FAULTS, MODELS, Bounds, model
from spec.vsr.fault_models import FAULT_MODELS
from spec.vsr.state import ENTRY

EXIT_CODES = {"holds": EXIT_CONFORMS, "violated": EXIT_VIOLATES, "inconclusive": EXIT_INCONCLUSIVE}
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


class Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of bytes: 500M, 4G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes of a text."""
        text = str(value).strip().upper().removesuffix("B")
        digits, unit = (text[:-1], text[-1]) if text and text[-1] in UNITS else (text, "")
        try:
            size = int(float(digits) * UNITS[unit])
        except (ValueError, OverflowError):
            self.fail(f"{value} is not a size such as 500M or 4G", param, ctx)
        if size <= 0:
            self.fail("must be above 0", param, ctx)
        return size


_count = click.IntRange(1)


@click.command()
@click.argument("name", metavar="MODEL", type=click.Choice(sorted(MODELS)))
@click.option("--replicas", type=_count, help="Replicas.  [default: 3]")
@click.option("--views", type=_count, help="Views 0 .. VIEWS-1.")
@click.option("--ops", type=_count, help="Ops 1 .. OPS.")
@click.option("--clients", type=_count, help="Clients.")
@click.option("--requests", type=_count, help="Requests of each client.")
@click.option("--restarts", type=click.IntRange(0), help="Crashes and restarts in all.")
@click.option("--fault", "faults", multiple=True, type=click.Choice(sorted(FAULTS)), help="Switch a mistake on.")
@click.option("--invariant", "invariants", multiple=True, help="Check only this invariant (I1 …); may be repeated.")
@click.option("--max-states", type=_count, help="Stop, inconclusive, at this number of distinct states.")
@click.option("--memory", type=Size(), help="Stop, inconclusive, at this much memory.  [default: 60 % of the free]")
@click.option("--engine", type=click.Choice(["explicit", "interp"]), default="explicit", show_default=True)
@click.option("--itf", type=click.Path(path_type=Path, dir_okay=False), help="Write the counterexample as ITF.")
@json_option
def check(
    name: str,
    faults: tuple[str, ...],
    invariants: tuple[str, ...],
    max_states: int | None,
    memory: int | None,
    engine: str,
    itf: Path | None,
    json_file: Path | None,
    replicas: int | None,
    **sizes: int | None,
) -> int:
    """Search every state of a bounded model, breadth first; a broken invariant is shown with the shortest behaviour.

    Sizes that are not given are the model's own, or, with one --fault, those in which it is found quickly.
    """
    spec, text = _model(name, replicas, faults, {k: v for k, v in sizes.items() if v is not None})
    note(f"{name}: {text}")
    if engine == "interp":
        result = _interpreted(spec, invariants, max_states)
    else:
        result = explicit.explore(
            spec,
            max_states=max_states,
            max_memory_bytes=memory,
            invariants=invariants or None,
            progress=_Line(),
            notify=note,
        )
    code = EXIT_CODES[result.verdict]
    _print(spec, result)
    if itf is not None and result.verdict == "violated":
        write_json(explicit.to_itf(spec, result), itf)
    answer = {"format": "viewproof.check/1", "exit_code": code, "engine": engine, "faults": list(faults), "sizes": text}
    save_json({**answer, **result.to_json()}, json_file)
    return code


def _model(name: str, replicas: int | None, faults: tuple[str, ...], sizes: dict[str, int]) -> tuple[Spec, str]:
    chosen = FAULT_MODELS.get(faults[0]) if len(faults) == 1 else None
    limits: Bounds = replace(chosen.bounds if chosen else MODELS[name], **sizes)
    count = replicas or (chosen.replicas if chosen else 3)
    spec = model(name, replicas=count, faults=faults, bounds=limits)
    text = ", ".join(f"{value} {key}" for key, value in {"replicas": count, **vars(limits)}.items())
    return spec, text + (f"; faults: {', '.join(faults)}" if faults else "")


class _Line:
    """Progress as a plain line now and then."""

    def __init__(self) -> None:
        self._printed = time.monotonic()

    def __call__(self, now: explicit.Progress) -> None:
        """Print where the search stands, if the last line is old enough."""
        if time.monotonic() - self._printed >= PLAIN_SECONDS:
            self._printed = time.monotonic()
            note(
                f"depth {now.level}: {now.distinct:,} distinct, {now.generated:,} generated, {now.queue:,} waiting, "
                f"{now.states_per_second:,.0f} states/s"
            )


def _interpreted(spec: Spec, invariants: Iterable[str], max_states: int | None) -> Result:
    """The same question to the reference interpreter (slow)."""
    wanted = set(invariants) or {p.id for p in spec.invariants}
    unknown = wanted - {p.id for p in spec.invariants}
    if unknown:
        raise click.UsageError(f"no invariant {', '.join(sorted(unknown))}")
    spec = replace(spec, invariants=tuple(p for p in spec.invariants if p.id in wanted))
    started = time.perf_counter()
    found = interp.explore(spec, max_states=max_states)
    verdict = "violated" if found.broken else "holds" if found.complete else "inconclusive"
    result = Result(spec.name, verdict, "" if found.complete else f"bound of {max_states} states reached")
    result.distinct, result.generated, result.depth = found.distinct, found.generated, found.depth
    result.seconds = time.perf_counter() - started
    result.broken, result.title = found.broken, next((p.title for p in spec.invariants if p.id == found.broken), "")
    result.witnessed = found.witnessed
    result.unwitnessed = {w.id: w.title for w in spec.witnesses if w.id not in found.witnessed}
    result.invariants = [p.id for p in spec.invariants]
    result.coverage = [ActionCoverage(a.name, a.source, found.per_action.get(a.name, 0)) for a in spec.action_irs]
    state = State.initial()
    for step in found.behaviour:
        source = spec.ir(step.action).source
        result.behaviour.append(Step(step.action, step.args, source, changes(spec, state, step.state), step.state))
        state = step.state
    return result


def _print(spec: Spec, result: Result) -> None:
    headline = {
        "holds": f"holds: {', '.join(result.invariants)}",
        "violated": f"violated: {result.broken} {result.title}, after {len(result.behaviour)} steps",
        "inconclusive": f"inconclusive: {result.reason}",
    }
    click.echo(headline[result.verdict])
    for number, step in enumerate(result.behaviour, start=1):
        args = ", ".join(f"{key}={value}" for key, value in step.args.items())
        click.echo(f"{number:3}. {step.action}({args})  [{step.source}]")
        for change in step.changes:
            click.echo(f"       {show_change(spec, change)}")
    click.echo(
        f"{result.distinct:,} distinct states, {result.generated:,} generated, depth {result.depth}, "
        f"{result.deadlocks:,} without a successor; {result.seconds:.1f} s, {result.states_per_second:,.0f} states/s, "
        f"{result.memory_bytes / 1e6:,.0f} MB; a state missed by equal fingerprints: p < "
        f"{result.collision_probability:.1e}"
    )
    _print_coverage(result)


def _print_coverage(result: Result) -> None:
    for action in result.coverage:
        never = "" if action.generated else "  NEVER ENABLED" + _stuck(action)
        click.echo(f"  {action.name:<24}{action.generated:>14,} steps {action.distinct:>12,} new states{never}")
    if result.verdict != "holds":
        if result.unwitnessed:
            click.echo(f"  witnesses not met before the search ended: {', '.join(result.unwitnessed)}")
        return
    for id, title in result.unwitnessed.items():
        what = f"{id} is vacuous in this model" if id in result.invariants else f"{id} is not reached"
        click.echo(f"  {what}: no state in which {title}")


def _stuck(action: ActionCoverage) -> str:
    """The last guard conjunct that an action never enabled came to."""
    return f": {action.guards[action.reached - 1][0]}" if action.reached else ""


def show_change(spec: Spec, change: Change) -> str:
    """`entry[r=1, …]: none → v0`: a changed cell, values as a reader wants to see them."""
    var = spec.schema.vars[change.var]
    index = f"[{', '.join(str(i) for i in change.index)}]" if change.index else ""
    return f"{change.var}{index}: {show_value(var, change.before)} → {show_value(var, change.after)}"


def show_value(var: Var, value: int) -> str:
    """Entries by the view that prepared them, the rest by their labels."""
    if var.values == ENTRY:
        return f"v{value - 1}" if value else "none"
    return var.values.show(value)
