"""`vsr check`: all states of a bounded model of the specification."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from viewproof.api import check as api
from viewproof.refinement.cli.check_import import imported, show_imported
from viewproof.refinement.cli.check_portfolio import BESIDE, Wanted, search_portfolio, shapes, show_covered
from viewproof.refinement.cli.check_text import show_answer, show_behaviour, show_change, show_result, show_value
from viewproof.refinement.cli.focused import Focused
from viewproof.refinement.cli.models import (
    SIZES,
    ProfileName,
    bounded_model,
    fault_model,
    model_options,
    refuse_own_sizes,
    witness_search,
)
from viewproof.refinement.cli.options import OutputFile, Place, Seconds
from viewproof.refinement.cli.output import json_option, note, save_json
from viewproof.refinement.cli.own_model import is_own
from viewproof.refinement.cli.questions import given, refuse_others
from viewproof.refinement.cli.searching import interpreted, progress_line
from viewproof.refinement.cli.story import (
    answer_questions,
    answer_what_can_be,
    parse_questions,
    require_questions,
    story_options,
    tell,
    write_page,
)
from viewproof.refinement.reports.table import write_json
from viewproof.refinement.verdict import EXIT_CONFORMS, EXIT_INCONCLUSIVE, EXIT_VIOLATES
from viewproof.spec.engines import explicit
from viewproof.spec.engines.explicit.memory import available_bytes
from viewproof.spec.engines.explicit.result import Result
from viewproof.spec.engines.itf import to_itf
from viewproof.spec.engines.story import Ending, Question
from viewproof.spec.lang import Spec
from viewproof.spec.protocols import protocol_of, protocol_of_model, shapes_of

__all__ = ["check", "show_change", "show_value"]

EXIT_CODES = {"holds": EXIT_CONFORMS, "violated": EXIT_VIOLATES, "inconclusive": EXIT_INCONCLUSIVE}
SEARCH, SHAPES, WALKS = "a search of one size", "the model's shapes", "--simulate"
ALWAYS, SOMETIMES, INTERP, IMPORT = "--always", "--sometimes", "--engine interp", "--import"
_BOUNDS = frozenset({"workers", "max_states", "memory"})
_SAVED = frozenset({"checkpoint", "resume", "symmetry", "por"})
APPLIES = {
    SEARCH: frozenset({"invariants", "itf", "deadlock", "coverage"}) | _BOUNDS | _SAVED,
    SHAPES: frozenset({"invariants", "itf", "workers", "memory", "exhaust", "minutes", "again"}),
    WALKS: frozenset({"invariants", "itf", "workers", "coverage", "seed", "depth", "walks"}),
    ALWAYS: _BOUNDS,
    SOMETIMES: _BOUNDS | _SAVED,
    INTERP: frozenset({"invariants", "itf", "max_states"}),
    IMPORT: frozenset({"trace"}),
}
"""Question → the options that apply to it, besides those that apply to all."""
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
_folder = Place(file_okay=False)


MAIN = ("replicas", "views", "ops", "faults", "invariants", "profile", "always", "sometimes", "exhaust", "html",
        "why_not", "json_file")  # fmt: skip


@click.command(cls=Focused, main=MAIN)
@model_options
@click.option("--profile", type=ProfileName(), default="core", help="Options of the protocol.", show_default=True)
@click.option("--workers", type=_count, help="Threads; they never change the result.  [default: the cores]")
@click.option("--max-states", type=_count, help="Stop, inconclusive, at this number of distinct states.")
@click.option("--memory", type=Size(), help="Memory for states; files take what is more.  [default: 60 % of the free]")
@click.option("--checkpoint", type=_folder, help="Save the search here on Ctrl-C and every ten minutes.")
@click.option("--resume", type=_folder, help="Go on with the search saved in this directory.")
@click.option("--symmetry", metavar="SORT", help="Take members of a sort as exchangeable: Client.")
@click.option("--por", is_flag=True, help="Partial-order reduction, where actions commute with all others.")
@click.option("--simulate", is_flag=True, help="Random walks instead of a search: they find a violation or nothing.")
@click.option("--seed", type=int, default=0, help="Seed of the walks.", show_default=True)
@click.option("--depth", type=_count, default=200, help="Largest number of steps of a walk.", show_default=True)
@click.option("--walks", type=_count, default=10_000, help="Number of walks.", show_default=True)
@click.option("--always", is_flag=True, help="Ask what can always be reached again, instead of the invariants.")
@click.option("--sometimes", metavar="ID", help="Show a shortest behaviour to a witness state (I1 …), or that none is.")
@click.option("--deadlock", is_flag=True, help="Show a shortest behaviour to a state without a successor.")
@click.option("--coverage", is_flag=True, help="Show each guard conjunct: how often it was the first false one.")
@click.option("--engine", type=click.Choice(["explicit", "interp"]), default="explicit", show_default=True)
@click.option("--itf", type=OutputFile(), help="Write the counterexample as ITF.")
@click.option(
    "--import",
    "trace",
    type=Place(exists=True, dir_okay=False),
    help="Take the behaviour in this ITF file (Apalache, Quint, vsr export itf) instead of a search.",
)
@click.option("--exhaust", is_flag=True, help="After the model's shapes larger ones, until time or memory ends.")
@click.option("--minutes", type=Seconds(zero=True), help="With --exhaust: begin no shape after so many minutes.")
@click.option("--again", is_flag=True, help="Search shapes again that were searched before (they are kept by content).")
@story_options
@json_option
@click.pass_context
def check(
    ctx: click.Context, /, name: str, faults: tuple[str, ...], replicas: int | None, profile: str, itf: Path | None,
    json_file: Path | None, coverage: bool, deadlock: bool, **options: Any,
) -> int:  # fmt: skip
    """Search the states of a bounded model, breadth first; a broken invariant is shown with the shortest behaviour.

    Without a size the model's shapes are searched: small sizes, chosen so that each place of the specification matters
    in one (docs/mutants.md). With a size, or an option that is about one search, that one is searched to its end; sizes
    that are not given are the model's own, or, with one --fault, those in which it is found quickly.
    """
    question = _question(ctx, name, faults)
    refuse_others(ctx, question, APPLIES)
    answer = {"format": "viewproof.check/1", "engine": options["engine"], "profile": profile, "faults": list(faults)}
    if question == SHAPES:
        refuse_own_sizes(name)
        return _shapes(name, profile, itf, answer, options, json_file)
    spec, text = bounded_model(name, replicas, faults, {k: options.pop(k) for k in SIZES}, profile)
    asked = parse_questions(spec, options)
    note(f"{name}: {text}")
    answer["sizes"] = text
    if question == ALWAYS:
        return _always(spec, answer, options, json_file)
    if question == SOMETIMES:
        return _sometimes(spec, answer, options, json_file)
    if question == IMPORT:
        return _imported(spec, asked, answer, options, json_file)
    if question == INTERP:
        result = interpreted(spec, options["invariants"], options["max_states"])
    else:
        result = _walked(spec, options) if question == WALKS else _searched(spec, options)
    told = tell(spec, result.behaviour, about=text, faults=faults, broken=result.broken)
    show_result(spec, result, coverage=coverage, deadlock=deadlock)
    write_page(told, options["html"])
    folder = options["checkpoint"] or options["resume"]
    if folder and result.reason.startswith("interrupted; resume"):
        click.echo(f"  to go on: the same command with --resume {folder}")
    if options["por"]:
        click.echo(f"  explored alone where enabled: {'; '.join(', '.join(g) for g in result.free) or 'no actions'}")
    if itf is not None and result.verdict == "violated":
        write_json(to_itf(spec, result), itf)
    answer |= answer_questions(told, asked)
    code = EXIT_CODES[result.verdict]
    save_json({**answer, "exit_code": code, **result.to_json()}, json_file)
    return code


def _question(ctx: click.Context, name: str, faults: tuple[str, ...]) -> str:
    """What is asked; two questions at once are refused."""
    options = ctx.params
    flags = {WALKS: "simulate", ALWAYS: "always", SOMETIMES: "sometimes", IMPORT: "trace"}
    asked = [question for question, flag in flags.items() if options[flag]]
    asked += [INTERP] if options["engine"] == "interp" else []
    if len(asked) > 1:
        raise click.UsageError(f"{' and '.join(asked)} are one question each")
    if asked:
        return asked[0]
    if _breaks_progress(name, faults):
        return ALWAYS
    alone = faults or given(ctx) & {"replicas", *SIZES, *APPLIES[SEARCH] - APPLIES[SHAPES]}
    return SEARCH if alone or is_own(name) or len(shapes_of(name)) == 1 else SHAPES


def _shapes(
    name: str, profile: str, itf: Path | None, answer: dict[str, Any], options: dict[str, Any], json_file: Path | None
) -> int:
    """The model's shapes; of the first in which something breaks the behaviour."""
    if options["minutes"] is not None and not options["exhaust"]:
        raise click.UsageError("--minutes says when --exhaust ends; give that too")
    wanted = Wanted(
        name, profile, options["invariants"], options["workers"], options["memory"], options["exhaust"],
        options["minutes"], options["again"],
    )  # fmt: skip
    first = shapes(wanted)
    require_questions([shape.spec for shape in first], options)
    spec, covered = search_portfolio(wanted, first)
    behaviour = covered.result.behaviour if covered.result else []
    broken = covered.result.broken if covered.result else None
    told = tell(spec, behaviour, about=covered.outcomes[-1][0].name, faults=(), broken=broken)
    if covered.result is not None:
        show_result(spec, covered.result)
    shown = show_covered(wanted, covered)
    write_page(told, options["html"])
    if covered.result is not None:
        answer |= {"sizes": covered.outcomes[-1][0].name, **covered.result.to_json()}
        if itf is not None and covered.result.verdict == "violated":
            write_json(to_itf(spec, covered.result), itf)
    answer |= shown
    answer |= answer_what_can_be(told, options)
    code = EXIT_CODES[covered.verdict]
    save_json({**answer, "exit_code": code}, json_file)
    return code


