"""`vsr prove`: inductive proofs and bounded search with z3."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import msgspec

from viewproof.api import prove as api
from viewproof.api.model import model, model_size
from viewproof.api.prove import lemmas_of_model
from viewproof.refinement.cli.focused import Focused
from viewproof.refinement.cli.models import (
    SIZE_OPTIONS,
    SIZES,
    ModelName,
    bounded_model,
    fault_model,
    named,
    size_option,
)
from viewproof.refinement.cli.options import FaultName, Place, Seconds
from viewproof.refinement.cli.output import json_option, note, save_json, steps
from viewproof.refinement.cli.own_model import SIZES as OWN_SIZES
from viewproof.refinement.cli.own_model import is_own
from viewproof.refinement.cli.prove_bounded import find_cover, print_cover, search
from viewproof.refinement.cli.prove_lead import lead_on
from viewproof.refinement.cli.prove_text import (
    print_advice,
    print_counterexample,
    print_proof,
    print_used,
    say_again,
    say_stale,
)
from viewproof.refinement.cli.prove_unbounded import FORMAT as UNBOUNDED
from viewproof.refinement.cli.prove_unbounded import prove_unbounded, recheck_unbounded
from viewproof.refinement.cli.prove_witness import ROUNDS, STATES, Asked, find_witnesses
from viewproof.refinement.cli.questions import refuse_others
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.engines.smt import certificate as certificates
from viewproof.spec.engines.smt import houdini
from viewproof.spec.engines.smt.proof import Proof, processors
from viewproof.spec.engines.smt.proof import prove as run_proof
from viewproof.spec.lang import Spec
from viewproof.spec.protocols import FAULTS

_count = click.IntRange(1)
BMC_ROUNDS = 2
BEST = "a proof without a mode"
_MODEL = frozenset({"faults", "timeout", *SIZES, "replicas"})
APPLIES = {
    BEST: _MODEL | {"used", "show", "reach"},
    "--induction": _MODEL | {"used", "show", "reach"},
    "--unbounded": _MODEL,
    "--bmc": _MODEL | {"invariants", "cover"},
    "--cover": _MODEL - {"timeout"} | {"cover"},
    "--houdini": _MODEL - {"timeout"},
    "--needed": _MODEL - {"timeout"},
    "--witness": _MODEL | {"reach", "deepen", "parts"},
    "--recheck": frozenset({"timeout"}),
}
"""Question → the options that apply to it, besides those that apply to all."""


def _with_sizes(command: Any) -> Any:
    for option in reversed(SIZE_OPTIONS):
        command = option(command)
    return command


MAIN = ("how", "rounds", "cover", "recheck", "faults", "invariants", "replicas", "views", "ops", "timeout", "json_file")


@click.command(cls=Focused, main=MAIN)
@click.argument("name", metavar="MODEL", type=ModelName(), required=False)
@size_option
@click.option("--induction", "how", flag_value="induction", help="Do the lemmas hold at any depth?")
@click.option(
    "--bmc",
    "rounds",
    type=click.IntRange(0),
    is_flag=False,
    flag_value=0,
    metavar="[ROUNDS]",
    help=f"Search ROUNDS rounds of all actions for a break.  [default: what --fault needs, else {BMC_ROUNDS}]",
)
@click.option(
    "--cover", is_flag=True, help="How many rounds reach all states? With --bmc: none found in so many means none."
)
@click.option("--unbounded", "how", flag_value="unbounded", help="Do they hold at any depth, and for any sizes?")
@click.option("--houdini", "how", flag_value="houdini", help="Largest inductive subset of lemmas and generated ones.")
@click.option("--needed", "how", flag_value="needed", help="Which lemmas can the proof not do without?")
@click.option("--witness", "how", flag_value="witness", help="Reachable states in which each lemma says something.")
@click.option("--recheck", type=Place(exists=True, dir_okay=False), help="Re-check a certificate.")
@click.option("--fault", "faults", multiple=True, type=FaultName(FAULTS), metavar="NAME", help="Switch a mistake on.")
@click.option("--invariant", "invariants", multiple=True, help="--bmc: only this invariant (I1 …); may be repeated.")
@click.option("--workers", type=_count, help="Processes.  [default: one per processor]")
@click.option(
    "--used", is_flag=True, help="--induction: also which lemmas each lemma needs (takes several times longer)."
)
@click.option("--timeout", type=Seconds(zero=True), default=0.0, help="Seconds per query; 0: no limit.")
@click.option("--show", type=click.IntRange(0), default=3, show_default=True, help="Counterexamples shown in full.")
@click.option(
    "--reach",
    type=click.IntRange(0),
    help=f"States searched for one.  [default: {api.REACH:,}; with --witness {STATES:,}]",
)
@click.option(
    "--rounds",
    "deepen",
    type=click.IntRange(0),
    help=f"--witness: then rounds of bounded search for the parts without one.  [default: {ROUNDS}]",
)
@click.option("--part", "parts", multiple=True, metavar="LEMMA.N", help="--witness: only this part, shown in full.")
@_with_sizes
@json_option
@click.pass_context
def prove(
    ctx: click.Context,
    /,
    name: str | None,
    how: str | None,
    rounds: int | None,
    cover: bool,
    recheck: Path | None,
    faults: tuple[str, ...],
    invariants: tuple[str, ...],
    workers: int | None,
    used: bool,
    timeout: float,
    show: int,
    reach: int | None,
    deepen: int | None,
    parts: tuple[str, ...],
    json_file: Path | None,
    **sizes: int | None,
) -> int:
    """Prove that the invariants hold at any depth of a bounded model, or search it for a break.

    Without an option: induction; if that fails, a search for a real break, in this size and in the model's shapes; if
    there is none, what is missing. Exit 0: proved. 1: a reachable break of an invariant. 4: not proved, or nothing
    found in the rounds searched.
    """
    question = _question(ctx.params)
    refuse_others(ctx, question, APPLIES)
    limit = int(timeout * 1000)
    count = workers or processors()
    if recheck is not None:
        return _recheck(recheck, count, limit, json_file)
    name = named(name, faults)
    if is_own(name):
        spec, inputs = _own(name, sizes)
    else:
        inputs = _inputs(name, faults, sizes.pop("replicas"), sizes)
        spec = _spec(inputs)
    if rounds is not None:
        covered = find_cover(spec, count) if cover else None
        chosen = fault_model(name, faults)
        enough = rounds or (chosen.rounds if chosen else BMC_ROUNDS)
        return search(_only(spec, invariants), inputs, enough, limit, covered, json_file)
    if cover:
        return print_cover(find_cover(spec, count), inputs, json_file)
    if question in (BEST, "--induction"):
        shown = (show, api.REACH if reach is None else reach)
        return _induction(spec, inputs, (count, limit, used), shown, json_file, lead=question == BEST)
    if how == "unbounded":
        return prove_unbounded(spec, inputs, count, limit, json_file)
    if how == "witness":
        asked_for = Asked(parts, STATES if reach is None else reach, ROUNDS if deepen is None else deepen, limit)
        return find_witnesses(spec, (*spec.invariants, *lemmas_of_model(spec)), asked_for, inputs, json_file)
    return _help(spec, inputs, str(how), count, json_file)


def _question(options: dict[str, Any]) -> str:
    """What is asked; two questions at once are refused."""
    asked = [f"--{options['how']}"] if options["how"] else []
    asked += ["--bmc"] if options["rounds"] is not None else ["--cover"] if options["cover"] else []
    asked += ["--recheck"] if options["recheck"] else []
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} are one question each")
    return asked[0] if asked else BEST


def _inputs(name: str, faults: tuple[str, ...], replicas: int | None, sizes: dict[str, int | None]) -> dict[str, Any]:
    """What a certificate needs to build the model again."""
    fault_model(name, faults)
    size = model_size(name, replicas, faults, sizes)
    return {"model": name, "replicas": size.replicas, "faults": list(faults), "bounds": dict(vars(size.bounds))}


def _own(name: str, sizes: dict[str, int | None]) -> tuple[Spec, dict[str, Any]]:
    """A model of one's own, and what a certificate needs to make it again."""
    spec, text = bounded_model(name, sizes.pop("replicas"), (), sizes)
    note(f"{name}: {text}")
    own = click.get_current_context().meta.get(OWN_SIZES, {})
    return spec, {"model": name, "replicas": 0, "faults": [], "bounds": own}


