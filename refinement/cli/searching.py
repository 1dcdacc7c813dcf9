"""While a search runs, where it stands; and the same question to the reference interpreter."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace

import click
from rich.console import Console

from viewproof.refinement.cli.output import PLAIN_SECONDS, note
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import ActionCoverage, Result, Step
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State

LIVE_SECONDS = 0.25


@contextmanager
def progress_line() -> Iterator[Callable[[explicit.Progress], None]]:
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
    guess = "" if now.to_come is None else f", about {now.to_come:,} to come"
    return (
        f"depth {now.level}: {now.distinct:,} distinct, {now.generated:,} generated, {now.queue:,} waiting, "
        f"{now.states_per_second:,.0f} states/s, {now.seconds:.0f} s{guess}"
    )


def interpreted(spec: Spec, invariants: Iterable[str], max_states: int | None) -> Result:
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
