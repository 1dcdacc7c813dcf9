"""`vsr check MODEL --import FILE`: a behaviour that another tool found, taken step by step."""

from __future__ import annotations

import json
from pathlib import Path

import click

from viewproof.spec.engines.explicit.result import Result
from viewproof.spec.engines.itf import from_itf, steps_between
from viewproof.spec.engines.walk import judged
from viewproof.spec.lang import Spec, SpecError


def imported(spec: Spec, file: Path) -> Result:
    """The behaviour in a file; `violated` if it breaks an invariant, which is looked for from the first state on."""
    try:
        document = json.loads(file.read_bytes())
    except (OSError, ValueError) as problem:
        raise click.UsageError(f"{file} cannot be read as ITF (JSON): {problem}") from problem
    try:
        steps = steps_between(spec, from_itf(spec, document))
    except SpecError as problem:
        raise click.UsageError(f"{file}: {problem.message}") from problem
    return judged(spec, steps)


def show_imported(result: Result, steps: int) -> None:
    """The headline of a behaviour that was read."""
    if result.verdict == "violated":
        click.echo(f"violated: {result.broken} {result.title}, after {steps} steps")
    else:
        click.echo(f"a behaviour of {result.model}, {steps} steps: {', '.join(result.invariants)} hold in its states")