def _spec(inputs: dict[str, Any]) -> Spec:
    if is_own(inputs["model"]):
        click.get_current_context().meta[OWN_SIZES] = inputs["bounds"]
        return bounded_model(inputs["model"], None, (), {})[0]
    name, replicas, faults, bounds = (inputs[key] for key in ("model", "replicas", "faults", "bounds"))
    size = model_size(name, replicas, faults, bounds)
    note(f"{name}: {size}" + "".join(f"; mistake: {f}" for f in faults))
    return model(name, replicas=replicas, faults=faults, **bounds)


def _only(spec: Spec, ids: Sequence[str]) -> Spec:
    unknown = set(ids) - {p.id for p in spec.invariants}
    if unknown:
        raise click.UsageError(f"no invariant {', '.join(sorted(unknown))}")
    return replace(spec, invariants=tuple(p for p in spec.invariants if p.id in ids)) if ids else spec


def _induction(
    spec: Spec, inputs: dict[str, Any], run: tuple[int, int, bool], shown: tuple[int, int], json_file: Path | None,
    *, lead: bool,
) -> int:  # fmt: skip
    workers, limit, used = run
    with steps("proving") as progress:
        proof = run_proof(spec, lemmas_of_model(spec), workers=workers, timeout_ms=limit, used=used, progress=progress)
    print_proof(proof)
    if used:
        print_used(proof)
    answer = certificates.certificate(proof, lemmas_of_model(spec))
    show, reach = shown
    found = api.counterexamples(proof, most=show, max_states=reach, notify=note)
    answer["counterexamples"] = []
    for step in sorted(found, key=lambda step: step.before != "reachable"):
        print_counterexample(spec, proof, step.example, step.before, step.count)
        leaves = [[leaf.var, list(leaf.index), leaf.value] for leaf in step.example.leaves]
        shown_step = {"lemma": step.goal, "step": step.example.label, "leaves": leaves, "before": step.before}
        answer["counterexamples"].append(shown_step)
    print_advice([step.goal for step in found if step.before == "reachable"], proof)
    broken = api.breaks_invariant(proof, found)
    if lead and proof.verdict != "proved":
        answer["led"] = lead_on(spec, inputs, workers)
        broken = broken or answer["led"]["break"] is not None
    code = EXIT_VIOLATES if broken else EXIT_CONFORMS if proof.verdict == "proved" else EXIT_INCONCLUSIVE
    save_json({**answer, "inputs": inputs, "exit_code": code}, json_file)
    return code


