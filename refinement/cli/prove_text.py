"""What `vsr prove` prints."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from viewproof.refinement.cli.check import show_change, show_value
from viewproof.refinement.cli.output import save_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE
from viewproof.spec.engines import interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.smt.chain import Found
from viewproof.spec.engines.smt.cti import Counterexample, Leaf
from viewproof.spec.engines.smt.induction import RANGES, Tally
from viewproof.spec.engines.smt.proof import Proof
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State

RECHECK = "viewproof.recheck/1"


def print_proof(proof: Proof) -> None:
    """Verdict, table of lemmas and of actions."""
    failed = proof.failed()
    total, solved = sum(t.queries for t in proof.lemmas.values()), sum(t.solved for t in proof.lemmas.values())
    _table("lemma", proof.lemmas, {goal: len(f) for goal, f in failed.items()})
    _table("action", proof.actions, {})
    headline = {
        "proved": "proved: all of them hold in every reachable state of this instance, at any depth",
        "failed": f"not proved: {', '.join(failed)}",
        "unknown": f"not proved (undecided in time): {', '.join(failed)}",
    }
    click.echo(headline[proof.verdict])
    click.echo(
        f"{total:,} goals, {solved:,} of them for the solver, {total - solved:,} true as they stand; "
        f"{proof.seconds:.1f} s with {proof.workers} process{'es' if proof.workers > 1 else ''}"
    )


def print_used(proof: Proof) -> None:
    """Per lemma the other lemmas that the solver needed for it, over all actions."""
    click.echo("lemmas that the solver needed, per lemma (none named: only the lemma itself, or nothing):")
    for lemma in proof.problem.titles:
        if lemma in proof.used:
            others = {name for names in proof.used[lemma].values() for name in names} - {lemma}
            click.echo(f"  {lemma}: {', '.join(name for name in proof.problem.titles if name in others) or '–'}")
    idle = [
        name for name in proof.problem.by_lemma if not any(name in n for u in proof.used.values() for n in u.values())
    ]
    click.echo(f"never needed by the solver: {', '.join(idle) or 'none'}")


def _table(what: str, rows: dict[str, Tally], failed: dict[str, int]) -> None:
    click.echo(f"{what:<32}{'goals':>9}{'solver':>9}{'seconds':>9}{'longest':>9}")
    for name, tally in rows.items():
        note = f"  FAILS: {failed[name]}" if name in failed else "" if tally.queries else "  says nothing at this size"
        click.echo(f"{name:<32}{tally.queries:>9,}{tally.solved:>9,}{tally.seconds:>9.2f}{tally.longest:>9.2f}{note}")


def print_counterexample(spec: Spec, proof: Proof, found: Counterexample, how: str, depth: int) -> None:
    """A counterexample to induction in words."""
    failure = found.failure
    names = f"[{', '.join(f'{k}={v}' for k, v in failure.names)}]" if failure.names else ""
    click.echo(f"\n{found.label} may break {failure.goal}{names}: {proof.problem.titles[failure.goal]}")
    click.echo("  these leaves of the state before are enough, whatever the rest is:")
    for leaf in found.leaves:
        click.echo(f"    {show_leaf(spec, leaf)}")
    if found.after is not None:
        click.echo("  the step changes:")
        for change in changes(spec, found.before, found.after):
            click.echo(f"    {show_change(spec, change)}")
    click.echo("  a whole state before it that satisfies every lemma differs from the initial state in:")
    for change in changes(spec, State.initial(), found.before):
        click.echo(f"    {show_leaf(spec, Leaf(change.var, change.index, change.after))}")
    what = "the bounds of the instance" if failure.goal == RANGES else failure.goal
    meaning = {
        "reachable": f"a state with these leaves is reached in {depth} steps: {what} really breaks",
        "unreachable": f"no reachable state has these leaves ({depth:,} states, all of them): a lemma is missing",
        "unknown": f"no state with these leaves among the first {depth:,} states (--reach): it may be out of reach, "
        "and then a lemma is missing",
        "not asked": "whether a reachable state has these leaves was not asked (--reach 0)",
    }
    click.echo(f"  {meaning[how]}")


def print_advice(real: Sequence[str], proof: Proof) -> None:
    """Where some of what failed breaks in a reachable state: that first, as what else failed may follow from it."""
    if not real:
        return
    wrong = [goal for goal in real if goal in {RANGES, *(p.id for p in proof.problem.spec.invariants)}]
    what = "the specification is wrong" if wrong else "what the lemma says is not so (or the specification is wrong)"
    click.echo(f"\nfirst of all: {', '.join(wrong or real)} really breaks: {what}.")
    if others := [goal for goal in proof.failed() if goal not in real]:
        click.echo(f"Only then look at {', '.join(others)}: it may follow from that, or a lemma may be missing.")


def show_leaf(spec: Spec, leaf: Leaf) -> str:
    """`entry[1, 2] = v0`."""
    index = f"[{', '.join(str(i) for i in leaf.index)}]" if leaf.index else ""
    return f"{leaf.var}{index} = {show_value(spec.schema.vars[leaf.var], leaf.value)}"


def print_found(spec: Spec, found: Found) -> None:
    """Result of a bounded search."""
    if found.broken is None:
        why = "a time limit was met" if found.unknown else "longer behaviours were not looked at"
        click.echo(f"inconclusive: no break in {found.rounds} rounds of {found.positions} positions; {why}")
    else:
        shortest = "none of these rounds is shorter" if found.minimal else "a shorter one was not ruled out in time"
        click.echo(f"violated: {found.broken} {found.title}, after {len(found.steps)} steps ({shortest})")
        print_steps(spec, found.steps)
    click.echo(f"{found.rounds} rounds, {found.positions} positions, {found.seconds:.1f} s")


def print_steps(spec: Spec, behaviour: Sequence[interp.Step]) -> None:
    """A behaviour step by step, with the cells that change."""
    state = State.initial()
    for number, step in enumerate(behaviour, start=1):
        args = ", ".join(f"{key}={value}" for key, value in step.args.items())
        click.echo(f"{number:3}. {step.action}({args})  [{spec.ir(step.action).source}]")
        for change in changes(spec, state, step.state):
            click.echo(f"       {show_change(spec, change)}")
        state = step.state


def say_stale(changed: list[str], file: Path, json_file: Path | None) -> int:
    """A certificate that speaks of another specification."""
    click.echo(f"stale: the specification has changed since: {', '.join(changed)}")
    answer = {"verdict": "stale", "changed": changed, "exit_code": EXIT_INCONCLUSIVE}
    save_json({"format": RECHECK, "certificate": str(file), **answer}, json_file)
    return EXIT_INCONCLUSIVE


def say_again(verdict: str, seconds: float, before: str, file: Path, json_file: Path | None) -> int:
    """What proving a certificate again came to."""
    same = verdict == before
    click.echo(f"{'confirmed' if same else 'DIFFERENT'}: {verdict} in {seconds:.1f} s (then {before})")
    code = EXIT_CONFORMS if verdict == "proved" == before else EXIT_INCONCLUSIVE
    answer = {"verdict": verdict, "same": same, "exit_code": code}
    save_json({"format": RECHECK, "certificate": str(file), **answer}, json_file)
    return code
