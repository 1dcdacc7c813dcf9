"""`vsr check`: all states of a bounded model of the specification."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from viewproof.api import check as api
from viewproof.refinement.cli.check_text import show_answer, show_behaviour, show_change, show_result, show_value
from viewproof.refinement.cli.models import SIZES, bounded_model, fault_model, model_options, witness_search
from viewproof.refinement.cli.output import PLAIN_SECONDS, json_option, note, save_json
from viewproof.refinement.cli.story import answer_questions, parse_questions, story_options, tell, write_page
from viewproof.refinement.reports.table import write_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.engines import explicit, interp
from viewproof.spec.engines.explicit.replay import changes
from viewproof.spec.engines.explicit.result import ActionCoverage, Result, Step
from viewproof.spec.engines.story import Ending
from viewproof.spec.lang import Spec
from viewproof.spec.lang.concrete import State
from viewproof.spec.protocols import protocol_of_model
from viewproof.spec.vsr.profiles import PROFILES

__all__ = ["check", "show_change", "show_value"]

LIVE_SECONDS = 0.25
EXIT_CODES = {"holds": EXIT_CONFORMS, "violated": EXIT_VIOLATES, "inconclusive": EXIT_INCONCLUSIVE}
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9}


class Size(click.ParamType):  # type: ignore[type-arg,unused-ignore]
    """A number of bytes: 500M, 4G."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes of a text."""
        text = str(value).strip().upper().removesuffix("B")
        digits, unit = (text[:-1], text[-1]) if text and text[-1] in UNITS else (text, "")
        try:
            size = int(float(digits) * UNITS[unit])
        except (ValueError, OverflowError):
            self.fail(f"{value} is not a size such as 500M or 4G", param, ctx)
        if size <= 0:
            self.fail("must be above 0", param, ctx)
        return size


_count = click.IntRange(1)
_folder = click.Path(path_type=Path, file_okay=False)


@click.command()
@model_options
@click.option(
    "--profile", type=click.Choice(list(PROFILES)), default="core", help="Options of the protocol.", show_default=True
)
@click.option("--workers", type=_count, help="Threads; they never change the result.  [default: the cores]")
@click.option("--max-states", type=_count, help="Stop, inconclusive, at this number of distinct states.")
@click.option("--memory", type=Size(), help="Memory for states; files take what is more.  [default: 60 % of the free]")
@click.option("--checkpoint", type=_folder, help="Save the search here on Ctrl-C, and every ten minutes.")
@click.option("--resume", type=_folder, help="Go on with the search saved in this directory.")
@click.option("--symmetry", metavar="SORT", help="Take members of a sort as exchangeable: Client.")
@click.option("--por", is_flag=True, help="Partial-order reduction, where actions commute with all others.")
@click.option("--simulate", is_flag=True, help="Random walks instead of a search: for models too large for it.")
@click.option("--seed", type=int, default=0, help="Seed of the walks.", show_default=True)
@click.option("--depth", type=_count, default=200, help="Largest number of steps of a walk.", show_default=True)
@click.option("--walks", type=_count, default=10_000, help="Number of walks.", show_default=True)
@click.option("--always", is_flag=True, help="Ask what can always be reached again, instead of the invariants.")
@click.option("--sometimes", metavar="ID", help="Show a shortest behaviour to a witness state (I1 …), or that none is.")
@click.option("--deadlock", is_flag=True, help="Show a shortest behaviour to a state without a successor.")
@click.option("--coverage", is_flag=True, help="Show each guard conjunct: how often it was the first false one.")
@click.option("--engine", type=click.Choice(["explicit", "interp"]), default="explicit", show_default=True)
@click.option("--itf", type=click.Path(path_type=Path, dir_okay=False), help="Write the counterexample as ITF.")
@story_options
@json_option
def check(
    name: str, faults: tuple[str, ...], replicas: int | None, profile: str, itf: Path | None, json_file: Path | None,
    engine: str, coverage: bool, deadlock: bool, **options: Any,
) -> int:  # fmt: skip
    """Search every state of a bounded model, breadth first; a broken invariant is shown with the shortest behaviour.

    Sizes that are not given are the model's own, or, with one --fault, those in which it is found quickly. A search
    that Ctrl-C stops is saved to the directory of --checkpoint or --resume, and --resume goes on with it. Walks
    (--simulate) find a violation or nothing: they never say that an invariant holds.
    """
    questions = [q for q in ("simulate", "always", "sometimes") if options[q]]
    if len(questions) > 1 or (questions and engine == "interp"):
        raise click.UsageError("--simulate, --always and --sometimes are one question each, for the explicit engine")
    spec, text = bounded_model(name, replicas, faults, {k: options.pop(k) for k in SIZES}, profile)
    asked = parse_questions(spec, options)
    note(f"{name}: {text}")
    options["always"] = options["always"] or (not questions and _breaks_progress(name, faults))
    answer = {
        "format": "viewproof.check/1",
        "engine": engine,
        "profile": profile,
        "faults": list(faults),
        "sizes": text,
    }
    if options["always"]:
        return _always(spec, answer, options, json_file)
    if options["sometimes"]:
        return _sometimes(spec, answer, options, json_file)
    if engine == "interp":
        result = _interpreted(spec, options["invariants"], options["max_states"])
    else:
        result = _walked(spec, options) if options["simulate"] else _searched(spec, options)
    told = tell(spec, result.behaviour, about=text, faults=faults, broken=result.broken)
    write_page(told, options["html"])
    show_result(spec, result, coverage=coverage, deadlock=deadlock)
    folder = options["checkpoint"] or options["resume"]
    if folder and result.reason.startswith("interrupted; resume"):
        click.echo(f"  to go on: the same command with --resume {folder}")
    if options["por"]:
        click.echo(f"  explored alone where enabled: {'; '.join(', '.join(g) for g in result.free) or 'no actions'}")
    if itf is not None and result.verdict == "violated":
        write_json(explicit.to_itf(spec, result), itf)
    answer |= answer_questions(told, asked)
    code = EXIT_CODES[result.verdict]
    save_json({**answer, "exit_code": code, **result.to_json()}, json_file)
    return code


