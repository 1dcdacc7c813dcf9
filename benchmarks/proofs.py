"""The inductive proofs of the core: how many goals each has, and how many of them go to the solver (docs/proofs.md).

    python -m benchmarks.proofs [--record]

A row names its instance as `vsr prove … --induction` takes it. Goals are pairs of an action instance and a conjunct of
a lemma. Both numbers follow from the specification: a test holds the smaller rows against it, the long suite all.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

from benchmarks.figures import record
from benchmarks.text import table
from viewproof.spec.engines.smt.proof import Proof, prove
from viewproof.spec.vsr import model
from viewproof.spec.vsr.lemmas import lemmas_of

HEADER = ("vsr prove … --induction", "goals", "for the solver")
INSTANCES = (
    "core_restart --views 2 --ops 1 --requests 1",
    "core_restart --views 3 --ops 2 --requests 2",
    "core_restart --views 3 --ops 2 --requests 2 --clients 2",
    "core_restart --views 4 --ops 3 --requests 3",
    "core_restart --views 3 --ops 2 --requests 2 --replicas 4",
    "core_restart --views 3 --ops 2 --requests 2 --replicas 5",
)


def proof_of(instance: str) -> Proof:
    """The proof of an instance, with the lemmas that `vsr prove` takes."""
    name, *options = instance.split(" --")
    sizes: dict[str, Any] = {size: int(number) for size, number in (option.split() for option in options)}
    spec = model(name, **sizes)
    return prove(spec, lemmas_of(spec.cfg, crashes=spec.instance.bounds.get("Restart") != 0))


def counted(proof: Proof) -> tuple[str, str]:
    """Goals, and those that the solver decided."""
    tallies = proof.actions.values()
    return f"{sum(t.queries for t in tallies):,}", f"{sum(t.solved for t in tallies):,}"


def row(instance: str) -> tuple[str, ...]:
    """A row of the table. Raises `AssertionError` if the instance is not proved."""
    proof = proof_of(instance)
    if proof.verdict != "proved":
        raise AssertionError(f"{instance}: {proof.verdict}")
    return (f"`{instance}`", *counted(proof))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="What the inductive proofs of the core ask.")
    parser.add_argument("--record", action="store_true", help="write it into docs/proofs.md, too")
    options = parser.parse_args()
    rows = [row(instance) for instance in INSTANCES]
    sys.stdout.write(table(HEADER, rows) + "\n")
    if options.record:
        record("proofs", "core-proofs", HEADER, rows, "python -m benchmarks.proofs --record", "")


if __name__ == "__main__":
    main()
