"""`vsr prove --unbounded`: induction without sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from viewproof.api.prove import lemmas_of_model
from viewproof.refinement.cli.output import save_json, steps
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE
from viewproof.spec.engines.smt.solve import version
from viewproof.spec.engines.smt.unbounded.proof import Unbounded, prove
from viewproof.spec.lang import Predicate, Spec
from viewproof.spec.protocols import protocol_of

FORMAT = "viewproof.proof-unbounded/1"
SECONDS = 60
"""Limit of a query, if none is asked for: a query for any size need not end."""


def all_lemmas(spec: Spec) -> tuple[Predicate, ...]:
    """The lemmas of a model's proof, and those that only a proof without sizes needs."""
    protocol = protocol_of(spec)
    return (*lemmas_of_model(spec), *(protocol.more_of_any_size(spec) if protocol else ()))


def prove_unbounded(spec: Spec, inputs: dict[str, Any], limit_ms: int, json_file: Path | None) -> int:
    """Prove, print, and save; exit 0: proved."""
    with steps("proving without sizes") as progress:
        proof = prove(spec, all_lemmas(spec), timeout_ms=limit_ms or SECONDS * 1000, progress=progress)
    print_proof(proof)
    code = EXIT_CONFORMS if proof.verdict == "proved" else EXIT_INCONCLUSIVE
    save_json({**report(proof), "inputs": inputs, "exit_code": code}, json_file)
    return code


def print_proof(proof: Unbounded) -> None:
    """Queries and seconds by action, what is open, and what the verdict is about."""
    rows: dict[str, list[float]] = {}
    for result in proof.results:
        row = rows.setdefault(result.question.step.ir.name if result.question.step else "initial state", [0, 0, 0, 0.0])
        row[0] += bool(result.goals)
        row[1] += result.goals
        row[2] += result.status != "unsat"
        row[3] += result.seconds
    click.echo(f"{'action':<32}{'queries':>9}{'goals':>9}{'open':>9}{'seconds':>9}")
    for name, (queries, goals, left, seconds) in rows.items():
        click.echo(f"{name:<32}{int(queries):>9,}{int(goals):>9,}{int(left):>9,}{seconds:>9.1f}")
    words = {"sat": "not kept in a state that is made of the numbers tried", "unknown": "not decided in time"}
    for result in proof.open:
        click.echo(f"open: {result.question.label}: {words[result.status]}")
    counted = ", ".join(f"{number} of {name}" for name, number in sorted(proof.counted.items())) or "nothing"
    verdict = "proved" if proof.verdict == "proved" else f"not proved: {len(proof.open):,} queries are open"
    click.echo(f"{verdict}; {sum(r.goals for r in proof.results):,} goals in {proof.seconds:.1f} s")
    click.echo(f"bounded: {counted}; everything else is of any number")


def report(proof: Unbounded) -> dict[str, Any]:
    """The machine-readable result."""
    return {
        "format": FORMAT,
        "verdict": proof.verdict,
        "counted": proof.counted,
        "solver": version(),
        "seconds": round(proof.seconds, 3),
        "queries": [
            {"question": r.question.label, "goals": r.goals, "status": r.status, "seconds": round(r.seconds, 3)}
            for r in proof.results
        ],
    }