def _help(spec: Spec, inputs: dict[str, Any], how: str, workers: int, json_file: Path | None) -> int:
    """--houdini and --needed."""
    answer: dict[str, Any] = {"format": f"viewproof.{how}/1", "inputs": inputs}
    lemmas = lemmas_of_model(spec)
    if how == "needed":
        rest = houdini.needed(spec, lemmas, workers=workers, progress=note)
        click.echo(f"needed: {len(rest)} of {len(lemmas)} lemmas")
        for lemma in rest:
            click.echo(f"  {lemma.id:<32} {lemma.title}")
        proved = len(rest) < len(lemmas) or _proves(spec, workers)
        answer["lemmas"] = [p.id for p in rest]
    else:
        states = houdini.sample(spec, runs=20, length=40)
        generated = houdini.candidates(spec, states)
        note(f"{len(generated)} generated candidates hold in {len(states)} sampled states")
        result = houdini.largest_inductive(spec, (*lemmas, *generated), workers=workers, progress=note)
        lost = [p.id for p in spec.invariants if p.id in result.dropped]
        click.echo(f"inductive: {len(result.kept)} candidates after {result.rounds} rounds")
        for id, (number, action) in result.dropped.items():
            click.echo(f"  dropped in round {number}: {id} (at {action})")
        if not result.is_proved:
            lost.append("that no declared range is left, so what was kept is not proved either")
        click.echo(f"not proved: {', '.join(lost)}" if lost else "all invariants are among them: proved")
        proved = not lost
        answer |= {"lemmas": [p.id for p in result.kept], "dropped": result.dropped}
    code = EXIT_CONFORMS if proved else EXIT_INCONCLUSIVE
    save_json({**answer, "exit_code": code}, json_file)
    return code


def _proves(spec: Spec, workers: int) -> bool:
    return run_proof(spec, lemmas_of_model(spec), workers=workers, stop_early=True).verdict == "proved"


def _recheck(file: Path, workers: int, limit: int, json_file: Path | None) -> int:
    """Does a certificate speak of the specification at hand, and does its proof go through again?"""
    try:
        old = msgspec.json.decode(file.read_bytes())
        if old["format"] not in (certificates.FORMAT, UNBOUNDED):
            raise click.UsageError(
                f"{file} is not a certificate of a proof ({certificates.FORMAT} or {UNBOUNDED}, not {old['format']})"
            )
        spec = _spec(old["inputs"])
        if old["format"] == UNBOUNDED:
            return recheck_unbounded(old, spec, workers, limit, json_file, file)
        stale = certificates.changed(old, certificates.fingerprints(spec, lemmas_of_model(spec)))
        verdict = old["verdict"]
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise click.UsageError(f"{file} is not a certificate of a proof: {error}") from error
    if stale:
        return say_stale(stale, file, json_file)
    with steps("proving again") as progress:
        proof: Proof = run_proof(spec, lemmas_of_model(spec), workers=workers, timeout_ms=limit, progress=progress)
    return say_again(proof.verdict, proof.seconds, verdict, file, json_file)
