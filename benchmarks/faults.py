"""Every known mistake, and which engine catches it: one command, one table (docs/faults.md).

    python -m benchmarks.faults                      # the faults of the spec: explicit and z3
    python -m benchmarks.faults --audit 100          # those of the replica: audit of 100 simulated runs each
    python -m benchmarks.faults FAULT … [--audit N]  # only some

Columns of the first table: what the shortest behaviour of `vsr check` breaks, its steps, distinct states and seconds;
the action at which induction fails, and its seconds; what the bounded search (`--rounds` chains of all actions) breaks,
its steps and seconds. Goals of progress (L1, L2) are no business of z3: "–". Of the second: runs rejected, the first
seed, and at which event by which rule most were; "sim" counts the runs in which a checker of the simulator failed.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from impl.faults import FAULTS as REPLICA_FAULTS
from impl.sim.run import simulate
from refinement.checker import check_run
from refinement.ordering import order_key
from refinement.reading import ProblemLog, read_rows
from refinement.verdict import AuditOptions
from spec.engines import explicit
from spec.engines.smt import chain
from spec.engines.smt.run import prove
from spec.vsr.fault_models import FAULT_MODELS, FaultModel
from spec.vsr.lemmas import lemmas_of
from spec.vsr.progress import goals

ROUNDS = 2
BMC_SECONDS = 120
REQUESTS = 80
SPEC_HEADER = ("fault", "model", "breaks", "steps", "states", "s", "induction fails at", "s", "bmc", "steps", "s")
AUDIT_HEADER = ("fault", "rejected", "first seed", "sim", "at")


def searched(chosen: FaultModel, fault: str) -> tuple[str, ...]:
    """What the explicit search finds: broken, steps, states, seconds."""
    started = time.perf_counter()
    spec = chosen.spec(fault)
    if chosen.stops_progress:
        wanted = [explicit.Goal(g.id, g.title, g.premise, g.good) for g in goals(spec.instance, spec.cfg)]
        answers = explicit.always_reaches(spec, wanted)
        broken = [a for a in answers if a.result.verdict == "violated"]
        found = min((a.result for a in broken), key=lambda r: len(r.behaviour), default=answers[0].result)
        name = ", ".join(a.goal.id for a in broken)
    else:
        found = explicit.explore(spec)
        name = found.broken or ""
    seconds = time.perf_counter() - started
    return name or "NOTHING", str(len(found.behaviour)), f"{found.distinct:,}", f"{seconds:.1f}"


def proved(chosen: FaultModel, fault: str) -> tuple[str, ...]:
    """Where induction fails: action and lemma, seconds."""
    spec = chosen.spec(fault)
    proof = prove(spec, lemmas_of(spec.cfg), workers=2, stop_early=True)
    first = proof.failures[0] if proof.failures else None
    return (f"{first.action} ({first.goal})" if first else "NOWHERE", f"{proof.seconds:.1f}")


def bounded(chosen: FaultModel, fault: str, rounds: int) -> tuple[str, ...]:
    """What the bounded search finds: broken, steps, seconds."""
    found = chain.search(chosen.spec(fault), rounds, timeout_ms=BMC_SECONDS * 1000)
    return (found.broken or "nothing", str(len(found.steps)), f"{found.seconds:.1f}")


def spec_rows(faults: Sequence[str], rounds: int) -> Iterator[tuple[str, ...]]:
    """The rows of the first table."""
    for fault in faults:
        chosen = FAULT_MODELS[fault]
        cells = (fault, chosen.model, *searched(chosen, fault))
        if chosen.stops_progress:
            yield (*cells, "–", "–", "–", "–", "–")
        else:
            yield (*cells, *proved(chosen, fault), *bounded(chosen, fault, rounds))


def audit_rows(faults: Sequence[str], runs: int) -> Iterator[tuple[str, ...]]:
    """The rows of the second table."""
    for fault in faults:
        rejected: list[int] = []
        places: Counter[str] = Counter()
        failed = 0
        for seed in range(runs):
            folder = Path(tempfile.mkdtemp(prefix="viewproof-"))
            try:
                run = simulate(
                    seed,
                    replicas=4 if fault == "view.even_quorum" else 3,
                    requests=REQUESTS,
                    faults=frozenset({fault}),
                    out=folder,
                )
                failed += not run.ok
                log = ProblemLog()
                rows = [row for file in sorted(folder.rglob("*.ndjson")) for row in read_rows(str(file), log)]
                verdict = check_run(run.run, sorted(rows, key=order_key), AuditOptions())
            finally:
                shutil.rmtree(folder)
            if verdict.verdict == "violates":
                rejected.append(seed)
                places[f"{verdict.violations[0].action} ({verdict.violations[0].rule_id})"] += 1
        first = str(rejected[0]) if rejected else "–"
        often = ", ".join(place for place, _ in places.most_common(2)) or "NOT CAUGHT"
        yield (fault, f"{len(rejected)} of {runs}", first, str(failed), often)


def main() -> None:
    """Print the table, a row as soon as it is known."""
    parser = argparse.ArgumentParser(description="Which engine catches which known mistake.")
    parser.add_argument("faults", nargs="*", help="fault ids; all, unless given")
    parser.add_argument("--audit", type=int, metavar="RUNS", help="the replica's faults, so many simulated runs each")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of the bounded search")
    options = parser.parse_args()
    known: Sequence[str] = sorted(REPLICA_FAULTS if options.audit else FAULT_MODELS)
    unknown = sorted(set(options.faults) - set(known))
    if unknown:
        parser.error(f"unknown fault {', '.join(unknown)}; there are: {', '.join(known)}")
    chosen = options.faults or known
    header = AUDIT_HEADER if options.audit else SPEC_HEADER
    rows = audit_rows(chosen, options.audit) if options.audit else spec_rows(chosen, options.rounds)
    for row in (header, ("---",) * len(header)):
        click.echo("| " + " | ".join(row) + " |")
    for row in rows:
        click.echo("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