def _breaks_progress(name: str, faults: tuple[str, ...]) -> bool:
    """Does the fault leave all invariants alone, and stop progress (L1, L2)? Then that is the question to ask."""
    chosen = fault_model(name, faults)
    return chosen is not None and chosen.stops_progress


def _searched(spec: Spec, options: dict[str, Any]) -> Result:
    with _progress() as line:
        return api.check(
            spec, max_states=options["max_states"], max_memory_bytes=options["memory"],
            invariants=options["invariants"], progress=line, notify=note, workers=options["workers"],
            checkpoint=options["checkpoint"], resume=options["resume"],
            symmetry=(options["symmetry"],) if options["symmetry"] else (), reduce=options["por"],
        )  # fmt: skip


def _walked(spec: Spec, options: dict[str, Any]) -> Result:
    with _progress() as line:
        return explicit.simulate(
            spec, seed=options["seed"], depth=options["depth"], walks=options["walks"],
            invariants=options["invariants"] or None, progress=line, notify=note, workers=options["workers"],
        )  # fmt: skip


def _sometimes(spec: Spec, answer: dict[str, Any], options: dict[str, Any], json_file: Path | None) -> int:
    """The shortest behaviour to a witness: 0 if there is one, 1 if no reachable state is, 4 if a bound came first."""
    searched, wanted = witness_search(spec, options["sometimes"])
    result = _searched(searched, {**options, "invariants": ()})
    code = {"violated": EXIT_CONFORMS, "holds": EXIT_VIOLATES}.get(result.verdict, EXIT_INCONCLUSIVE)
    text = {"violated": f"reached after {len(result.behaviour)} steps", "holds": "never reached"}
    click.echo(f"{wanted.id}, {wanted.title}: {text.get(result.verdict, f'inconclusive: {result.reason}')}")
    show_behaviour(spec, result.behaviour)
    ending = Ending(wanted.id, wanted.title, wanted.doc, broken=False)
    told = tell(spec, result.behaviour, about=answer["sizes"], faults=answer["faults"], ending=ending)
    write_page(told, options["html"])
    answer |= answer_questions(told, parse_questions(spec, options))
    verdict = {"violated": "reached", "holds": "unreachable"}.get(result.verdict, result.verdict)
    found = {**result.to_json(), "verdict": verdict, "broken": None, "invariants": []}
    save_json({**answer, "exit_code": code, "sometimes": wanted.id, **found}, json_file)
    return code


