"""`vsr check`: all states of a bounded model of the specification."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from refinement.cli.models import bounded_model, model_options
from refinement.cli.output import PLAIN_SECONDS, json_option, note, save_json
from refinement.reports.table import write_json
from refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from spec.engines import explicit, interp
from spec.engines.explicit.replay import changes
from spec.engines.explicit.result import ActionCoverage, Change, Result, Step
from spec.lang import Spec
from spec.lang.concrete import State
from spec.lang.schema import Var
from spec.vsr.state import ENTRY

PROFILES = ("core",)
LIVE_SECONDS = 0.25
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
_folder = click.Path(path_type=Path, file_okay=False)


@click.command()
@model_options
@click.option("--profile", default="core", help="Options of the protocol; there is: core.", show_default=True)
@click.option("--workers", type=_count, help="Threads; they never change the result.  [default: the cores]")
@click.option("--max-states", type=_count, help="Stop, inconclusive, at this number of distinct states.")
@click.option("--memory", type=Size(), help="Memory for states; files take what is more.  [default: 60 % of the free]")
@click.option("--checkpoint", type=_folder, help="Save the search here on Ctrl-C, and every ten minutes.")
@click.option("--resume", type=_folder, help="Go on with the search saved in this directory.")
@click.option("--engine", type=click.Choice(["explicit", "interp"]), default="explicit", show_default=True)
@click.option("--itf", type=click.Path(path_type=Path, dir_okay=False), help="Write the counterexample as ITF.")
@json_option
def check(
    name: str,
    faults: tuple[str, ...],
    invariants: tuple[str, ...],
    profile: str,
    workers: int | None,
    max_states: int | None,
    memory: int | None,
    checkpoint: Path | None,
    resume: Path | None,
    engine: str,
    itf: Path | None,
    json_file: Path | None,
    replicas: int | None,
    **sizes: int | None,
) -> int:
    """Search every state of a bounded model, breadth first; a broken invariant is shown with the shortest behaviour.

    Sizes that are not given are the model's own, or, with one --fault, those in which it is found quickly. A search
    that Ctrl-C stops is saved to the directory of --checkpoint or --resume, and --resume goes on with it.
    """
    if profile not in PROFILES:
        raise click.UsageError(f"no profile {profile} in this version; there is: {', '.join(PROFILES)}")
    spec, text = bounded_model(name, replicas, faults, sizes)
    note(f"{name}: {text}")
    if engine == "interp":
        result = _interpreted(spec, invariants, max_states)
    else:
        with _progress() as line:
            result = explicit.explore(
                spec,
                max_states=max_states,
                max_memory_bytes=memory,
                invariants=invariants or None,
                progress=line,
                notify=note,
                workers=workers,
                checkpoint=checkpoint,
                resume=resume,
            )
    code = EXIT_CODES[result.verdict]
    _print(spec, result)
    if itf is not None and result.verdict == "violated":
        write_json(explicit.to_itf(spec, result), itf)
    answer = {"format": "viewproof.check/1", "exit_code": code, "engine": engine, "faults": list(faults), "sizes": text}
    save_json({**answer, "profile": profile, **result.to_json()}, json_file)
    return code


@contextmanager
def _progress() -> Iterator[Callable[[explicit.Progress], None]]:
    """Where the search stands, on stderr: one line that is kept up to date on a terminal, a line now and then else."""
    shown = time.monotonic()
    if not sys.stderr.isatty():

        def plain(now: explicit.Progress) -> None:
            nonlocal shown
            if time.monotonic() - shown >= PLAIN_SECONDS:
                shown = time.monotonic()
                note(_standing(now))

        yield plain
        return
    with Console(stderr=True).status("searching …") as status:

        def live(now: explicit.Progress) -> None:
            nonlocal shown
            if time.monotonic() - shown >= LIVE_SECONDS:
                shown = time.monotonic()
                status.update(_standing(now))

        yield live


def _standing(now: explicit.Progress) -> str:
    return (
        f"depth {now.level}: {now.distinct:,} distinct, {now.generated:,} generated, {now.queue:,} waiting, "
        f"{now.states_per_second:,.0f} states/s, {now.seconds:.0f} s"
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
        f"{result.workers} threads, {result.memory_bytes / 1e6:,.0f} MB; a state missed by equal fingerprints: p < "
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
