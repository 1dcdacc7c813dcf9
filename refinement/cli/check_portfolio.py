"""`vsr check MODEL` without a size: the model's shapes, what they covered, and with --exhaust ever larger ones."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import click

from viewproof.refinement.cli.output import note
from viewproof.refinement.cli.searching import progress_line
from viewproof.refinement.reports.text import number
from viewproof.spec.engines.portfolio import Covered, Outcome, Shape, cover, digest_of_predicates, digest_of_steps
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.mutants import recorded
from viewproof.spec.protocols import portfolio_of, protocol_of_model, shapes_of
from viewproof.spec.sizes import Size

MEMORY_BYTES = 2 * 10**9
"""Memory for the states of one shape, where no other bound is given."""
BESIDE = "of memory for states, besides about 0.3 GB of the program itself"
"""What a bound of memory is about."""


@dataclass(frozen=True)
class Wanted:
    """What is asked: the model with its profile, some of its invariants (none: all), and how to search."""

    name: str
    profile: str
    invariants: tuple[str, ...]
    workers: int | None
    memory: int | None
    exhaust: bool
    minutes: float | None
    fresh: bool


def shapes(wanted: Wanted) -> list[Shape]:
    """The shapes of the model, with the invariants that are wanted."""
    return [_shape(wanted, size) for size in shapes_of(wanted.name)]


def _shape(wanted: Wanted, size: Size) -> Shape:
    build = protocol_of_model(wanted.name).build
    spec = build(wanted.name, replicas=size.replicas, bounds=size.bounds, profile=wanted.profile)
    if wanted.invariants:
        kept = tuple(p for p in spec.invariants if p.id in wanted.invariants)
        if unknown := sorted(set(wanted.invariants) - {p.id for p in kept}):
            known = ", ".join(p.id for p in spec.invariants)
            raise SpecError(f"no invariant {', '.join(unknown)}; there are: {known}")
        spec = replace(spec, invariants=kept)
    return Shape(size.name, spec, size.max_states)


def search_portfolio(wanted: Wanted, first: list[Shape]) -> tuple[Spec, Covered]:
    """Search the shapes, and with --exhaust go on; the specification in which something broke, or the last one."""
    memory = wanted.memory or MEMORY_BYTES
    note(f"{wanted.name}: {number(len(first), 'shape')}, each in at most {memory / 1e9:.1f} GB {BESIDE}")
    every: Iterator[Shape] = iter(first)
    if wanted.exhaust:
        every = _and_larger(wanted, first)
    with progress_line() as line:
        covered = cover(
            every, workers=wanted.workers, max_memory_bytes=memory, fresh=wanted.fresh,
            end=lambda shape, outcome: note(f"  {shape.name}: {in_words(outcome)}"), progress=line, notify=note,
            unmet=portfolio_of(wanted.name).unmet,
        )  # fmt: skip
    return (covered.outcomes[-1][0].spec if covered.outcomes else first[0].spec), covered


def _and_larger(wanted: Wanted, first: list[Shape]) -> Iterator[Shape]:
    """The shapes, then those that were bounded to their end, then ever larger ones, until time ends."""
    ends = None if wanted.minutes is None else time.monotonic() + 60 * wanted.minutes
    yield from first
    seen: set[str] = set()
    sizes = [size.to_the_end() for size in shapes_of(wanted.name)]
    while sizes:
        sizes.sort(key=lambda size: size.volume)
        size = sizes.pop(0)
        if size.name in seen:
            continue
        seen.add(size.name)
        if ends is not None and time.monotonic() > ends:
            note(f"time ended before {size.name}; the same command goes on there")
            return
        yield _shape(wanted, size)
        sizes += size.larger()


def in_words(outcome: Outcome) -> str:
    """What a shape came to."""
    again = " (searched before)" if outcome.recalled else ""
    if outcome.verdict == "violated":
        return f"{outcome.broken} violated after {number(outcome.steps, 'step')}{again}"
    if outcome.verdict == "range":
        return f"a step leaves its range after {number(outcome.steps, 'step')}{again}"
    if outcome.verdict == "inconclusive":
        return f"inconclusive: {outcome.broken}"
    if outcome.verdict == "bounded":
        return f"{outcome.distinct:,} states, all of up to {number(outcome.depth_complete, 'step')}{again}"
    return f"all {outcome.distinct:,} states, {number(outcome.depth, 'step')} deep{again}"


def mutants_covered(name: str, searched: list[Shape]) -> dict[str, Any]:
    """How many mutants the shapes notice, if the recorded table is about this very specification."""
    portfolio = portfolio_of(name)
    table = recorded(portfolio.table)
    if table is None:
        return {"known": False, "text": f"no table of mutants is recorded for {name} (vsr mutate {name})"}
    own = [shape for shape in searched if shape.name in {s["name"] for s in table["shapes"]}]
    if table["digest"] != digest_of_steps(*(shape.spec for shape in own)):
        text = f"the specification was changed: vsr mutate {portfolio.table} says which places matter"
        return {"known": False, "text": text}
    killed = sum(1 for m in table["mutants"] if m["death"] is not None)
    reasons = sum(1 for m in table["mutants"] if m["death"] is None and m["reason"])
    total = len(table["mutants"])
    anew = table["predicates"] != digest_of_predicates(*(shape.spec for shape in own))
    open_ = total - killed - reasons
    what = "mutants of its own places" if portfolio.beside else "mutants"
    text = f"{killed} of {total} {what} are noticed in these shapes, {reasons} are explained (docs/mutants.md)"
    if portfolio.beside:
        text += f"; the others are those of {', '.join(portfolio.beside)}"
    return {
        "known": True,
        "mutants": total,
        "killed": killed,
        "explained": reasons,
        "open": open_,
        "text": text
        + (f"; {open_} are open" if open_ else "")
        + ("; its invariants were written anew since" if anew else ""),
    }


def _excused(excused: dict[str, str]) -> str:
    """Names under their reasons."""
    groups: dict[str, list[str]] = {}
    for name, why in excused.items():
        groups.setdefault(why, []).append(name)
    return "; ".join(f"{', '.join(names)} ({why})" for why, names in groups.items())


def show_covered(wanted: Wanted, covered: Covered) -> dict[str, Any]:
    """Print the verdict where nothing broke; what there is to say of it in the command's JSON."""
    mutants = mutants_covered(wanted.name, [shape for shape, _ in covered.outcomes])
    ended = sum(1 for _, outcome in covered.outcomes if outcome.verdict == "holds")
    bounded = sum(1 for _, outcome in covered.outcomes if outcome.verdict == "bounded")
    ids = list(dict.fromkeys(p.id for shape, _ in covered.outcomes for p in shape.spec.invariants))
    if covered.result is None:
        text = {"holds": f"holds: {', '.join(ids)}", "inconclusive": f"inconclusive: {covered.reason()}"}
        click.echo(text[covered.verdict])
        click.echo(
            f"in {number(ended, 'shape')} to the end" + (f", in {bounded} up to a bound of states" if bounded else "")
        )
        for shape, outcome in covered.outcomes:
            click.echo(f"  {shape.name}: {in_words(outcome)}")
        click.echo(mutants["text"])
        if covered.excused:
            click.echo(f"not met in these shapes: {_excused(covered.excused)}")
    return {
        "shapes": [
            {"name": shape.name, "verdict": o.verdict, "distinct": o.distinct, "generated": o.generated,
             "depth": o.depth, "depth_complete": o.depth_complete, "seconds": o.seconds, "recalled": o.recalled,
             "memory_bytes": o.memory_bytes}
            for shape, o in covered.outcomes
        ],
        "invariants": ids, "unwitnessed": covered.unwitnessed, "untaken": covered.untaken, "excused": covered.excused,
        "mutants": mutants,
        "verdict": covered.verdict, "reason": covered.reason(),
    }  # fmt: skip
