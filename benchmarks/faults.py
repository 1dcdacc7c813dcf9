"""Every known mistake, and which engine catches it: one command, one table (docs/faults.md).

    python -m benchmarks.faults                      # the faults of the spec: explicit and z3
    python -m benchmarks.faults --z3                 # z3 only (docs/proofs.md)
    python -m benchmarks.faults --proofs             # where the proof of each fails, and its story (docs/proofs.md)
    python -m benchmarks.faults --audit 20           # those of the replica: audit of 20 simulated runs each
    python -m benchmarks.faults --write docs/faults.md    # explicit search and 20 runs of all: the table there
    python -m benchmarks.faults FAULT … [--audit N]  # only some

Columns of the first table: what the shortest behaviour of `vsr check` breaks, its steps, distinct states and seconds;
the actions at which induction fails with the first lemma that they break (of the order in docs/proofs.md) and how many,
and seconds; in how many rounds of all actions the bounded search breaks what, in how many steps and seconds. Where
induction fails without the fault, too, only what fails besides is counted, and marked with a star: of such a model
induction says at most that these steps break more, not that all others are sound. Goals of progress (L1, L2) are no
business of z3: "–". Of the second: the profile of the runs (`benchmarks.fault_runs`), those that the audit rejects, the
first of them and how many events were fine, at which step most were; those in which a checker of the simulator failed,
and which.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from benchmarks.failing_proofs import HEADER as PROOF_HEADER
from benchmarks.failing_proofs import fails_anyway, lemmas, named, proof_rows, searched
from benchmarks.fault_runs import FAULT_RUNS, TABLE_HEADER, run_rows, table_rows, write_table
from benchmarks.fault_runs import HEADER as AUDIT_HEADER
from viewproof.spec.engines.smt import chain
from viewproof.spec.engines.smt.proof import prove
from viewproof.spec.vsr.fault_models import FAULT_MODELS, FaultModel

BMC_SECONDS = 300
RUNS = 20
Z3_HEADER = ("induction fails at", "first lemma", "of", "s", "rounds", "breaks", "steps", "s")
SPEC_HEADER = ("fault", "model", "breaks", "steps", "states", "s", *Z3_HEADER)


def proved(chosen: FaultModel, fault: str) -> tuple[str, ...]:
    """Where induction fails: actions, first lemma, number of lemmas, seconds."""
    spec = chosen.spec(fault)
    known = fails_anyway(chosen)
    proof = prove(spec, lemmas(spec), workers=2)
    new = [f for f in proof.failures if named(f) not in known]
    if not new:
        return ("nowhere else*" if known else "NOWHERE", "–", "0", f"{proof.seconds:.1f}")
    actions = ", ".join(f"`{name}`" for name in sorted({f.action for f in new}))
    first, broken = new[0].goal, {f.goal for f in new}
    return (actions + ("*" if known else ""), first, str(len(broken)), f"{proof.seconds:.1f}")


def bounded(chosen: FaultModel, fault: str) -> tuple[str, ...]:
    """What the bounded search finds: rounds, broken, steps, seconds."""
    found = chain.search(chosen.spec(fault), chosen.rounds, timeout_ms=BMC_SECONDS * 1000)
    return (str(found.rounds), found.broken or "NOTHING", str(len(found.steps)), f"{found.seconds:.1f}")


def spec_rows(faults: Sequence[str], z3_only: bool) -> Iterator[tuple[str, ...]]:
    """The rows of the first table."""
    for fault in faults:
        chosen = FAULT_MODELS[fault]
        head = (f"`{fault}`", f"`{chosen.model}`") if z3_only else (fault, chosen.model, *searched(chosen, fault))
        if chosen.stops_progress:
            yield (*head, *("–",) * len(Z3_HEADER))
        else:
            yield (*head, *proved(chosen, fault), *bounded(chosen, fault))


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description="Which engine catches which known mistake.")
    parser.add_argument("faults", nargs="*", help="fault ids; all, unless given")
    parser.add_argument("--audit", type=int, metavar="RUNS", help="the replica's faults, so many simulated runs each")
    parser.add_argument("--z3", action="store_true", help="the faults of the spec: only what z3 says")
    parser.add_argument("--proofs", action="store_true", help="the faults of the spec: where their proofs fail")
    parser.add_argument(
        "--write", type=Path, metavar="FILE", help="put the table of all into this file (docs/faults.md)"
    )
    options = parser.parse_args()
    known: Sequence[str] = sorted(FAULT_RUNS if options.audit else FAULT_MODELS)
    unknown = sorted(set(options.faults) - set(known))
    if unknown:
        parser.error(f"unknown fault {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = options.faults or known
    if options.proofs:
        list(shown(PROOF_HEADER, proof_rows(chosen)))
    elif options.write:
        rows = table_rows(options.audit or RUNS, lambda fault: searched(FAULT_MODELS[fault], fault))
        write_table(options.write, list(shown(TABLE_HEADER, rows)))
    elif options.audit:
        list(shown(AUDIT_HEADER, run_rows(chosen, options.audit)))
    else:
        header = ("fault", "model", *Z3_HEADER) if options.z3 else SPEC_HEADER
        list(shown(header, spec_rows(chosen, options.z3)))


def shown(header: Sequence[str], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    """The lines of a table, each printed as soon as it is known."""
    for row in (header, ("---",) * len(header)):
        yield _shown(row)
    for row in rows:
        yield _shown(row)


def _shown(row: Sequence[str]) -> str:
    line = "| " + " | ".join(row) + " |"
    click.echo(line)
    return line


if __name__ == "__main__":
    main()