def _always(spec: Spec, answer: dict[str, Any], options: dict[str, Any], json_file: Path | None) -> int:
    """What can always be reached again: the worst verdict of all goals. A page tells of the first that is violated."""
    wanted = [explicit.Goal(g.id, g.title, g.premise, g.good) for g in protocol_of_model(spec.name).goals(spec)]
    with _progress() as line:
        answers = explicit.always_reaches(
            spec, wanted, max_states=options["max_states"], max_memory_bytes=options["memory"],
            workers=options["workers"], progress=line, notify=note,
        )  # fmt: skip
    for found in answers:
        show_answer(spec, found)
    verdicts = {a.result.verdict for a in answers}
    verdict = next(v for v in ("violated", "inconclusive", "holds") if v in verdicts)
    results = [
        {"id": a.goal.id, "good": a.good, "premises": a.premises, "stuck": a.stuck, **a.result.to_json()}
        for a in answers
    ]
    code = EXIT_CODES[verdict]
    stuck = next((a for a in answers if a.result.verdict == "violated"), answers[0])
    title = f"{stuck.goal.title}: from the last state it never can"
    ending = Ending(stuck.goal.id, title, stuck.goal.good.doc, broken=True) if verdict == "violated" else None
    told = tell(spec, stuck.result.behaviour, about=answer["sizes"], faults=answer["faults"], ending=ending)
    write_page(told, options["html"])
    answer |= answer_questions(told, parse_questions(spec, options))
    save_json({**answer, "exit_code": code, "verdict": verdict, "always": results}, json_file)
    return code


@contextmanager
def _progress() -> Iterator[Callable[[explicit.Progress], None]]:
    """Where the search stands, on stderr: one line that is kept up to date on a terminal, a line now and then else."""
    shown = time.monotonic()
    if not sys.stderr.isatty():

        def plain(now: explicit.Progress) -> None:
            nonlocal shown
            if time.monotonic() - shown >= PLAIN_SECONDS:
                shown = time.monotonic()
                note(_standing(now))

        yield plain
        return
    with Console(stderr=True).status("searching …") as status:

        def live(now: explicit.Progress) -> None:
            nonlocal shown
            if time.monotonic() - shown >= LIVE_SECONDS:
                shown = time.monotonic()
                status.update(_standing(now))

        yield live


def _standing(now: explicit.Progress) -> str:
    guess = "" if now.to_come is None else f", about {now.to_come:,} to come"
    return (
        f"depth {now.level}: {now.distinct:,} distinct, {now.generated:,} generated, {now.queue:,} waiting, "
        f"{now.states_per_second:,.0f} states/s, {now.seconds:.0f} s{guess}"
    )


def _interpreted(spec: Spec, invariants: Iterable[str], max_states: int | None) -> Result:
    """The same question to the reference interpreter (slow)."""
    wanted = set(invariants) or {p.id for p in spec.invariants}
    unknown = wanted - {p.id for p in spec.invariants}
    if unknown:
        raise click.UsageError(f"no invariant {', '.join(sorted(unknown))}")
    spec = replace(spec, invariants=tuple(p for p in spec.invariants if p.id in wanted))
    started = time.perf_counter()
    found = interp.explore(spec, max_states=max_states)
    verdict = "violated" if found.broken else "holds" if found.complete else "inconclusive"
    result = Result(spec.name, verdict, "" if found.complete else f"bound of {max_states} states reached")
    result.distinct, result.generated, result.depth = found.distinct, found.generated, found.depth
    result.seconds = time.perf_counter() - started
    result.broken, result.title = found.broken, next((p.title for p in spec.invariants if p.id == found.broken), "")
    result.witnessed = found.witnessed
    result.unwitnessed = {w.id: w.title for w in spec.witnesses if w.id not in found.witnessed}
    result.invariants = [p.id for p in spec.invariants]
    result.coverage = [ActionCoverage(a.name, a.source, found.per_action.get(a.name, 0)) for a in spec.action_irs]
    state = State.initial()
    for step in found.behaviour:
        source = spec.ir(step.action).source
        result.behaviour.append(Step(step.action, step.args, source, changes(spec, state, step.state), step.state))
        state = step.state
    return result