def _imported(
    spec: Spec, asked: list[Question], answer: dict[str, Any], options: dict[str, Any], json_file: Path | None
) -> int:
    """A behaviour from a file: told as one that was found."""
    result = imported(spec, options["trace"])
    told = tell(spec, result.behaviour, about=answer["sizes"], faults=answer["faults"], broken=result.broken)
    show_imported(result, len(result.behaviour))
    show_behaviour(spec, result.behaviour)
    write_page(told, options["html"])
    answer |= answer_questions(told, asked)
    code = EXIT_CODES[result.verdict]
    save_json({**answer, "exit_code": code, "imported": str(options["trace"]), **result.to_json()}, json_file)
    return code


def _breaks_progress(name: str, faults: tuple[str, ...]) -> bool:
    """Does the fault leave all invariants alone, and stop progress (L1, L2)? Then that is the question to ask."""
    chosen = fault_model(name, faults)
    return bool(chosen is not None and chosen.stops_progress)


def _searched(spec: Spec, options: dict[str, Any]) -> Result:
    bound = options["memory"] or int(available_bytes() * 0.6)
    note(f"up to {bound / 1e9:.1f} GB {BESIDE}; then files (--memory)")
    with progress_line() as line:
        return api.check(
            spec, max_states=options["max_states"], max_memory_bytes=options["memory"],
            invariants=options["invariants"], progress=line, notify=note, workers=options["workers"],
            checkpoint=options["checkpoint"], resume=options["resume"],
            symmetry=(options["symmetry"],) if options["symmetry"] else (), reduce=options["por"],
        )  # fmt: skip


def _walked(spec: Spec, options: dict[str, Any]) -> Result:
    with progress_line() as line:
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
    if protocol_of(spec) is None:
        raise click.UsageError("--always asks for the goals of the models that are here; this one has none")
    wanted = list(protocol_of_model(spec.name).goals(spec))
    with progress_line() as line:
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
