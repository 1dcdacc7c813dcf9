"""A proof that failed leads on: is there a real break, or is a lemma missing?

The invariants are searched from the initial state: the proof's own size, then the model's shapes, then rounds of the
bounded search in the proof's size. A break that is found is shown with its behaviour; if there is none, the proof lacks
a lemma as far as was searched, and the text says how far that is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from viewproof.refinement.cli.check_portfolio import MEMORY_BYTES, in_words
from viewproof.refinement.cli.check_text import show_result
from viewproof.refinement.cli.output import note
from viewproof.refinement.cli.own_model import is_own
from viewproof.refinement.cli.prove_text import print_found
from viewproof.refinement.cli.searching import progress_line
from viewproof.spec.engines.portfolio import Shape, cover
from viewproof.spec.engines.smt import chain
from viewproof.spec.lang import Spec, SpecError
from viewproof.spec.protocols import protocol_of_model, shapes_of

STATES_MAX = 4_000_000
"""States of each shape that are searched."""
ROUNDS = 2
ROUND_MS = 60_000


def lead_on(spec: Spec, inputs: dict[str, Any], workers: int) -> dict[str, Any]:
    """Search for a real break; what there is to say in the command's JSON (`break`: the invariant, or None)."""
    click.echo("\nThe proof does not go through: is there a real break?")
    with progress_line() as line:
        covered = cover(
            _shapes(spec, inputs), workers=workers, max_memory_bytes=MEMORY_BYTES, progress=line, notify=note,
            end=lambda shape, outcome: click.echo(f"  {shape.name}: {in_words(outcome)}"),
        )  # fmt: skip
    searched = [{"shape": s.name, "verdict": o.verdict, "states": o.distinct} for s, o in covered.outcomes]
    if covered.verdict == "violated" and covered.result is not None:
        click.echo("a real break:")
        show_result(covered.outcomes[-1][0].spec, covered.result)
        steps = [{"action": s.action, "args": s.args} for s in covered.result.behaviour]
        return {"break": covered.result.broken, "behaviour": steps, "searched": searched}
    found = chain.search(spec, ROUNDS, timeout_ms=ROUND_MS)
    if found.broken is not None:
        click.echo("a real break:")
        print_found(spec, found)
        steps = [{"action": s.action, "args": s.args} for s in found.steps]
        return {"break": found.broken, "behaviour": steps, "searched": searched}
    click.echo(f"  {ROUNDS} rounds of bounded search of this size: no break" + " (undecided)" * bool(found.unknown))
    first = covered.outcomes[0][1] if covered.outcomes else None
    if first is not None and first.verdict == "holds":
        click.echo(
            f"all {first.distinct:,} states of this size were searched, and the invariants hold in it.\n"
            "That is the answer for this size; only for its proof by induction a lemma is missing."
        )
    else:
        click.echo("no break was found: as far as that is searched, a lemma is missing.")
    click.echo(
        "The steps above start in states that satisfy all lemmas; a lemma that is true in every reachable state and\n"
        "false in these makes the proof go on"
        + (": viewproof.prove(spec, lemmas=[…]) in Python (docs/api.md)." if is_own(inputs["model"]) else ".")
    )
    return {"break": None, "behaviour": [], "searched": searched}


def _shapes(spec: Spec, inputs: dict[str, Any]) -> Iterator[Shape]:
    """The proof's own size, then the shapes of its model with its mistakes, where they show."""
    yield Shape("this size", spec, STATES_MAX)
    if is_own(inputs["model"]):
        return
    build = protocol_of_model(inputs["model"]).build
    for size in shapes_of(inputs["model"]):
        try:
            made = build(
                inputs["model"],
                replicas=size.replicas,
                bounds=size.bounds,
                faults=tuple(inputs["faults"]),
                profile="core",
            )
        except SpecError:
            continue  # a mistake that needs a crash says nothing of a shape without one
        yield Shape(size.name, made, STATES_MAX)
