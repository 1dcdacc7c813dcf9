"""`vsr prove --unbounded`: induction without sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from viewproof.api.prove import lemmas_of_model
from viewproof.refinement.cli.output import save_json, steps
from viewproof.refinement.cli.prove_lead import lead_on
from viewproof.refinement.cli.prove_text import say_again, say_stale
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.engines.smt import certificate as certificates
from viewproof.spec.engines.smt.solve import version
from viewproof.spec.engines.smt.unbounded.proof import INITIAL, Unbounded, prove, without_sizes
from viewproof.spec.lang import Predicate, Spec
from viewproof.spec.protocols import protocol_of

FORMAT = "viewproof.proof-unbounded/1"


def all_lemmas(spec: Spec) -> tuple[Predicate, ...]:
    """The lemmas of a model's proof, and those that only a proof without sizes needs."""
    protocol = protocol_of(spec)
    return (*lemmas_of_model(spec), *(protocol.more_of_any_size(spec) if protocol else ()))


def following(spec: Spec) -> tuple[Predicate, ...]:
    """What follows from those lemmas in the same state."""
    protocol = protocol_of(spec)
    return protocol.following_of_any_size(spec) if protocol else ()


def prove_unbounded(spec: Spec, inputs: dict[str, Any], workers: int, limit_ms: int, json_file: Path | None) -> int:
    """Prove, print, and save a certificate; if it does not go through, search for a real break. Exit 0: proved."""
    proof = _run(spec, workers, limit_ms, "proving without sizes")
    print_proof(proof)
    answer = report(proof, (*all_lemmas(spec), *following(spec)))
    code = EXIT_CONFORMS
    if proof.verdict != "proved":
        answer["led"] = lead_on(spec, inputs, workers)
        code = EXIT_VIOLATES if answer["led"]["break"] is not None else EXIT_INCONCLUSIVE
    save_json({**answer, "inputs": inputs, "exit_code": code}, json_file)
    return code


def recheck_unbounded(
    old: dict[str, Any], spec: Spec, workers: int, limit_ms: int, json_file: Path | None, file: Path
) -> int:
    """Does a certificate speak of the specification at hand, and does its proof go through again?"""
    lemmas = (*all_lemmas(spec), *following(spec))
    stale = certificates.changed(old, certificates.fingerprints(without_sizes(spec, lemmas), lemmas))
    if stale:
        return say_stale(stale, file, json_file)
    proof = _run(spec, workers, limit_ms, "proving again without sizes")
    return say_again(proof.verdict, proof.seconds, old["verdict"], file, json_file)


def _run(spec: Spec, workers: int, limit_ms: int, title: str) -> Unbounded:
    with steps(title) as progress:
        lemmas = all_lemmas(spec)
        return prove(spec, lemmas, following(spec), workers=workers, timeout_ms=limit_ms, progress=progress)


def print_proof(proof: Unbounded) -> None:
    """Queries and seconds by action, what is open, and what the verdict is about."""
    rows: dict[str, list[float]] = {}
    for result in proof.results:
        row = rows.setdefault(result.action or INITIAL, [0, 0, 0, 0.0])
        row[0] += result.queries
        row[1] += result.goals
        row[2] += result.status != "unsat"
        row[3] += result.seconds
    click.echo(f"{'action':<32}{'queries':>9}{'goals':>9}{'open':>9}{'seconds':>9}")
    for name, (queries, goals, left, seconds) in rows.items():
        click.echo(f"{name:<32}{int(queries):>9,}{int(goals):>9,}{int(left):>9,}{seconds:>9.1f}")
    words = {
        "sat": "not kept in a state that is made of the numbers tried",
        "unknown": "not decided by what a query may do",
    }
    for result in proof.open:
        click.echo(f"open: {result.label}: {words[result.status]}")
    counted = ", ".join(f"{number} of {name}" for name, number in sorted(proof.counted.items())) or "nothing"
    verdict = "proved" if proof.verdict == "proved" else f"not proved: {len(proof.open):,} queries are open"
    click.echo(f"{verdict}; {sum(r.goals for r in proof.results):,} goals in {proof.seconds:.1f} s")
    click.echo(f"bounded: {counted}; everything else is of any number")


def report(proof: Unbounded, lemmas: tuple[Predicate, ...]) -> dict[str, Any]:
    """The machine-readable result: a certificate, if it is proved."""
    parts = certificates.fingerprints(proof.spec, lemmas)
    return {
        "format": FORMAT,
        "model": proof.spec.name,
        "verdict": proof.verdict,
        "counted": proof.counted,
        "specification": certificates.whole(parts),
        "parts": parts,
        "solver": version(),
        "seconds": round(proof.seconds, 3),
        "workers": proof.workers,
        "questions": [
            {"question": r.label, "goals": r.goals, "status": r.status, "queries": r.queries, "facts": r.facts,
             "seconds": round(r.seconds, 3)}
            for r in proof.results
        ],
    }  # fmt: skip
