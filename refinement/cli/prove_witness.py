"""`vsr prove --witness`: for every part of every lemma a reachable state in which it says something."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from viewproof.refinement.cli.output import note, save_json, steps
from viewproof.refinement.cli.prove_text import print_steps
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE
from viewproof.spec.engines.smt import witness
from viewproof.spec.lang import Predicate, Spec

STATES = 2_000_000
ROUNDS = 1


@dataclass(frozen=True)
class Asked:
    """Which parts (`I3.1`; none: all), and how far: states of the explicit search, then rounds of the bounded one."""

    parts: tuple[str, ...] = ()
    max_states: int = STATES
    rounds: int = ROUNDS
    timeout_ms: int = 0


def find_witnesses(
    spec: Spec, lemmas: Sequence[Predicate], asked: Asked, inputs: dict[str, Any], json_file: Path | None
) -> int:
    """Exit 0 if every part has a witness, 4 if not. An interrupt keeps what was found."""
    found = witness.unwitnessed(spec, lemmas)
    if asked.parts:
        unknown = sorted(set(asked.parts) - {w.part.label for w in found})
        if unknown:
            ids = ", ".join(dict.fromkeys(w.part.lemma for w in found))
            raise click.UsageError(f"no part {', '.join(unknown)}: a part is LEMMA.NUMBER, the lemmas are {ids}")
        found = [w for w in found if w.part.label in asked.parts]
    interrupted = False
    try:
        with steps("witnesses") as progress:
            witness.search(
                spec,
                found,
                max_states=asked.max_states,
                rounds=asked.rounds,
                timeout_ms=asked.timeout_ms,
                report=progress,
            )
    except KeyboardInterrupt:
        interrupted = True
        note("interrupted: this is what was found before")
    _print(spec, found, asked)
    missing = [w for w in found if not w.reached]
    code = EXIT_INCONCLUSIVE if missing else EXIT_CONFORMS
    answer = {"format": "viewproof.witness/2", "inputs": inputs, "exit_code": code, "interrupted": interrupted}
    save_json({**answer, "parts": [_json(w) for w in found]}, json_file)
    return code


def _json(found: witness.Witness) -> dict[str, Any]:
    return {
        "lemma": found.part.lemma,
        "part": found.part.number,
        "engine": found.engine or None,
        "unreachable": found.unreachable,
        "behaviour": [{"action": s.action, "args": s.args} for s in found.steps] if found.reached else None,
    }


def _print(spec: Spec, found: Sequence[witness.Witness], asked: Asked) -> None:
    """A line per part; the behaviours, where parts were named; what has none."""
    click.echo(f"{'part':<36}{'steps':>6}  engine")
    for w in found:
        none = "none: false in all reachable states" if w.unreachable else "none found"
        click.echo(f"{w.part.label:<36}{len(w.steps) if w.reached else '–':>6}  {w.engine or none}")
        if asked.parts and w.reached:
            print_steps(spec, w.steps)
    by_engine = [(name, sum(w.engine == name for w in found)) for name in ("explicit", "z3")]
    how = ", ".join(f"{count} by {name}" for name, count in by_engine if count)
    reached = sum(w.reached for w in found)
    click.echo(
        f"{reached} of {len(found)} parts of invariants and lemmas have a reachable witness{f' ({how})' if how else ''}"
    )
