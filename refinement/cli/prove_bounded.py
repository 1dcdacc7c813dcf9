"""`vsr prove --bmc` and `--cover`: bounded search, and how many rounds of it reach all states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from viewproof.refinement.cli.output import note, save_json, steps
from viewproof.refinement.cli.prove_text import print_found
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.engines import explicit
from viewproof.spec.engines.smt import chain
from viewproof.spec.lang import Spec, SpecError


def find_cover(spec: Spec, workers: int) -> explicit.Cover:
    """How many rounds of the bounded search reach all states; incomplete where the search for it did not end."""
    with steps("covering") as progress:
        try:
            return explicit.cover(
                spec,
                chain.round_order(spec),
                workers=workers,
                progress=lambda p: progress(p.distinct - p.queue, p.distinct, f"depth {p.level}"),
                notify=note,
            )
        except SpecError as problem:
            return explicit.Cover(0, reason=f"a step leaves a declared range: {problem}")


def cover_text(found: explicit.Cover) -> str:
    """What was found, in one line."""
    if not found.complete:
        return f"no number of rounds is known to reach all states: {found.reason}"
    counts = ", ".join(f"{n:,} in {rounds}" for rounds, n in enumerate(found.reached) if rounds)
    return f"{found.rounds} rounds cover all {found.states:,} states ({counts})"


def _cover_json(found: explicit.Cover) -> dict[str, Any]:
    return {
        "rounds": found.rounds if found.complete else None,
        "states": found.states,
        "steps": found.edges,
        "reached": found.reached,
        "reason": found.reason,
        "seconds": round(found.seconds, 3),
    }


def print_cover(found: explicit.Cover, inputs: dict[str, Any], json_file: Path | None) -> int:
    """Result of `--cover` by itself."""
    click.echo(f"{cover_text(found)}; {found.edges:,} steps, {found.seconds:.1f} s")
    code = EXIT_CONFORMS if found.complete else EXIT_INCONCLUSIVE
    answer = {"format": "viewproof.cover/1", "inputs": inputs, "exit_code": code, **_cover_json(found)}
    save_json(answer, json_file)
    return code


def search(
    spec: Spec, inputs: dict[str, Any], rounds: int, limit: int, cover: explicit.Cover | None, json_file: Path | None
) -> int:
    """Bounded search. With a cover of at most so many rounds, that none is found means that there is none.

    Behaviours that differ by exchanged members are all looked at then: the cover counts them all.
    """
    found = chain.search(spec, rounds, timeout_ms=limit, symmetry=cover is None)
    holds = (
        cover is not None and cover.complete and cover.rounds <= rounds and found.broken is None and not found.unknown
    )
    if holds:
        assert cover is not None
        click.echo(f"holds: {cover_text(cover)}, and no break was found in {rounds}")
    else:
        print_found(spec, found)
        if cover is not None and found.broken is None:
            click.echo(cover_text(cover))
    verdict = "violated" if found.broken else "holds" if holds else "inconclusive"
    code = {"violated": EXIT_VIOLATES, "holds": EXIT_CONFORMS, "inconclusive": EXIT_INCONCLUSIVE}[verdict]
    answer = {
        "format": "viewproof.bmc/1",
        "verdict": verdict,
        "exit_code": code,
        "inputs": inputs,
        "rounds": found.rounds,
        "cover": None if cover is None else _cover_json(cover),
        "broken": found.broken,
        "title": found.title,
        "minimal": found.minimal,
        "behaviour": [{"action": s.action, "args": s.args} for s in found.steps],
        "seconds": round(found.seconds, 3),
    }
    save_json(answer, json_file)
    return code
